"""One search of a study: the runs of a case and workload, from the first or from where the journal ends.

A search follows from its runs (`linerate.scale.procedure`). So the journal holds each run, and nothing else is needed
to go on after an interruption.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from statistics import fmean

from linerate.analysis.metric import LARGEST_LOAD
from linerate.errors import UserError
from linerate.scale import Capacity, Procedure, Reached, ScaleTask, at_task
from linerate.study.journal import LoadMeasured
from linerate.study.laboratory import Measured
from linerate.study.model import Study, Workload
from linerate.study.plan import StudyPlan, StudyStep
from linerate.workload import PlannedRun, RunPlan
from linerate.workload.plan import PlanStep

_FIGURES = {"mean": "response_ms", "p50": "p50_ms", "p95": "p95_ms", "p99": "p99_ms"}
"""Metric of a threshold -> the figure of a run."""


def largest_load(found: Capacity) -> float | None:
    """The estimate: the geometric mean of the ends between which the largest load is, or the one end that is known.

    None if no end is above 0.
    """
    ends = [found.kept, None if found.missed is None else found.missed - 1]
    known = [float(end) for end in ends if end]
    return math.exp(fmean(map(math.log, known))) if known else None


class Searching:
    """The state of one search. Void runs do not count."""

    def __init__(self, study: Study, step: StudyStep, before: Iterable[LoadMeasured]) -> None:
        assert study.scale is not None
        self._study, self._step, self._scale = study, step, study.scale
        self.procedure = Procedure(study.search_limits, study.scale.parts)
        self._tried = 0
        self._values: dict[int, Mapping[str, float]] = {}
        for entry in before:
            self.add(entry)

    def add(self, entry: LoadMeasured) -> None:
        """One run of it, as it is in the journal."""
        self._tried += 1
        if entry.state == "complete":
            self.procedure.record(entry.reached)
            if entry.reached.is_on_curve:
                self._values[entry.reached.load] = entry.values

    def next(self) -> ScaleTask | None:
        """The run to make next; None at the end."""
        return self.procedure.next()

    def at(self, workload: Workload, task: ScaleTask) -> Workload:
        """The workload at a load, with I/Os of its own."""
        assert workload.spec is not None
        run = PlannedRun(spec=workload.spec, name=workload.name, label=workload.name)
        (made,) = at_task(
            RunPlan(workload.name, [PlanStep(run)]),
            self._scale.over,
            task,
            0,
            volumes_per_host=self._scale.volumes_per_host,
        ).steps()
        seed = StudyPlan(self._study).io_seed(self._step, self._tried)
        return workload.model_copy(update={"spec": made.spec}).seeded(seed)

    def entry(self, task: ScaleTask, workload: Workload, measured: Measured, directory: str) -> LoadMeasured:
        """What the journal says of a run that `at` made. Raises UserError for one that was too short."""
        values, threshold = measured.values, self._scale.until
        void = measured.stamp == "void"
        response_ms = values.get(_FIGURES[threshold.metric])
        if response_ms is None and not void:
            raise UserError(
                f"{directory}: {values.get('ios', 0):.0f} I/Os were completed: too few for a {threshold}",
                "give the workload more time: elapsed",
            )
        spec = workload.spec
        closed = spec is not None and spec.arrival.kind == "closed"
        reached = Reached(
            purpose=task.purpose,
            load=task.load,
            response_ms=response_ms or 0.0,
            mean_ms=values.get("response_ms", 0.0),
            p99_ms=values.get("p99_ms"),
            iops=values.get("iops", 0.0),
            share_percent=task.share_percent,
            asked_iops=task.rate_iops,
            in_flight=sum(one.outstanding for one in spec.volumes) if spec and closed else None,
            demands_s=dict(measured.demands_s),
            directory=directory,
        )
        return LoadMeasured(
            key=self._step.key,
            san=self._step.san,
            case=self._step.case,
            workload=self._step.workload,
            state="void" if void else "complete",
            reason=measured.reason,
            reached=reached,
            values=dict(values),
        )

    @property
    def place(self) -> str:
        """The directory of a run at the largest load that keeps the threshold; of the last run if there is none."""
        runs = self.procedure.runs
        kept = self.procedure.capacity().kept
        of_kept = [run for run in runs if run.purpose == "up" and run.load == kept]
        return (of_kept or runs)[-1].directory if runs else ""

    def values(self) -> dict[str, float]:
        """The figures of the step: those of a run at the largest load, and the ends between which that is.

        Without a load that surely keeps the threshold they are those of the smallest load.
        """
        found = self.procedure.capacity()
        of_load = min(self._values, default=0) if found.kept is None else found.kept
        values = dict(self._values.get(of_load, {}))
        if found.kept is not None:
            values["load_kept"] = float(found.kept)
        if (estimate := largest_load(found)) is not None:
            values[LARGEST_LOAD] = estimate
        if found.missed is not None:
            values["load_missed"] = float(found.missed)
        return values
