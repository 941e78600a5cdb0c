"""What there is to tell about a study, gathered from its directory by `gather.py` and shown by the page and the tables.

The figures are the analysis' own (`Judgement`, `Attribution`, `ClaimVerdict`); this adds what people call the cases and
workloads, what was set and read back, and where it ran.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median

from linerate.analysis.verdict import (
    METRICS,
    Attribution,
    ClaimVerdict,
    Deviance,
    Effect,
    Judgement,
    Metric,
    Observation,
)
from linerate.report.study.paths import FaultPart, LayoutPart
from linerate.results import Validity
from linerate.setting import Value
from linerate.study.scaling import CaseSearch

_NAMED_MAX = 2
"""Titles of cases in one sentence; of more their number."""


@dataclass(frozen=True, slots=True)
class SettingValue:
    """A setting of a case: what was asked for and what was read back."""

    name: str
    asked: str
    read_back: str = ""

    @property
    def held(self) -> bool:
        """What was read back is what was asked for, as far as it could be read.

        The word max asks for a number. "on" asks for any kind of a setting that has several, such as flow control.
        """
        if self.read_back in ("", self.asked):
            return True
        if self.asked == "on":
            return self.read_back not in ("off", "none")
        return self.read_back[:1].isdigit() and not self.asked[:1].isdigit()


@dataclass(frozen=True, slots=True)
class CasePart:
    """One case: its settings, and why it could not run anywhere if it could not."""

    name: str
    title: str
    settings: tuple[SettingValue, ...] = ()
    not_applicable: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class WorkloadPart:
    """One workload; `metric` is the one that its verdicts are about."""

    name: str
    title: str
    metric: Metric

    @property
    def change_unit(self) -> str:
        """What changes of the metric are written in."""
        return "points" if self.metric.scale == "difference" else "%"


@dataclass(frozen=True, slots=True)
class Recommendation:
    """A non-default setting that earned its place, with what it brought and what it cost.

    `mixed`: it made some workload worse, so that it depends on the load. `slight`: every gain is below the margin.
    `compared` has the pairs of cases that were compared. `values` are the settings by their names in the catalogue,
    for programs; one that the better case does not set is not in it.
    """

    setting: str
    instead_of: str
    recommended: str
    evidence: tuple[str, ...]
    cost: tuple[str, ...] = ()
    mixed: bool = False
    slight: bool = False
    compared: tuple[str, ...] = ()
    values: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StudyPage:
    """A whole study, ready to be shown.

    `certainty` says what a shortened study gives up. `topologies` are the SANs, each with a caption and its SVG.
    `skipped` are cases that could not run somewhere, with the reason. `laboratory` are the few facts of the page's
    head, `environment` and `method` those of its end. `layouts` and `faults` are of cases with several
    paths per volume.
    """

    name: str
    title: str
    state: str
    validity: Validity
    judgement: Judgement
    cases: tuple[CasePart, ...]
    workloads: tuple[WorkloadPart, ...]
    observations: tuple[Observation, ...] = field(default=(), repr=False)
    attributions: tuple[Attribution, ...] = ()
    claims: tuple[ClaimVerdict, ...] = ()
    recommendations: tuple[Recommendation, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    description: str = ""
    reason: str = ""
    certainty: str = ""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    topologies: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    laboratory: tuple[tuple[str, str], ...] = ()
    method: tuple[tuple[str, str], ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    text: str = field(default="", repr=False)
    layouts: tuple[LayoutPart, ...] = ()
    faults: tuple[FaultPart, ...] = ()
    searches: tuple[CaseSearch, ...] = field(default=(), repr=False)
    """Of a study with [scale], the search of each case and workload."""
    carries: tuple[str, ...] = ()
    """Of a study with [scale], one sentence per comparison of largest loads."""
    place: str = ""
    """The study directory, as commands name it."""
    blocks_planned: int = 0
    void: frozenset[tuple[str, str]] = frozenset()
    """(case, workload) of which every run was void: they keep their place in the tables."""

    @property
    def runs(self) -> int:
        """Runs whose figures count."""
        return len(self.observations)

    @property
    def blocks(self) -> int:
        """Blocks of which at least one run could be used."""
        return len({observation.block for observation in self.observations})

    @property
    def compares_disks(self) -> bool:
        """Some case changes what an array is made of."""
        return any(setting.name.startswith("array.") for case in self.cases for setting in case.settings)

    @property
    def margin_percent(self) -> float:
        """The relative change that does not matter yet."""
        return 100 * self.judgement.margin

    def margin_of(self, part: WorkloadPart) -> float:
        """The change of a workload's metric that does not matter yet, in its own `change_unit`."""
        return self.margin_percent if part.metric.margin is None else part.metric.margin

    @property
    def not_applicable(self) -> tuple[CasePart, ...]:
        """The cases that could not run here."""
        return tuple(case for case in self.cases if case.not_applicable)

    def title_of(self, case: str) -> str:
        """What a case is called in tables."""
        return next((part.title for part in self.cases if part.name == case), case)

    def workload_title(self, workload: str) -> str:
        """What a workload is called in tables."""
        return next((part.title for part in self.workloads if part.name == workload), workload)

    def layouts_by_case(self) -> list[tuple[str, list[LayoutPart]]]:
        """Case -> its layouts, one per workload, in the study's order."""
        found: dict[str, list[LayoutPart]] = {}
        for part in self.layouts:
            found.setdefault(part.case, []).append(part)
        return list(found.items())

    def deviances(self) -> list[tuple[ClaimVerdict, Deviance]]:
        """Every published change beside the measured one, in the study's order of claims."""
        return [(claim, one) for claim in self.claims for one in claim.deviances]

    def other_metric(self, one: Deviance) -> str:
        """What a deviance is of, where it is not the workload's own metric; else empty."""
        own = next((part.metric.name for part in self.workloads if part.name == one.workload), "")
        return "" if one.metric == own else METRICS[one.metric].label

    def compared(self, claim: ClaimVerdict) -> str:
        """Which comparison a claim's measured changes are of; empty where it speaks of one case's own figures."""
        cases = [self.title_of(case) for case in claim.cases if case != claim.against]
        if not cases or not claim.against:
            return ""
        named = " and ".join(cases) if len(cases) <= _NAMED_MAX else f"{len(cases)} cases"
        return f"{named} against {self.title_of(claim.against)}"

    def effects(self, workload: str) -> Iterator[tuple[CasePart, Effect]]:
        """The cases that ran under a workload, in the study's order, with their effect on its metric."""
        for case in self.cases:
            effect = self.judgement.effect(case.name, workload)
            if effect is not None:
                yield case, effect

    def baseline_value(self, part: WorkloadPart) -> float | None:
        """The baseline's typical value of the workload's metric."""
        return self.typical(self.judgement.baseline, part.name, part.metric.name)

    def typical(self, case: str, workload: str, metric: str) -> float | None:
        """A case's typical value of a metric: the judgement's, else the median of its runs; None if not measured."""
        for effect in self.judgement.effects:
            if (effect.workload, effect.metric) == (workload, metric):
                if effect.case == case:
                    return effect.value
                if case == self.judgement.baseline:
                    return effect.baseline
        values = [
            seen.values[metric]
            for seen in self.observations
            if (seen.case, seen.workload) == (case, workload) and metric in seen.values
        ]
        return median(values) if values else None

    def attribution(self, case: str, workload: str) -> str:
        """What held a case back, as one sentence; empty if unknown."""
        return next(
            (item.sentence for item in self.attributions if (item.case, item.workload) == (case, workload)),
            "",
        )
