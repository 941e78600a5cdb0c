"""The arithmetic of verdicts against scipy's own, where scipy has it, and against what is known by hand."""

from __future__ import annotations

import numpy as np
import pytest
from linerate.analysis.verdict.decide import decide, holm
from linerate.analysis.verdict.estimate import estimate, p_different, p_equivalent, t_interval
from linerate.analysis.verdict.looks import Looks, plan_looks
from linerate.analysis.verdict.power import blocks_needed, detectable
from scipy import stats

RNG = np.random.default_rng(3)


@pytest.mark.parametrize("blocks", [2, 3, 6, 12])
def test_rows_are_the_t_test_of_scipy(blocks: int) -> None:
    points = RNG.normal(0.5, 1, (4, blocks))
    expected = stats.ttest_1samp(points, 0, axis=1)
    bounds = expected.confidence_interval()
    found = estimate(points)
    low, high = t_interval(found, 0.05)
    assert p_different(found) == pytest.approx(expected.pvalue)
    assert low == pytest.approx(bounds.low)
    assert high == pytest.approx(bounds.high)
    above = stats.ttest_1samp(points, -1, axis=1, alternative="greater").pvalue
    below = stats.ttest_1samp(points, 2, axis=1, alternative="less").pvalue
    assert p_equivalent(found, -1.0, 2.0) == pytest.approx(np.maximum(above, below))


def test_one_block_has_no_error() -> None:
    found = estimate(np.array([[0.1], [0.2]]))
    assert found.centre.tolist() == [0.1, 0.2]
    assert found.freedom == 0
    assert np.isnan(p_different(found)).all()
    assert np.isnan(t_interval(found, 0.05)[0]).all()


def test_the_rounding_of_whole_ios_widens_what_never_varies() -> None:
    """110 I/Os in each run: one more or less is 0.9 %, and equal counts do not prove equal rates."""
    rounding = np.hypot(1, np.sqrt(0.5)) / np.sqrt(12) / 110
    low, high = t_interval(estimate(np.zeros((1, 3)), rounding), 0.05)
    assert high[0] == pytest.approx(4.303 * rounding / np.sqrt(3), rel=1e-3)
    assert low[0] == -high[0]
    varied = np.array([[0.0, 0.1, 0.2]])
    assert estimate(varied, rounding).error == estimate(varied).error


def test_test_and_interval_agree() -> None:
    found = estimate(RNG.normal(0.4, 1, (2_000, 5)))
    low, high = t_interval(found, 0.05)
    assert ((p_different(found) <= 0.05) == ((low > 0) | (high < 0))).all()


def test_the_correction_is_holms_and_leaves_out_what_has_no_p() -> None:
    p = np.array([0.03, np.nan, 0.01, 0.04])
    assert holm(p)[[0, 2, 3]] == pytest.approx([0.06, 0.03, 0.06])
    assert np.isnan(holm(p)[1])
    assert holm(np.stack([p, p]))[1][[0, 2, 3]] == pytest.approx([0.06, 0.03, 0.06])
    assert holm(np.array([0.9, 0.8])).tolist() == [1.0, 1.0]


def test_a_verdict_has_two_answers() -> None:
    """A difference that is certain and small is no secret; one that is large and uncertain is no proof."""
    found = decide(
        centre=np.array([0.10, 0.02, 0.00, 0.10]),
        p=np.array([1e-5, 1e-5, 0.9, 0.5]),
        p_inside=np.array([1.0, 1e-5, 1e-5, 0.9]),
        margins=(-0.05, 0.05),
        alpha=0.05,
    )
    assert found.direction.tolist() == [1, 1, 0, 0]
    assert found.matters.tolist() == [True, False, False, True]
    assert found.equivalent.tolist() == [False, True, True, False]


def test_the_share_of_a_look_tightens_its_test() -> None:
    p = np.array([0.03])
    assert decide(np.array([0.1]), p, p, (-0.05, 0.05), 0.05).direction[0] == 1
    assert decide(np.array([0.1]), p, p, (-0.05, 0.05), 0.05, shares=0.5).direction[0] == 0


@pytest.mark.parametrize("plan", [(3, 3), (3, 6), (4, 12), (10, 10), (3, 40)])
def test_looks_never_spend_more_than_there_is(plan: tuple[int, int]) -> None:
    looks = plan_looks(*plan)
    assert looks.blocks[0] == plan[0]
    assert looks.blocks[-1] == plan[1]
    assert sum(looks.shares) == pytest.approx(0.8)
    assert looks.shares[-1] == max(looks.shares)
    end = plan[1]
    extended = plan_looks(*plan, [(end + 3 * more, end + 3 * (more + 1)) for more in range(8)])
    assert sum(extended.shares) < 1
    assert extended.blocks[-1] == end + 24


def test_an_early_extension_keeps_the_share_that_was_not_used() -> None:
    looks = plan_looks(3, 6, [(4, 9)])
    assert looks.blocks == (3, 4, 9)
    assert sum(looks.shares) == pytest.approx(0.8)


def test_a_comparison_has_the_share_of_the_look_that_decided_it() -> None:
    looks = Looks((3, 6), (0.1, 0.7))
    assert [looks.share(blocks) for blocks in (2, 3, 4, 6, 9)] == [0.1, 0.1, 0.7, 0.7, 0.7]
    assert [looks.before(block) for block in (1, 3, 4, 7)] == [None, None, 3, 6]
    assert looks.level(3, 0.05) == 0.05
    assert looks.level(6, 0.05) == pytest.approx(0.035)
    assert Looks().share(5) == 1.0


def test_more_noise_needs_more_blocks() -> None:
    margins = (-0.05, 0.05)
    needs = [blocks_needed(0.03, spread, margins, 0.05, 3) for spread in (0.005, 0.03, 0.06)]
    assert needs == sorted(needs, key=lambda need: need or 0)
    assert needs[0] == 4
    assert needs[2] is not None
    assert needs[2] > 6
    assert blocks_needed(0.0, 0.03, margins, 0.05, 3) is not None
    assert blocks_needed(0.001, 10.0, margins, 0.05, 3) is None
    assert blocks_needed(0.08, float("nan"), margins, 0.05, 1) is None


@pytest.mark.parametrize("blocks", [2, 3, 4, 6, 12])
@pytest.mark.parametrize("alpha", [0.05, 0.04, 0.001])
def test_the_detectable_change_is_detected_in_80_of_100_studies(blocks: int, alpha: float) -> None:
    change = detectable(0.01, blocks, alpha)
    assert change is not None
    points = np.random.default_rng(1).normal(change, 0.01, (20_000, blocks))
    assert (p_different(estimate(points)) <= alpha).mean() == pytest.approx(0.80, abs=0.012)


def test_more_blocks_detect_less() -> None:
    changes = [detectable(0.02, blocks, 0.05) for blocks in (2, 3, 4, 5, 8, 12)]
    assert changes == sorted(changes, key=lambda change: -(change or 0))
    assert detectable(0.02, 1, 0.05) is None
    assert detectable(0.0, 3, 0.05) == 0.0
