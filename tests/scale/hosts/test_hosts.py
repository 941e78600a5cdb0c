"""`linerate scale --over hosts`: the number of load hosts grows, and each load runs on the first so many."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from linerate.errors import HostError
from linerate.report.scale import write_scale_report
from linerate.results import RunDirectory, TimedEvent, WorkloadSource
from linerate.run import Here, Load, LoadEnd, Loader
from linerate.scale import Climb, Parts, SearchLimits, Threshold, climb
from linerate.scale.record import ScaleRecord
from linerate.scale.words import answer_lines
from linerate.volumes import Cleared, Consent, Look
from linerate.workload import LunMap, Overrides, RunSpec, load_workload

from tests.cli.conftest import linerate
from tests.cluster.test_hosts import SSH
from tests.scale.test_command import workload


@pytest.mark.long
@pytest.mark.timeout(240)
def test_hosts_by_ssh_are_added_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ssh").write_text(SSH, "ascii")
    (tmp_path / "bin" / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    file = workload(tmp_path, "0.4s", "0.2s")
    there = ["--hosts", "load1,load2", "--hosts-python", sys.executable, "--hosts-address", "127.0.0.1"]
    options = ["--over", "hosts", "--until", "mean=1000ms", "--no-headroom", "--target", "null:64m", "--json"]
    done = linerate("scale", file, *options, *there, "--output", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    *runs, answer = (json.loads(line) for line in done.stdout.splitlines())
    assert (answer["over"], answer["kept"], answer["missed"]) == ("hosts", 2, None)
    assert {run["load"] for run in runs} == {1, 2}
    for run in runs:
        volumes = set(RunDirectory.open(Path(run["directory"])).intervals.get_column("volume"))
        assert volumes == {f"load{number}/v1" for number in range(1, run["load"] + 1)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--over", "hosts"], "--over hosts has no hosts"),
        (["--over", "hosts", "--hosts", "a,b", "--most", "3"], "up to 3 hosts, and --hosts names 2"),
        (["--over", "hosts", "--hosts", "a,a"], "--hosts a,a: a is named twice"),
        (["--hosts-ports", "7000"], "--hosts-ports goes with --hosts"),
        (["--hosts", "a", "--hosts-ports", "9-7"], "9-7: not a range of ports"),
    ],
)
def test_what_cannot_be_scaled_is_refused_before_a_host_is_asked(
    tmp_path: Path, options: list[str], message: str
) -> None:
    done = linerate("scale", workload(tmp_path), "--target", "null:64m", "--dry-run", *options)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_dry_run_asks_no_host(tmp_path: Path) -> None:
    options = ["--over", "hosts", "--hosts", "a,b,c", "--dry-run"]
    done = linerate("scale", workload(tmp_path), "--target", "null:64m", *options)
    assert done.returncode == 0, done.stderr
    assert "the largest number of hosts with a mean of 20 ms, from 1 to 3" in done.stdout


def test_a_search_that_loses_a_host_ends_and_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run without one of its hosts is a run of another load."""
    message = "host h2 was lost (its worker has ended)"
    lost = TimedEvent(at_s=1.0, kind="host_lost", message=message, blame="host")
    run = SimpleNamespace(events=[lost], path=tmp_path / "001-hosts-2")
    monkeypatch.setattr(
        sys.modules["linerate.scale.climb"],
        "carry_out",
        lambda *_: SimpleNamespace(state="complete", error=None, run=run),
    )
    asked: list[int] = []

    def first(count: int) -> Loader:
        asked.append(count)
        return Here()

    file = workload(tmp_path, "0.2s", "0.1s")
    plan = load_workload(Path(file), overrides=Overrides(luns=LunMap({"*": "null:64m"})))
    request = Climb(
        plan,
        WorkloadSource(name="reads"),
        "hosts",
        Threshold("mean", 1000.0),
        SearchLimits(1000.0, least=2, most=2),
        tmp_path / "out",
        Consent.nothing(),
        Here(),
        first_hosts=first,
    )
    with pytest.raises(HostError, match="001-hosts-2: host h2 was lost"):
        climb(request, lambda reached: None, lambda event: None)
    assert asked == [2]


class _MovedClock:
    """Loads of this process that end as if the clock of a host had moved. A `Loader`."""

    def look(self, spec: RunSpec, names: Collection[str]) -> Sequence[Look]:
        return Here().look(spec, names)

    def hosts_of(self, spec: RunSpec) -> Mapping[str, Sequence[str]]:
        return Here().hosts_of(spec)

    def start(self, cleared: Cleared) -> Load:
        return _Ends(Here().start(cleared))  # type: ignore[return-value]


class _Ends:
    def __init__(self, load: Load) -> None:
        self._load = load

    def __getattr__(self, name: str) -> Any:
        return getattr(self._load, name)

    def finish(self) -> LoadEnd:
        moved = TimedEvent(0.4, "host_clock", "the clock of host h2 moved 80.0 ms ahead", blame="host")
        return replace(self._load.finish(), events=(moved,))


@pytest.mark.long
def test_a_search_whose_hosts_disagree_about_time_is_marked(tmp_path: Path) -> None:
    file = workload(tmp_path, "0.4s", "0.2s")
    plan = load_workload(Path(file), overrides=Overrides(luns=LunMap({"*": "null:64m"})))
    request = Climb(
        plan,
        WorkloadSource(name="reads"),
        "threads",
        Threshold("mean", 1000.0),
        SearchLimits(1000.0, least=1, most=1),
        tmp_path / "out",
        Consent.nothing(),
        _MovedClock(),
        parts=Parts(False, False),
    )
    procedure = climb(request, lambda reached: None, lambda event: None)
    marks = [line for line in answer_lines("threads", request.threshold, procedure) if "Caution" in line]
    assert len(marks) == len(procedure.runs) > 0
    assert marks[0] == "Caution: a run at 1: the clock of host h2 moved 80.0 ms ahead."
    assert ScaleRecord.open(tmp_path / "out").runs[0].doubts == procedure.runs[0].doubts
    assert marks[0] in write_scale_report(tmp_path / "out").read_text("utf-8")
    run = RunDirectory.open(Path(procedure.runs[0].directory))
    assert run.manifest.validity is not None
    assert run.manifest.validity.stamp == "caution"
    assert "host-clock-moved" in [finding.rule for finding in run.manifest.validity.findings]
