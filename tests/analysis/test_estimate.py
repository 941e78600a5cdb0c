"""The arithmetic of verdicts against scipy's own, where scipy has it, and against what is known by hand."""

from __future__ import annotations

import numpy as np
import pytest
from linerate.analysis.verdict.decide import correct
from linerate.analysis.verdict.estimate import (
    bca_interval,
    estimate,
    location,
    p_different,
    p_equivalent,
    spread_of,
    t_interval,
)
from linerate.analysis.verdict.permutation import p_permutation, relabelled, smallest_p, useful
from linerate.analysis.verdict.power import blocks_needed, detectable
from scipy import stats

RNG = np.random.default_rng(3)


@pytest.mark.parametrize("blocks", [2, 3, 5])
def test_few_blocks_are_the_plain_t_test(blocks: int) -> None:
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


@pytest.mark.parametrize(("blocks", "ends"), [(6, 1), (10, 1), (19, 1), (20, 2), (35, 3)])
def test_more_blocks_are_trimmed(blocks: int, ends: int) -> None:
    points = RNG.normal(size=(3, blocks))
    assert location(points) == pytest.approx(np.sort(points)[:, ends : blocks - ends].mean(axis=1))
    assert estimate(points).centre == pytest.approx(location(points))
    assert estimate(points).freedom == blocks - 2 * ends - 1


@pytest.mark.parametrize("blocks", [6, 8, 12])
def test_the_trimmed_test_keeps_its_level_with_normal_noise(blocks: int) -> None:
    p = p_different(estimate(np.random.default_rng(1).normal(size=(100_000, blocks))))
    assert 0.043 < (p < 0.05).mean() < 0.053
    assert 0.004 < (p < 0.005).mean() < 0.006


@pytest.mark.parametrize("blocks", [4, 6, 12])
def test_the_spread_of_one_block_is_recovered(blocks: int) -> None:
    found = estimate(np.random.default_rng(1).normal(0, 2.0, (20_000, blocks)))
    spreads = [spread_of(float(error), blocks) for error in found.error]
    assert np.sqrt(np.mean(np.square(spreads))) == pytest.approx(2.0, rel=0.15)


def test_bca_is_asymmetric_where_the_points_are() -> None:
    low, high = bca_interval(np.exp(RNG.normal(size=(1, 24))), 0.05)
    centre = low + (high - low) / 2
    assert low < high
    assert centre > low


def test_labels_of_one_against_one_are_the_two_signs() -> None:
    assert relabelled([3.0], [1.0]).tolist() == [2.0, -2.0]


def test_labels_of_one_against_two_are_the_three_choices() -> None:
    assert relabelled([9.0], [1.0, 5.0]) == pytest.approx([6.0, -6.0, 0.0])


def scipys_permutation_p(difference: np.ndarray) -> float:
    """Sign flips; as in ours, blocks of extreme range count for less."""
    widest = 1.2 * np.median(np.abs(difference))
    found = stats.permutation_test(
        (np.clip(difference, -widest, widest), np.zeros(len(difference))),
        lambda a, b, axis: np.mean(a - b, axis=axis),
        permutation_type="samples",
        vectorized=True,
        rng=np.random.default_rng(1),
    )
    return float(found.pvalue)


@pytest.mark.parametrize(("blocks", "tolerance"), [(9, 1e-9), (30, 0.02)], ids=["all", "sampled"])
def test_the_permutation_test_is_scipys_where_there_is_one_baseline(blocks: int, tolerance: float) -> None:
    for _ in range(5):
        case, baseline = RNG.normal(0.4, 1, blocks), RNG.normal(0, 1, blocks)
        labels = [relabelled([a], [b])[None, :] for a, b in zip(case, baseline, strict=True)]
        assert p_permutation(labels)[0] == pytest.approx(scipys_permutation_p(case - baseline), abs=tolerance)


def test_blocks_with_different_labels_are_counted_whole() -> None:
    """Two blocks of three runs and one of two: 3 * 3 * 2 labellings, of which only the observed is as extreme."""
    labels = [relabelled([5.0], [0.0, 0.1])[None, :]] * 2 + [relabelled([5.0], [0.0])[None, :]]
    assert p_permutation(labels)[0] == pytest.approx(1 / 18)


def test_blocks_without_any_effect_leave_the_verdict_to_the_others() -> None:
    """Retransmits are often zero on both sides: eight blocks that all point one way are 2 / 2 ** 8."""
    silent = [relabelled([0.0], [0.0])[None, :]] * 12
    speaking = [relabelled([0.3 + 0.01 * block], [0.0])[None, :] for block in range(8)]
    assert p_permutation([*silent[:4], *speaking])[0] == pytest.approx(2 / 2**8)
    assert p_permutation(silent)[0] == 1


def test_the_permutation_test_is_not_asked_what_it_cannot_answer() -> None:
    assert smallest_p([2] * 5) == pytest.approx(0.0625)
    assert not useful([2] * 5, 1, 0.05)
    assert useful([2] * 7, 1, 0.05)
    assert useful([3] * 6, 9, 0.05)
    assert not useful([3] * 6, 30, 0.05)


def test_the_correction_leaves_out_what_has_no_p() -> None:
    p = np.array([0.01, np.nan, 0.02, 0.5])
    expected = stats.false_discovery_control([0.01, 0.02, 0.5])
    assert correct(p)[[0, 2, 3]] == pytest.approx(expected)
    assert np.isnan(correct(p)[1])
    assert correct(np.stack([p, p]))[1][[0, 2, 3]] == pytest.approx(expected)


def test_more_noise_needs_more_blocks() -> None:
    margins = (-0.05, 0.05)
    needs = [blocks_needed(0.08, spread, margins, 0.05, 3) for spread in (0.005, 0.03, 0.06)]
    assert needs == sorted(needs, key=lambda need: need or 0)
    assert needs[0] == 4
    assert needs[2] is not None
    assert needs[2] > 6
    assert blocks_needed(0.0, 0.03, margins, 0.05, 3) is not None
    assert blocks_needed(0.05, 0.03, margins, 0.05, 3) is None
    assert blocks_needed(0.08, float("nan"), margins, 0.05, 1) is None


def test_more_blocks_detect_less() -> None:
    changes = [detectable(0.02, blocks, 0.05) for blocks in (3, 4, 5, 8, 12)]
    assert changes == sorted(changes, key=lambda change: -(change or 0))
    assert detectable(0.02, 1, 0.05) is None
