"""A workload at a load: so many threads, volumes, hosts, or I/Os per second."""

from __future__ import annotations

from dataclasses import replace

from linerate.scale.reached import Axis, ScaleTask
from linerate.workload import Overrides, PlannedRun, RunPlan
from linerate.workload.fewer import on_first_volumes
from linerate.workload.spec import OpenArrival

LOAD_MOST = 256
"""The largest load of a search that names none, where nothing else bounds it."""


def at_task(
    plan: RunPlan, axis: Axis, task: ScaleTask, number: int, *, volumes_per_host: int | None = None
) -> RunPlan:
    """The plan of a run. Each run has a seed of its own: a modelled array would repeat itself to the last digit.

    With `volumes_per_host`, hosts are shares of the plan's volumes, which are in the order of their hosts. Without it
    the plan is that of each host. Raises UserError for more volumes than it has.
    """
    if axis == "volumes":
        plan, _ = on_first_volumes(plan, task.load)
    elif axis == "hosts" and volumes_per_host is not None:
        plan, _ = on_first_volumes(plan, task.load * volumes_per_host)
    elif axis == "threads":
        plan = Overrides(outstanding=task.load).apply(plan)
    rate_iops = task.rate_iops or (float(task.load) if axis == "rate" else None)

    def change(run: PlannedRun) -> PlannedRun:
        update: dict[str, object] = {"seed": run.spec.seed + number}
        if rate_iops is not None:
            update["arrival"] = OpenArrival(process="poisson", rate_iops=rate_iops)
        return replace(run, spec=run.spec.model_copy(update=update))

    return plan.changed(change)
