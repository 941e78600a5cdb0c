"""The judgement of a study's observations, up to a number of blocks; and which comparisons are still undecided."""

from __future__ import annotations

from functools import lru_cache

from linerate.analysis.verdict import Judgement, Looks, judge, plan_looks
from linerate.errors import UserError
from linerate.study import scaling
from linerate.study.directory import StudyDirectory


def looks_of(directory: StudyDirectory) -> Looks:
    """After how many blocks the results of a study are looked at, its extensions included."""
    repeat = directory.record.study.repeat
    extensions = [(added.measured, added.blocks) for added in directory.blocks_added]
    return plan_looks(repeat.blocks_min, repeat.blocks_max, extensions)


def judgement_of(directory: StudyDirectory, baseline: str, blocks: int | None = None) -> Judgement:
    """Judges the first `blocks` blocks, or all. Raises UserError when there is no run of the baseline in them."""
    study = directory.study
    if study.scale is not None:
        return scaling.judgement(directory, baseline)
    seen = [one for one in directory.observations() if blocks is None or one.block <= blocks]
    metrics = {workload.name: workload.metric for workload in study.workloads}
    return judge(seen, baseline, metrics, margin=study.margin, looks=looks_of(directory))


def undecided(directory: StudyDirectory, block: int) -> frozenset[tuple[str, str]] | None:
    """(case, workload) of every comparison that was undecided at the last look before a block.

    None without such a look. Of a comparison with another case than the baseline, both cases count.
    """
    look = looks_of(directory).before(block)
    return None if look is None else _undecided_at(directory, look)


# Blocks after one look have one answer, and a study asks for each of its blocks. A directory does not change.
@lru_cache(maxsize=4)
def _undecided_at(directory: StudyDirectory, look: int) -> frozenset[tuple[str, str]]:
    study = directory.study
    others = {claim.against for claim in study.claims} - {study.baseline.name}
    lost = directory.not_applicable
    found: set[tuple[str, str]] = set()
    for against in (study.baseline.name, *sorted(others)):
        pairs = {
            (case.name, workload)
            for case in study.cases
            for workload in case.workloads
            if case.name != against and (against not in others or _is_claimed(directory, case.name, against))
            if not {(study.workload(workload).san, name) for name in (case.name, against)} & lost.keys()
        }
        try:
            effects = list(judgement_of(directory, against, look).primary())
        except UserError:
            effects = []  # no run of it yet: nothing is decided
        decided = {(one.case, one.workload) for one in effects if one.verdict != "undecided"}
        for case, workload in pairs - decided:
            found.add((case, workload))
            if against in others:
                found.add((against, workload))
    return frozenset(found)


def _is_claimed(directory: StudyDirectory, case: str, against: str) -> bool:
    return any(claim.case == case and claim.against == against for claim in directory.study.claims)
