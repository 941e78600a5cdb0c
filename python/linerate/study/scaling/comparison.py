"""The largest loads of cases, compared: how many times the load of the baseline a case carries.

Each search gives an interval of the largest load. The intervals of all searches of a study hold together with 95 %
(each has its share of the error), so the smallest ratio of two of their ends and the largest hold the true ratio. The
estimate is the ratio of the geometric means of the ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from linerate.analysis.metric import LARGEST_LOAD
from linerate.analysis.verdict import ALPHA, Effect, Judgement, Verdict
from linerate.errors import UserError, quote
from linerate.scale import Capacity, Procedure
from linerate.study.directory import StudyDirectory
from linerate.study.journal import LoadMeasured
from linerate.study.model import Case, Scale, Study, Workload
from linerate.study.scaling.searching import Searching, largest_load

_WORDS = {"threads": "threads", "volumes": "volumes", "rate": "I/Os per second", "hosts": "hosts"}


@dataclass(frozen=True, slots=True)
class CaseSearch:
    """A case under a workload: its search, as far as it has come."""

    case: Case
    workload: Workload
    scale: Scale
    procedure: Procedure
    ended: bool
    entries: tuple[LoadMeasured, ...] = ()
    """Its runs, as the journal has them."""

    @property
    def found(self) -> Capacity:
        """What is known of the largest load."""
        return self.procedure.capacity()

    @property
    def low(self) -> float | None:
        """The smallest that the largest load can be; None if no load surely keeps the threshold."""
        return None if self.found.kept is None else float(self.found.kept)

    @property
    def high(self) -> float | None:
        """The largest that it can be; None if no load surely misses the threshold."""
        return None if self.found.missed is None else float(self.found.missed - 1)

    @property
    def estimate(self) -> float | None:
        """One number for it, if one is known."""
        return largest_load(self.found)


def searches(directory: StudyDirectory) -> tuple[CaseSearch, ...]:
    """Every search that has a run, in the order of workloads and cases. Empty for a study without [scale]."""
    study = directory.study
    if study.scale is None:
        return ()
    steps = {(step.workload, step.case): step for step in directory.plan.block(1)}
    found = []
    for workload in study.workloads:
        for case in study.cases:
            step = steps.get((workload.name, case.name))
            if step is None or not (runs := directory.loads.get(step.key)):
                continue
            procedure = Searching(study, step, runs).procedure
            ended = step.key in directory.measured
            found.append(CaseSearch(case, workload, study.scale, procedure, ended, tuple(runs)))
    return tuple(found)


def judgement(directory: StudyDirectory, baseline: str) -> Judgement:
    """The cases against one of them. Raises UserError when that one has not been searched."""
    study = directory.study
    ended = [one for one in searches(directory) if one.ended]
    if not any(one.case.name == baseline for one in ended):
        raise UserError(
            f"no search of the baseline {baseline} has ended",
            f"linerate study resume {quote(directory.path)}",
        )
    return Judgement(baseline, study.margin, ALPHA, tuple(effects(study, ended, baseline)), ())


def effects(study: Study, ended: Sequence[CaseSearch], baseline: str) -> Iterator[Effect]:
    """Of each case whose largest load is known, the ratio to the baseline's under the same workload."""
    bases = {one.workload.name: one for one in ended if one.case.name == baseline}
    for one in ended:
        base = bases.get(one.workload.name)
        if base is None or one is base or not one.estimate or not base.estimate:
            continue
        ratio = one.estimate / base.estimate
        low = one.low / base.high if one.low is not None and base.high else None
        high = one.high / base.low if one.high is not None and base.low else None
        verdict = _verdict(ratio, low, high, study.margin)
        yield Effect(
            case=one.case.name,
            workload=one.workload.name,
            metric=LARGEST_LOAD,
            scale="ratio",
            primary=True,
            baseline=base.estimate,
            value=one.estimate,
            estimate=ratio,
            low=low,
            high=high,
            p=None,
            p_adjusted=None,
            p_equivalent=None,
            verdict=verdict,
            blocks=1,
            blocks_needed=None,
            is_small=verdict == "no difference",
        )


def _verdict(ratio: float, low: float | None, high: float | None, margin: float) -> Verdict:
    """As of any comparison: is there a difference, and does it matter?"""
    least, most = 1 / (1 + margin), 1 + margin
    if low is not None and high is not None and least <= low and high <= most:
        return "no difference" if low <= 1 <= high else "slightly better" if low > 1 else "slightly worse"
    if low is not None and low > 1:
        return "better" if ratio > most else "slightly better"
    if high is not None and high < 1:
        return "worse" if ratio < least else "slightly worse"
    return "undecided"


def sentences(directory: StudyDirectory, found: Judgement) -> list[str]:
    """`RAID 10 carries 1.4 times the threads of RAID 50 (1.3 to 1.5)`, for each case and workload."""
    study = directory.study
    if study.scale is None:
        return []
    what = _WORDS[study.scale.over]
    several = len(study.workloads) > 1
    base = study.case(found.baseline).title
    said = []
    for effect in found.primary():
        where = f" under {study.workload(effect.workload).title}" if several else ""
        case = study.case(effect.case).title
        if effect.low is None and effect.high is None:
            said.append(f"{case} against {base}{where}: the ratio of the {what} is not known")
        else:
            said.append(f"{case} carries {_times(effect)} the {what} of {base}{where}{_bounds(effect)}")
    return said


def _times(effect: Effect) -> str:
    if effect.low is not None and effect.high is None:
        return f"at least {effect.low:.2g} times"
    if effect.low is None and effect.high is not None:
        return f"at most {effect.high:.2g} times"
    return f"{effect.estimate:.2g} times"


def _bounds(effect: Effect) -> str:
    if effect.low is None or effect.high is None:
        return ""
    return f" ({effect.low:.2g} to {effect.high:.2g})"
