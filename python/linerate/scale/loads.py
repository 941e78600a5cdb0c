"""A workload at a load: so many threads, volumes, or I/Os per second."""

from __future__ import annotations

from dataclasses import replace

from linerate.scale.reached import Axis, ScaleTask
from linerate.workload import Overrides, PlannedRun, RunPlan
from linerate.workload.fewer import on_first_volumes
from linerate.workload.spec import OpenArrival


def at_task(plan: RunPlan, axis: Axis, task: ScaleTask, number: int) -> RunPlan:
    """The plan of a run. Each run has a seed of its own: a modelled array would repeat itself to the last digit."""
    if axis == "volumes":
        plan, _ = on_first_volumes(plan, task.load)
    elif axis == "threads":
        plan = Overrides(outstanding=task.load).apply(plan)
    rate_iops = task.rate_iops or (float(task.load) if axis == "rate" else None)

    def change(run: PlannedRun) -> PlannedRun:
        update: dict[str, object] = {"seed": run.spec.seed + number}
        if rate_iops is not None:
            update["arrival"] = OpenArrival(process="poisson", rate_iops=rate_iops)
        return replace(run, spec=run.spec.model_copy(update=update))

    return plan.changed(change)
