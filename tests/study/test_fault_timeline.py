"""Faults happen in a run at their instants, are among its events, and are always healed."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from linerate.errors import HostError, UserError
from linerate.lab import Lab
from linerate.results import WorkloadSource
from linerate.run import Execution, LocalLoad, RunEvent, RunOutcome, carry_out
from linerate.run.events import IntervalMeasured
from linerate.san import Fault, load_topology
from linerate.study.laboratory.faults import FaultTimeline, faults_of
from linerate.study.model import Workload
from linerate.volumes import Cleared, Consent
from linerate.workload import PlannedRun, RunPlan, RunSpec, StreamSpec, VolumeSpec
from linerate.workload.plan import PlanStep

from tests.support.cleared import Loads
from tests.support.patience import a_busy_machine_may_spoil

SPEC = RunSpec(
    name="here",
    warmup_s=0.2,
    elapsed_s=1.0,
    interval_s=0.2,
    volumes=(VolumeSpec(name="v1", url="null:1048576"),),
    streams=(StreamSpec(name="s", volumes=("v1",)),),
)
WORKLOAD = Workload(
    name="here",
    title="",
    san="base",
    metric="iops",
    spec=SPEC,
    elapsed_s=SPEC.elapsed_s,
    warmup_s=SPEC.warmup_s,
)


LATE_S_MOST = 0.2


class PaperLab:
    """Notes what breaks and what heals."""

    def __init__(self, refuses: str = "") -> None:
        self.topology = load_topology("base-san")
        self.refuses = refuses
        self.log: list[tuple[str, str]] = []
        self.threads: set[str] = set()

    def fault(self, fault: Fault) -> int:
        return self._did("broken", fault)

    def heal(self, fault: Fault) -> int:
        return self._did("healed", fault)

    def _did(self, what: str, fault: Fault) -> int:
        if fault.kind == self.refuses:
            raise HostError(f"no {fault.kind} here", "another fabric")
        self.log.append((what, fault.label))
        self.threads.add(threading.current_thread().name)
        return time.monotonic_ns()


class Started(LocalLoad):
    """A load that says when its clock began."""

    def __init__(self, cleared: Cleared) -> None:
        self._began_ns = time.monotonic_ns()
        super().__init__(cleared)

    def facts(self) -> Mapping[str, Any]:
        return {"started_monotonic_ns": self._began_ns, **super().facts()}


def unheard(event: RunEvent) -> None:
    pass


def run(
    folder: Path, lab: PaperLab, faults: str, tell: Callable[[RunEvent], None] = unheard
) -> tuple[RunOutcome, list[dict[str, Any]]]:
    plan = RunPlan("here", [PlanStep(PlannedRun(spec=SPEC, name="here", label="here"))])
    beside = FaultTimeline(cast("Lab", lab), faults_of({"faults": faults}), WORKLOAD)
    source = WorkloadSource(name="here", format="study")
    place = folder / f"run-{time.monotonic_ns()}"
    execution = Execution(plan, source, place, Consent.nothing(), loader=Loads(Started), beside=beside)
    outcome = carry_out(execution, tell)
    lines = (place / "events.jsonl").read_text().splitlines()
    return outcome, [event for event in map(json.loads, lines) if event["kind"] in ("fault", "healed")]


@a_busy_machine_may_spoil
def test_faults_are_told_on_the_runs_clock_which_begins_with_its_warm_up(tmp_path: Path) -> None:
    lab = PaperLab()
    outcome, events = run(tmp_path, lab, "cable h1.p0 at 0.2s for 0.3s")
    assert outcome.state == "complete"
    assert [(event["kind"], event["message"]) for event in events] == [
        ("fault", "cable h1.p0"),
        ("healed", "cable h1.p0"),
    ]
    late_s = [event["at_s"] - due_s for event, due_s in zip(events, (0.4, 0.7), strict=True)]
    assert all(0 <= late < LATE_S_MOST for late in late_s), late_s
    assert {event["step"] for event in events} == {"here"}
    assert threading.main_thread().name not in lab.threads


@pytest.mark.long
def test_a_fault_without_an_end_ends_with_the_run(tmp_path: Path) -> None:
    lab = PaperLab()
    _, events = run(tmp_path, lab, "switch sw1 at 0.3s")
    assert [event["kind"] for event in events] == ["fault", "healed"]
    assert lab.log == [("broken", "switch sw1"), ("healed", "switch sw1")]


def test_what_broke_is_healed_when_the_run_is_stopped(tmp_path: Path) -> None:
    lab = PaperLab()

    def stop(event: RunEvent) -> None:
        if isinstance(event, IntervalMeasured) and lab.log:
            raise KeyboardInterrupt

    outcome, events = run(tmp_path, lab, "cable h1.p1 at 0s for 60s", stop)
    assert outcome.state == "interrupted"
    assert lab.log == [("broken", "cable h1.p1"), ("healed", "cable h1.p1")]
    assert [event["kind"] for event in events] == ["fault", "healed"]


@pytest.mark.long
def test_a_fault_that_the_lab_refuses_fails_the_run_and_heals_the_others(tmp_path: Path) -> None:
    lab = PaperLab(refuses="switch")
    outcome, _ = run(tmp_path, lab, "cable h1.p0 at 0.1s for 60s; switch sw1 at 0.3s")
    assert (outcome.state, outcome.reason) == ("failed", "no switch here")
    assert lab.log == [("broken", "cable h1.p0"), ("healed", "cable h1.p0")]


def test_a_fault_of_another_san_is_refused_before_the_run() -> None:
    with pytest.raises(UserError, match=r"has no link h9\.p0"):
        FaultTimeline(cast("Lab", PaperLab()), faults_of({"faults": "cable h9.p0 at 1s"}), WORKLOAD)
