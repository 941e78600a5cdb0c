"""Makes the runs that the procedure asks for: each one is a run of its own, with a directory of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from linerate.analysis import StepSummary, summarise
from linerate.analysis.rules.hosts import CLOCK, LOST
from linerate.analysis.summary import measured
from linerate.errors import HostError, UserError
from linerate.results import WorkloadSource
from linerate.run import Execution, Loader, RunEvent, Watcher, carry_out
from linerate.scale.laws import demands_s
from linerate.scale.loads import at_task
from linerate.scale.procedure import Parts, Procedure
from linerate.scale.reached import Axis, Reached, ScaleTask
from linerate.scale.record import ScaleRecord
from linerate.scale.search import SearchLimits
from linerate.scale.threshold import Threshold
from linerate.volumes import Consent, clear
from linerate.workload import RunPlan
from linerate.workload.fewer import volume_names

_QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


@dataclass(frozen=True, slots=True)
class Climb:
    """What is scaled, along which axis, up to which threshold, and where the runs are kept."""

    plan: RunPlan
    source: WorkloadSource
    axis: Axis
    threshold: Threshold
    limits: SearchLimits
    directory: Path
    consent: Consent
    loader: Loader
    arrays: Watcher | None = None
    parts: Parts = field(default_factory=Parts)
    first_hosts: Callable[[int], Loader] | None = None
    """Of the axis `hosts`: what starts loads on so many of its hosts. `loader` is for all of them."""

    def loader_of(self, load: int) -> Loader:
        """What starts the runs of a load."""
        return self.first_hosts(load) if self.first_hosts is not None else self.loader


def check(asked: Climb) -> None:
    """Raises UserError for a plan or limits that cannot be scaled along this axis, and for a directory in use."""
    if asked.directory.exists() and not (asked.directory.is_dir() and not any(asked.directory.iterdir())):
        raise UserError(f"{asked.directory} is not empty", "give another directory: a search is written once")
    steps = asked.plan.plain_steps
    if len(steps) != 1:
        raise UserError(
            f"{asked.plan.name} has {len(steps)} steps",
            "scale a workload of one run, without a sweep or a curve",
        )
    if steps[0].rate.kind != "max" or steps[0].run.spec.arrival.kind != "closed":
        raise UserError(
            f"{asked.plan.name} has a rate of its own",
            "leave the rate out: --over rate changes it, others need none",
        )
    there = len(volume_names(asked.plan))
    if asked.axis == "volumes" and asked.limits.most > there:
        raise UserError(f"up to {asked.limits.most} volumes, and the workload has {there}", f"--most {there}")


def climb(asked: Climb, tell: Callable[[Reached], None], watch: Callable[[RunEvent], None]) -> Procedure:
    """Measures until the answer is known. Calls `tell` after each run, `watch` with the events of each. Raises
    LinerateError if a run fails, or the record of the search cannot be written.

    What is asked has passed `check`. What the largest load writes to is looked at first, and agreed to once.
    """
    largest = at_task(asked.plan, asked.axis, ScaleTask("up", asked.limits.most), 0)
    looks = clear([run.spec for run in largest.steps()], asked.loader.look, asked.consent).looks
    consent = asked.consent.once(looks)
    procedure = Procedure(asked.limits, asked.parts)
    record = ScaleRecord(
        name=asked.plan.name,
        started_at=datetime.now(UTC),
        command=tuple(sys.argv),
        axis=asked.axis,
        threshold=asked.threshold,
        limits=asked.limits,
        parts=asked.parts,
    )
    while (task := procedure.next()) is not None:
        reached = _measure(asked, consent, task, len(procedure.runs), watch)
        procedure.record(reached)
        record = record.with_run(reached, asked.directory)
        record.write(asked.directory)
        tell(reached)
    return procedure


def _measure(
    asked: Climb, consent: Consent, task: ScaleTask, number: int, watch: Callable[[RunEvent], None]
) -> Reached:
    outcome = carry_out(
        Execution(
            at_task(asked.plan, asked.axis, task, number),
            asked.source,
            asked.directory / f"{number + 1:03d}-{asked.axis}-{task.load}{task.name}",
            consent,
            loader=asked.loader_of(task.load),
            arrays=asked.arrays,
        ),
        watch,
    )
    if outcome.state == "interrupted":
        raise KeyboardInterrupt
    if outcome.error is not None:
        raise outcome.error
    if lost := [event.message for event in outcome.run.events if event.kind == LOST]:
        raise HostError(
            f"{outcome.run.path.name}: {'; '.join(lost)}", "see that the host is up, then search once more"
        )
    (summary,) = summarise(outcome.run)
    tail = summary.answer_quantile(0.99)
    return Reached(
        purpose=task.purpose,
        load=task.load,
        response_ms=response_ms(summary, asked.threshold),
        mean_ms=measured(summary.answer_mean_ms),
        p99_ms=tail.value_ms if tail else None,
        iops=summary.total.iops,
        share_percent=task.share_percent,
        asked_iops=task.rate_iops,
        in_flight=summary.queue_depth_asked,
        demands_s=demands_s(outcome.run, summary) if summary.queue_depth_asked else {},
        directory=str(outcome.run.path),
        doubts=tuple(event.message for event in outcome.run.events if event.kind == CLOCK),
    )


def response_ms(summary: StepSummary, threshold: Threshold) -> float:
    """The threshold's metric of response time, which in a closed loop is service time.

    Raises UserError for a run that was too short for it.
    """
    ios = summary.total.ios
    if threshold.metric == "mean" and ios:
        return measured(summary.answer_mean_ms)
    found = summary.answer_quantile(_QUANTILES.get(threshold.metric, 0.0))
    if found is None:
        raise UserError(f"{ios} I/Os were completed: too few for a {threshold}", "give more time: --elapsed")
    return found.value_ms
