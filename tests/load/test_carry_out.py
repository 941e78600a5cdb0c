"""A load does not outlive its step."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from linerate.errors import HostError
from linerate.results import WorkloadSource
from linerate.run import Execution, LocalLoad, carry_out
from linerate.volumes import Cleared, Consent
from linerate.workload.toml_file import parse_toml

from tests.support.cleared import Loads

WORKLOAD = """\
name = "idle"
elapsed = 600
warm_up = 0.2
interval = 0.2

[[volume]]
name = "v1"
target = "null:1048576"

[[stream]]
name = "s"
size = "4k"

[[run]]
name = "r"
streams = "s"
rate = 50
"""


def test_a_counter_that_cannot_be_read_ends_the_load(tmp_path: Path) -> None:
    loads: list[LocalLoad] = []

    def start(cleared: Cleared) -> LocalLoad:
        loads.append(LocalLoad(cleared))
        return loads[0]

    def counters() -> Mapping[str, float]:
        raise HostError("the switch does not answer", "look at it")

    plan = parse_toml(WORKLOAD, "idle.toml", name="idle")
    source = WorkloadSource(name="idle.toml", text=WORKLOAD)
    execution = Execution(
        plan, source, tmp_path / "run", Consent.nothing(), counters=counters, loader=Loads(start)
    )
    outcome = carry_out(execution, lambda event: None)
    assert (outcome.state, outcome.reason) == ("failed", "the switch does not answer")
    assert outcome.run.manifest.steps[0].state == "failed"
    while loads[0].next_interval(0.1) is not None:
        pass
    assert loads[0].finished


def test_without_a_warm_up_counters_are_read_before_the_load_starts(tmp_path: Path) -> None:
    happened: list[str] = []

    def start(cleared: Cleared) -> LocalLoad:
        happened.append("start")
        return LocalLoad(cleared)

    def counters() -> Mapping[str, float]:
        happened.append("read")
        return {"host.busy_s": float(len(happened))}

    text = WORKLOAD.replace("warm_up = 0.2", "warm_up = 0").replace("600", "0.4")
    plan, source = parse_toml(text, "short.toml", name="short"), WorkloadSource(name="short.toml", text=text)
    execution = Execution(
        plan, source, tmp_path / "run", Consent.nothing(), counters=counters, loader=Loads(start)
    )
    outcome = carry_out(execution, lambda event: None)
    assert happened == ["read", "start", "read"]
    assert outcome.run.manifest.steps[0].counters == {"host.busy_s": 2.0}
