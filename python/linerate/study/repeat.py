"""The repeat rule: which cases need another block.

Every case runs in the first `blocks_min` blocks. Then results are looked at a few times
(`linerate.analysis.verdict.looks`), and a case runs again as long as its comparison is undecided, up to `blocks_max`
blocks or the end of the budget.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from linerate.analysis.verdict import Judgement
from linerate.study.directory import Repeated, StudyDirectory
from linerate.study.judgement import undecided
from linerate.study.plan import StudyStep


def repeated(directory: StudyDirectory, judgement: Judgement) -> tuple[Repeated, ...]:
    """For every case and workload that is compared with the baseline: how often it was measured, and its verdict."""
    runs = Counter((step.case, step.workload) for step in directory.measured.values())
    return tuple(
        Repeated(one.case, one.workload, runs[one.case, one.workload], one.verdict)
        for one in judgement.primary()
    )


def wanted(directory: StudyDirectory, block: Sequence[StudyStep]) -> tuple[StudyStep, ...]:
    """The steps of a block that the rule asks for, given everything measured in the blocks before it.

    The baseline comes along wherever a case is repeated: a case is compared with the baseline of its own block.
    """
    return _asked(directory, [step for step in block if not directory.is_given_up(step)])


def _asked(directory: StudyDirectory, block: Sequence[StudyStep]) -> tuple[StudyStep, ...]:
    if not block or (again := undecided(directory, block[0].block)) is None:
        return tuple(block)
    workloads = {workload for _, workload in again}
    baseline = directory.study.baseline.name
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
