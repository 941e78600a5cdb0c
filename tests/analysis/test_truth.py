"""Verdicts against the truth: a thousand simulated studies whose effects are known.

The bars are what the product promises: false positives at most 5 % after correction, effects of twice the margin
found in 95 % or more, 95 % intervals that cover in 93 to 97 %, and equivalence claimed falsely in at most 5 %. So that
the bars are known to be able to fail, wrong methods are held against them too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from linerate.analysis.verdict import ALPHA, MARGIN, judge
from linerate.analysis.verdict.decide import Measured, decide, measure
from scipy import stats

from tests.support.samples.noisy_studies import Noise, Studies, make_studies

STUDIES = 1_000
LOW, HIGH = math.log(1 - MARGIN), math.log(1 + MARGIN)
UP, DOWN = math.log(1 + 2 * MARGIN), math.log(1 - 2 * MARGIN)
# five cases that do nothing, three of twice the margin, one exactly on the margin
EFFECTS = np.array([0.0, 0.0, 0.0, 0.0, 0.0, UP, UP, DOWN, HIGH])
NOTHING = np.zeros(len(EFFECTS))
CALM = Noise(correlation=0.0, drift=0.0, drift_varies=0.0, stray_share=0.0)
WILD = Noise(run=0.05, correlation=0.6, drift=0.05, drift_varies=0.03)
SEED = 17


@dataclass(frozen=True)
class Rates:
    """Shares in percent; NaN where no case can tell.

    Of the cases without an effect: `called` better or worse, and `shown` to differ, however little. Of the studies:
    with `any_shown` such case. Of the effects of twice the margin: `found`, with the right sign. Of all: intervals
    that `cover` the truth. Of the cases on the margin: called `equivalent`.
    """

    called: float
    shown: float
    any_shown: float
    found: float
    cover: float
    equivalent: float

    def broken_bars(self) -> set[str]:
        """The promises that these rates break."""
        # of a thousand studies, so uncertain; three standard errors, for many scenarios are asked
        studies_max = 5.0 + 3 * 100 * math.sqrt(0.05 * 0.95 / STUDIES)
        alone = math.isnan(
            self.found
        )  # no true effect in the family: correction must protect the study as a whole
        broken = {
            "called": self.called > 5.0,
            "shown": self.shown > 5.0,
            "any shown": alone and self.any_shown > studies_max,
            "found": self.found < 95.0,
            "cover": not 93.0 <= self.cover <= 97.0,
            "equivalent": self.equivalent > 5.0,
        }
        return {bar for bar, is_broken in broken.items() if is_broken}


def rates(simulated: Studies, found: Measured, *, corrected: bool = True) -> Rates:
    """Decide all studies and compare with the truth."""
    truth = simulated.effects
    cases = len(truth) if corrected else 1  # a family of one is not corrected
    table = (-1, len(truth))
    low, high = found.low.reshape(table), found.high.reshape(table)
    decision = decide(
        *(values.reshape(-1, cases) for values in (found.centre, found.p, found.p_equivalent)),
        (LOW, HIGH),
        ALPHA,
    )
    direction, shown = decision.direction.reshape(table), decision.p_adjusted.reshape(table) <= ALPHA
    nothing, twice = truth == 0, np.isin(truth, (UP, DOWN))
    return Rates(
        called=percent(direction[:, nothing] != 0),
        shown=percent(shown[:, nothing]),
        any_shown=percent(shown[:, nothing].any(axis=1)),
        found=percent(direction[:, twice] == np.sign(truth[twice])),
        cover=percent((low <= truth) & (truth <= high)),
        equivalent=percent(decision.equivalent.reshape(table)[:, truth == HIGH]),
    )


def percent(flags: np.ndarray) -> float:
    return 100 * float(flags.mean()) if flags.size else math.nan


def measured(simulated: Studies) -> Measured:
    return measure(simulated.labels(), (LOW, HIGH), len(simulated.effects), ALPHA)


@pytest.mark.parametrize(
    ("blocks", "baselines", "test"),
    [(6, 1, "t"), (6, 2, "permutation"), (7, 2, "permutation"), (8, 1, "t"), (12, 1, "permutation")],
)
@pytest.mark.parametrize("noise", [Noise(), CALM], ids=["realistic", "calm"])
def test_the_promises_hold(noise: Noise, blocks: int, baselines: int, test: str) -> None:
    simulated = make_studies(
        EFFECTS, studies=STUDIES, blocks=blocks, baselines=baselines, noise=noise, seed=SEED
    )
    found = measured(simulated)
    assert found.test == test
    result = rates(simulated, found)
    assert not result.broken_bars(), f"seed {SEED}: {result}"


@pytest.mark.parametrize(("blocks", "baselines"), [(2, 2), (3, 1), (3, 2), (5, 2), (6, 2), (7, 2), (8, 1)])
@pytest.mark.parametrize("noise", [Noise(), CALM, WILD], ids=["realistic", "calm", "wild"])
def test_nothing_is_found_where_nothing_is(noise: Noise, blocks: int, baselines: int) -> None:
    """However few the blocks and however wild the noise: then cases stay undecided, never wrongly decided."""
    simulated = make_studies(
        NOTHING, studies=STUDIES, blocks=blocks, baselines=baselines, noise=noise, seed=SEED
    )
    result = rates(simulated, measured(simulated))
    assert not result.broken_bars(), f"seed {SEED}: {result}"


@pytest.mark.parametrize("blocks", [3, 4, 5])
def test_few_blocks_are_honest_but_may_leave_an_effect_undecided(blocks: int) -> None:
    simulated = make_studies(EFFECTS, studies=STUDIES, blocks=blocks, seed=SEED)
    result = rates(simulated, measured(simulated))
    assert result.broken_bars() <= {"found"}, f"seed {SEED}: {result}"
    assert result.found > 60


def test_an_effect_under_wild_noise_is_undecided_rather_than_wrong() -> None:
    simulated = make_studies(EFFECTS, studies=STUDIES, blocks=6, noise=WILD, seed=SEED)
    result = rates(simulated, measured(simulated))
    assert result.broken_bars() == {"found"}, f"seed {SEED}: {result}"


def test_the_bootstrap_covers_from_twenty_blocks_on() -> None:
    """Slow, hence few studies: of 300 the intervals cover 95.6 %; here three standard errors are allowed."""
    simulated = make_studies(EFFECTS, studies=30, blocks=20, baselines=1, seed=SEED)
    found = measured(simulated)
    assert found.interval == "bca"
    intervals = simulated.effects.size * 30
    assert rates(simulated, found).cover > 95 - 3 * 100 * math.sqrt(0.05 * 0.95 / intervals)


def normal_quantiles(simulated: Studies, found: Measured) -> tuple[Measured, bool]:
    """Intervals and p as if the spread were known."""
    reach = stats.norm.isf(ALPHA / 2) * found.error
    p = 2 * stats.norm.sf(np.abs(found.centre / found.error))
    return replace(found, low=found.centre - reach, high=found.centre + reach, p=p), True


def no_correction(simulated: Studies, found: Measured) -> tuple[Measured, bool]:
    """Every case at 5 %, however many there are."""
    return found, False


def intervals_as_repeats(simulated: Studies, found: Measured) -> tuple[Measured, bool]:
    """Ten intervals of each run taken for ten runs."""
    error = found.error / math.sqrt(10)
    reach = stats.t.isf(ALPHA / 2, 10 * simulated.runs.shape[1] - 1) * error
    p = 2 * stats.norm.sf(np.abs(found.centre / error))
    return replace(found, error=error, low=found.centre - reach, high=found.centre + reach, p=p), True


def baseline_of_other_blocks(simulated: Studies, found: Measured) -> tuple[Measured, bool]:
    """Each run against the baseline of the whole study."""
    runs = simulated.runs.copy()
    ours = runs[:, :, : simulated.baselines]
    ours[:] = ours.mean(axis=(1, 2), keepdims=True)
    return measured(replace(simulated, runs=runs)), True


def fixed_order(simulated: Studies, found: Measured) -> tuple[Measured, bool]:
    """The baseline first in every block, and the cases always in the same order."""
    return measured(
        make_studies(simulated.effects, studies=STUDIES, blocks=6, seed=SEED, shuffled=False)
    ), True


@pytest.mark.parametrize(
    ("method", "effects", "broken"),
    [
        (normal_quantiles, NOTHING, {"any shown", "cover"}),
        (no_correction, NOTHING, {"any shown"}),
        (intervals_as_repeats, EFFECTS, {"shown", "cover"}),
        (baseline_of_other_blocks, EFFECTS, {"cover"}),
        (fixed_order, EFFECTS, {"shown", "cover"}),
    ],
)
def test_the_bars_catch_a_wrong_method(
    method: Callable[[Studies, Measured], tuple[Measured, bool]], effects: np.ndarray, broken: set[str]
) -> None:
    simulated = make_studies(effects, studies=STUDIES, blocks=6, seed=SEED)
    right = measured(simulated)
    assert not rates(simulated, right).broken_bars()
    wrong, corrected = method(simulated, right)
    assert broken <= rates(simulated, wrong, corrected=corrected).broken_bars()


def test_judge_says_what_the_arrays_say() -> None:
    """The simulations measure whole arrays; a study goes through `judge`. Both must be the same method."""
    simulated = make_studies(EFFECTS, studies=20, blocks=6, seed=SEED)
    found = measured(simulated)
    cases = len(EFFECTS)
    for study in range(20):
        judgement = judge(simulated.observations(study), "baseline", {"w": "iops"})
        rows = slice(study * cases, (study + 1) * cases)
        decision = decide(found.centre[rows], found.p[rows], found.p_equivalent[rows], (LOW, HIGH), ALPHA)
        assert len(judgement.effects) == cases
        for case, effect in enumerate(judgement.effects):
            assert effect.case == f"case{case}"
            assert effect.low == pytest.approx(math.exp(found.low[rows][case]))
            assert effect.p_adjusted == pytest.approx(decision.p_adjusted[case])
            expected = "equivalent" if decision.equivalent[case] else ("worse", "undecided", "better")
            assert effect.verdict == (
                expected if isinstance(expected, str) else expected[int(decision.direction[case]) + 1]
            )
