"""The repeat rule: who needs another block.

A published study repeated a test while the relative standard deviation of its three results was above one per cent.
Here the last three results count, so that an early disturbance does not keep a case waiting for ever.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from linerate.study.directory import Repeated, StudyDirectory
from linerate.study.journal import StepDone
from linerate.study.model import Study
from linerate.study.plan import StudyStep

RESULTS = 3


def repeated(study: Study, steps: Iterable[StepDone]) -> tuple[Repeated, ...]:
    """For every case and workload that was measured: how often, and whether its results agree.

    Of a baseline that runs twice in a block, the first runs are looked at, as of any other case.
    """
    found: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for step in steps:
        metric = study.workload(step.workload).metric
        if step.state == "complete" and step.replica == 1 and metric in step.values:
            found.setdefault((step.case, step.workload), []).append((step.block, step.values[metric]))
    return tuple(
        _judged(case, workload, [value for _, value in sorted(values)], study.repeat.rsd_percent)
        for (case, workload), values in found.items()
    )


def _judged(case: str, workload: str, values: Sequence[float], most_percent: float) -> Repeated:
    rsd = rsd_percent(values[-RESULTS:]) if len(values) >= RESULTS else None
    return Repeated(case, workload, len(values), rsd, rsd is not None and rsd <= most_percent)


def rsd_percent(values: Sequence[float]) -> float:
    """Relative standard deviation in percent; 0 when all values are 0."""
    mean = statistics.fmean(values)
    return 100 * statistics.stdev(values) / abs(mean) if mean else 0.0


def wanted(directory: StudyDirectory, block: Sequence[StudyStep]) -> tuple[StudyStep, ...]:
    """The steps of a block that the rule asks for, given everything measured in the blocks before it.

    The baseline comes along wherever a case is repeated: a case is compared with the baseline of its own block.
    """
    return _asked(directory, [step for step in block if not directory.is_given_up(step)])


def _asked(directory: StudyDirectory, block: Sequence[StudyStep]) -> tuple[StudyStep, ...]:
    study = directory.study
    if not block or block[0].block <= study.repeat.blocks_min:
        return tuple(block)
    earlier = [step for step in directory.steps if step.block < block[0].block]
    agrees = {(one.case, one.workload) for one in repeated(study, earlier) if one.agrees}
    again = {(step.case, step.workload) for step in block} - agrees
    workloads = {workload for _, workload in again}
    baseline = study.baseline.name
    return tuple(
        step
        for step in block
        if (step.case, step.workload) in again or (step.case == baseline and step.workload in workloads)
    )


def missing(directory: StudyDirectory) -> dict[str, str]:
    """Key -> reason of the steps that the rule asked for in blocks that were begun, and that have no run.

    They failed whenever they were tried, or a refusal that passed has kept them from their block. A run that is void is
    there: it says why it does not count.
    """
    last = {step.key: step for step in directory.steps}
    begun = {step.block for step in directory.steps}
    lost = directory.not_applicable
    found: dict[str, str] = {}
    for block in directory.plan.blocks():
        if block[0].block not in begun:
            continue
        for step in _asked(directory, [step for step in block if (step.san, step.case) not in lost]):
            tried = last.get(step.key)
            if tried is None:
                refused = directory.refusals.get((step.san, step.case), ())
                found[step.key] = refused[-1].reason if refused else "it was not run"
            elif tried.state == "failed":
                found[step.key] = tried.reason
    return found
