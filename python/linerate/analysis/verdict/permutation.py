"""The permutation test: how often does chance alone do as well?

If a case does nothing, then which run of a block was the case and which the baseline is a label without meaning:
the order was drawn at random. So the labels are exchanged inside every block in all possible ways, and p is the share
of the labellings whose mean effect is at least as large as the one observed. No distribution is assumed.

A block that a stray run tore apart counts for less in that mean: its effects are scaled down to 1.2 times
the range of labelled effects that is typical for the blocks. The range does not depend on which run is called the
case, so the test stays exact.

With one baseline run per block a labelling is a choice of signs: 2 ** blocks of them, and p cannot fall below
2 / 2 ** blocks. A second baseline run per block gives three labels: 3 ** blocks. Five blocks with one baseline
cannot reach 5 % at all; that is why `useful` asks first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from linerate.analysis.verdict.estimate import Array

# Finer than the correction demands of a lone effect, so that one stray run does not decide.
HEADROOM = 2
LABELLINGS_MAX = 20_000  # beyond, that many are drawn
_SEED = 20_001
_CHUNK = 1 << 22  # sums held at once: 32 MiB
_ROUNDING = 1 - 1e-9
_RANGE_MAX = 1.2  # of the median block's


def relabelled(case: Sequence[float], baseline: Sequence[float]) -> Array:
    """The block's effect under each choice of which runs were the case's; the first is as observed.

    `case` and `baseline` are the logarithms (or values) of the block's runs.
    """
    runs = np.array([*case, *baseline])
    chosen = list(combinations(range(len(runs)), len(case)))
    mean = runs.mean()
    # mean(case) - mean(baseline) follows from the case's mean alone, for the block's mean is fixed
    stretch = len(runs) / len(baseline)
    return np.array([(runs[list(picked)].mean() - mean) * stretch for picked in chosen])


def smallest_p(labels_per_block: Sequence[int]) -> float:
    """The smallest p that these numbers of labels can give (of a sample, where all are too many)."""
    return 2 / min(math.prod(labels_per_block), LABELLINGS_MAX)


def useful(labels_per_block: Sequence[int], family: int, alpha: float) -> bool:
    """Whether the test can find a lone effect among `family` cases after correction, with room to spare."""
    return smallest_p(labels_per_block) * HEADROOM <= alpha / family


def p_permutation(labels: Sequence[Array]) -> Array:
    """Two-sided p of each row.

    Args:
        labels: one array per block, (rows, labels of that block), as `relabelled` gives them.
    """
    labels = _without_extremes(labels)
    rows = labels[0].shape[0]
    labellings = math.prod(block.shape[1] for block in labels)
    sums_of = _all_sums if labellings <= LABELLINGS_MAX else _sampled_sums
    step = max(_CHUNK // min(labellings, LABELLINGS_MAX), 1)
    parts = []
    for start in range(0, rows, step):
        sums = np.abs(sums_of([block[start : start + step] for block in labels]))
        parts.append((sums >= sums[:, :1] * _ROUNDING).mean(axis=1))
    return np.concatenate(parts)


def _without_extremes(labels: Sequence[Array]) -> list[Array]:
    """The labels of every block, those of blocks of extreme range scaled down. A block without a range has no say."""
    ranges = np.stack([np.ptp(block, axis=1) for block in labels], axis=1)
    ranges[ranges == 0] = np.nan
    ranges[np.isnan(ranges).all(axis=1)] = 1.0
    allowed = _RANGE_MAX * np.nanmedian(ranges, axis=1, keepdims=True)
    weights = np.where(ranges > allowed, allowed / ranges, 1.0)
    return [block * weights[:, index, None] for index, block in enumerate(labels)]


def _all_sums(labels: Sequence[Array]) -> Array:
    """The sum over blocks of every labelling, the observed one first."""
    sums = labels[0]
    for block in labels[1:]:
        sums = (sums[:, :, None] + block[:, None, :]).reshape(len(block), -1)
    return sums


def _sampled_sums(labels: Sequence[Array]) -> Array:
    rng = np.random.default_rng(_SEED)
    sums = np.zeros((len(labels[0]), LABELLINGS_MAX))
    for block in labels:
        drawn = rng.integers(0, block.shape[1], LABELLINGS_MAX)
        drawn[0] = 0
        sums += block[:, drawn]
    return sums
