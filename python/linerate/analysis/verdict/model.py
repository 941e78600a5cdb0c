"""What comes out of a judgement: plain frozen values.

All of it survives `dataclasses.asdict` and JSON, so that a study directory can keep its verdicts; pydantic's
`TypeAdapter(Judgement)` reads them back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, get_args

from linerate.analysis.metric import Scale
from linerate.analysis.verdict.looks import Looks

Verdict = Literal["better", "slightly better", "no difference", "slightly worse", "worse", "undecided"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
GAINS: frozenset[Verdict] = frozenset({"better", "slightly better"})
LOSSES: frozenset[Verdict] = frozenset({"worse", "slightly worse"})
ClaimOutcome = Literal["agrees", "agrees in part", "differs", "needs hardware", "not tested"]


@dataclass(frozen=True, slots=True)
class Effect:
    """What one case did to one metric of one workload, against the baseline of the same blocks.

    `estimate`, `low` and `high` (a 95 % interval at alpha 0.05) are ratios case/baseline, or differences
    case - baseline in the metric's own unit where zero is a possible value (`scale`). `points` are the blocks'
    own (block, estimate), to be drawn beside the interval. `baseline` and `value` are the means of the absolute
    figures over the same blocks, so that `estimate` follows from them. `p` is of the t test, `p_adjusted` after the
    corrections for many comparisons and looks; `p_equivalent` is of the equivalence test, adjusted too. None where the
    blocks do not suffice. `outliers` are blocks far from the others; they count like all blocks. `blocks_needed` is the
    total number of blocks at which an undecided case would likely be decided; None when it is decided, or when no
    sensible number would do.
    """

    case: str
    workload: str
    metric: str
    scale: Scale
    primary: bool
    baseline: float
    value: float
    estimate: float
    low: float | None
    high: float | None
    p: float | None
    p_adjusted: float | None
    p_equivalent: float | None
    verdict: Verdict
    blocks: int
    blocks_needed: int | None
    points: tuple[tuple[int, float], ...] = ()
    outliers: tuple[int, ...] = ()
    is_small: bool = False
    """The equivalence test shows that the difference, if there is any, is below the margin."""

    @property
    def ratio(self) -> float | None:
        """Case over baseline; None for a metric that is judged by differences."""
        return self.estimate if self.scale == "ratio" else None

    @property
    def change(self) -> float:
        """The estimate as a change: percent of the baseline, or points of the metric's own unit."""
        return change_of(self.scale, self.estimate)

    @property
    def change_low(self) -> float | None:
        """Lower bound of `change`."""
        return None if self.low is None else change_of(self.scale, self.low)

    @property
    def change_high(self) -> float | None:
        """Upper bound of `change`."""
        return None if self.high is None else change_of(self.scale, self.high)

    @property
    def blocks_more(self) -> int | None:
        """Blocks to add to those measured before this case is likely decided."""
        return None if self.blocks_needed is None else max(self.blocks_needed - self.blocks, 1)


@dataclass(frozen=True, slots=True)
class NoiseFloor:
    """The baseline against itself (A/A): what a comparison shows when nothing was changed.

    `estimate`, `low`, `high` are those of later over earlier baseline runs of the same block. `spread` is the
    standard deviation of one such comparison and `detectable` the smallest change that these blocks would
    show in 80 of 100 studies, as the only comparison; both in percent of the baseline, or in the metric's own
    unit for differences.
    """

    workload: str
    metric: str
    scale: Scale
    blocks: int
    estimate: float
    low: float | None
    high: float | None
    spread: float | None
    detectable: float | None

    @property
    def change(self) -> float:
        """The estimate as percent of the baseline, or in the metric's own unit."""
        return change_of(self.scale, self.estimate)

    @property
    def clean(self) -> bool:
        """Whether the baseline agrees with itself."""
        nothing = 1.0 if self.scale == "ratio" else 0.0
        return self.low is None or self.high is None or self.low <= nothing <= self.high


@dataclass(frozen=True, slots=True)
class Drift:
    """How a metric moved with a run's place in its block, case effects taken out.

    Per cent (or unit) from the first place of a block to the last, with its 95 % interval. Shuffled order keeps
    it out of the verdicts' averages; it widens their intervals.
    """

    workload: str
    metric: str
    scale: Scale
    change: float
    low: float
    high: float

    @property
    def shown(self) -> bool:
        """Whether the interval excludes zero."""
        return not self.low <= 0 <= self.high


@dataclass(frozen=True, slots=True)
class Judgement:
    """Everything that the observations of a study allow to say about its cases.

    `margin` is the relative difference below which a difference does not matter (0.05 = 5 %). `warnings` name
    what may shift a verdict, `notes` what the intervals account for, one sentence each. `looks` tells when the results
    were looked at.
    """

    baseline: str
    margin: float
    alpha: float
    effects: tuple[Effect, ...]
    noise_floor: tuple[NoiseFloor, ...]
    drifts: tuple[Drift, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    looks: Looks = field(default_factory=Looks)

    def effect(self, case: str, workload: str, metric: str | None = None) -> Effect | None:
        """The effect of a case under a workload; without a metric, on the workload's primary one."""
        return next(
            (
                effect
                for effect in self.effects
                if effect.case == case
                and effect.workload == workload
                and (effect.primary if metric is None else effect.metric == metric)
            ),
            None,
        )

    def primary(self) -> Iterator[Effect]:
        """The effects on each workload's primary metric: the verdict table."""
        return (effect for effect in self.effects if effect.primary)

    def floor(self, workload: str, metric: str) -> NoiseFloor | None:
        """The noise floor of a metric, if the baseline ran more than once per block."""
        return next(
            (item for item in self.noise_floor if (item.workload, item.metric) == (workload, metric)), None
        )


@dataclass(frozen=True, slots=True)
class Deviance:
    """The published change of a case against its control, in percent, beside the measured one with its 95 % interval.

    `floor` is what the control shows against itself (A/A) under the same workload, `floor_detectable` the smallest
    change that these blocks would show; None where the control ran once per block.
    """

    case: str
    workload: str
    metric: str
    published: float
    measured: float
    low: float | None
    high: float | None
    verdict: Verdict
    blocks: int
    floor: float | None = None
    floor_detectable: float | None = None


@dataclass(frozen=True, slots=True)
class ClaimVerdict:
    """A published finding beside what was measured here.

    `reason` says in figures why it differs, why hardware is needed or why it was not tested; when it agrees, which
    figures agree. `cases` are the study's cases that put it to the test, `against` the one that they were held against;
    empty where only the cases' own figures count.
    `deviances` are its single figures, where the publication gives any.
    """

    claim: str
    subject: str
    change: str
    workload: str
    published: str
    measured: str
    verdict: ClaimOutcome
    reason: str
    cases: tuple[str, ...] = ()
    against: str = ""
    deviances: tuple[Deviance, ...] = ()


def change_of(scale: Scale, value: float) -> float:
    """An estimate as percent of the baseline, or as a difference in the metric's own unit."""
    return 100 * (value - 1) if scale == "ratio" else value
