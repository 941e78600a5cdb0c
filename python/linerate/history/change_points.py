"""Changes of level in a series, each with the probability that chance alone shows one so clear.

Method: a permutation test of the largest weighted CUSUM (J. Antoch, M. Huskova: Permutation tests in change point
analysis, Statistics & Probability Letters 53 (2001) 37-46), on the normal scores of the ranks (B. L. van der Waerden,
Indagationes Mathematicae 14 (1952) 453-458), so that one stray run does not decide. The place of a change is the split
with the least absolute deviations from the medians of both sides (J. Bai: Least absolute deviation estimation of a
shift, Econometric Theory 11 (1995) 403-436). After a change is found, both parts are tested in the same way (binary
segmentation, L. Vostrikova: Detecting "disorder" in multidimensional random processes, Soviet Mathematics Doklady 24
(1981) 55-59).

The test assumes that without a change every order of the values is equally likely. It holds for any distribution.
A slow drift is a change too. A level has at least three points, so a line of fewer than six points has none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import count

import numpy as np
from numpy.typing import NDArray
from scipy import special  # type: ignore[import-untyped]

from linerate.history.model import LevelChange

LEVEL_POINTS_MIN = 3
PERMUTATIONS = 9_999
_SEED = 53
_CELLS_MAX = 1 << 21  # of a matrix of permutations held at once: 16 MiB

Array = NDArray[np.float64]


def change_points(values: Sequence[float], confidence: float = 0.99) -> tuple[LevelChange, ...]:
    """The changes of level with p <= 1 - confidence, in order."""
    series = np.asarray(values, dtype=np.float64)
    found = sorted(_segmented(series, 0, 1 - confidence))
    bounds = [0, *(index for index, _ in found), len(series)]
    return tuple(
        LevelChange(
            index=index,
            before=float(np.median(series[bounds[number] : index])),
            after=float(np.median(series[index : bounds[number + 2]])),
            p=p,
        )
        for number, (index, p) in enumerate(found)
    )


def points_needed(confidence: float) -> int:
    """The number of points from which a clean step in the middle of a line reaches the confidence.

    Of n points, 2 in C(n, n/2) orders show the step as clearly: the step itself, and the opposite one.
    """
    return next(n for n in count(2 * LEVEL_POINTS_MIN, 2) if 2 / math.comb(n, n // 2) <= 1 - confidence)


def p_of_change(values: Sequence[float]) -> float | None:
    """How often chance alone shows so clear a change; None for a series that is too short or constant."""
    series = np.asarray(values, dtype=np.float64)
    if len(series) < 2 * LEVEL_POINTS_MIN or np.ptp(series) == 0:
        return None
    scores = _scores(series)
    observed = float(_cusums(scores[np.newaxis, :]).max())
    null = _null(tuple(sorted(scores.tolist())))
    larger = int(np.count_nonzero(null >= observed * (1 - 1e-9)))
    return (1 + larger) / (1 + PERMUTATIONS)


def _segmented(series: Array, offset: int, alpha: float) -> Iterator[tuple[int, float]]:
    p = p_of_change(series.tolist())
    if p is not None and p <= alpha:
        split = _place(series)
        yield offset + split, p
        yield from _segmented(series[:split], offset, alpha)
        yield from _segmented(series[split:], offset + split, alpha)


def _place(series: Array) -> int:
    """The split whose sides lie closest to their medians."""
    splits = range(LEVEL_POINTS_MIN, len(series) - LEVEL_POINTS_MIN + 1)
    return min(splits, key=lambda split: _deviation(series[:split]) + _deviation(series[split:]))


def _deviation(part: Array) -> float:
    return float(np.abs(part - np.median(part)).sum())


def _scores(series: Array) -> Array:
    """The normal quantile of each rank over n + 1; equal values share the mean of their ranks."""
    _, place, counts = np.unique(series, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks = (last - (counts - 1) / 2)[place]
    scores: Array = special.ndtri(ranks / (len(series) + 1))
    return scores


def _cusums(scores: Array) -> Array:
    """For each row and k: |sum of the first k, less its expectation|, over its standard deviation times a constant."""
    points = scores.shape[1]
    k = np.arange(LEVEL_POINTS_MIN, points - LEVEL_POINTS_MIN + 1)
    sums = np.cumsum(scores - scores.mean(axis=1, keepdims=True), axis=1)[:, k - 1]
    weighted: Array = np.abs(sums) / np.sqrt(k * (points - k))
    return weighted


@lru_cache(maxsize=256)
def _null(scores: tuple[float, ...]) -> Array:
    """The statistic under random orders of these scores. Without ties it depends on their number only."""
    dice = np.random.default_rng(_SEED)
    row = np.asarray(scores)
    at_once = max(1, _CELLS_MAX // len(row))
    parts = []
    for begin in range(0, PERMUTATIONS, at_once):
        rows = np.tile(row, (min(at_once, PERMUTATIONS - begin), 1))
        parts.append(_cusums(dice.permuted(rows, axis=1)).max(axis=1))
    return np.concatenate(parts)
