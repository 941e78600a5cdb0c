"""From per-block figures to verdicts: measured, corrected for many cases, and held against the margin.

`measure` picks the test and the interval that the number of blocks allows. Rows that have the same blocks and labels
are measured together, as arrays: the cases of a study, or those of a thousand simulated studies.

`decide` names the verdicts, for a storage administrator, to whom an effect below the margin does not matter:

    better, worse   an effect is shown (p after correction at most alpha) and its estimate is beyond the margin
    equivalent      the effect is shown to lie inside the margin (TOST, corrected likewise)
    undecided       neither: more blocks are needed

An effect can be shown and small at once: then it is equivalent, and its interval says how small. The corrections
are those of Benjamini and Hochberg: of the cases called better or worse, at most alpha are so by chance alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats  # type: ignore[import-untyped]

from linerate.analysis.verdict.estimate import (
    BCA_FROM_BLOCKS,
    Array,
    bca_interval,
    estimate,
    p_different,
    p_equivalent,
    t_interval,
)
from linerate.analysis.verdict.model import Interval, Test
from linerate.analysis.verdict.permutation import p_permutation, useful


@dataclass(frozen=True, slots=True)
class Measured:
    """Figures per row; all but `centre` are NaN with a single block. Which test and interval, for all rows."""

    centre: Array
    error: Array
    low: Array
    high: Array
    p: Array
    p_equivalent: Array
    test: Test
    interval: Interval


@dataclass(frozen=True, slots=True)
class Decision:
    """Adjusted p values, and per row +1 (beyond the upper margin), -1 (below the lower), 0; or equivalent."""

    p_adjusted: Array
    p_equivalent: Array
    direction: NDArray[np.int8]
    equivalent: NDArray[np.bool_]


def measure(
    labels: Sequence[Array], margins: tuple[Array | float, Array | float], family: int, alpha: float
) -> Measured:
    """Measure rows.

    Args:
        labels: one array per block, (rows, labels of that block): the effect under every labelling of the block's
            runs, the observed one first.
        margins: lower and upper bound of what does not matter, one for all or one per row.
        family: number of comparisons that will be corrected together.
        alpha: the level of the study.
    """
    points = np.stack([block[:, 0] for block in labels], axis=-1)
    found = estimate(points)
    enough = found.freedom > 0
    by_permutation = enough and useful([block.shape[1] for block in labels], family, alpha)
    # the bootstrap has nothing to draw from rows that never vary
    by_bootstrap = points.shape[-1] >= BCA_FROM_BLOCKS and bool((found.error > 0).all())
    low, high = t_interval(found, alpha)
    if by_bootstrap:
        bootstrapped = bca_interval(points, alpha)
        # NaN where nearly all points are the same
        low, high = (
            np.where(np.isnan(new), old, new) for new, old in zip(bootstrapped, (low, high), strict=True)
        )
    return Measured(
        centre=found.centre,
        error=found.error,
        low=low,
        high=high,
        p=p_permutation(labels) if by_permutation else p_different(found),
        p_equivalent=p_equivalent(found, *margins),
        test="permutation" if by_permutation else "t" if enough else "",
        interval="bca" if by_bootstrap else "t" if enough else "",
    )


def decide(
    centre: Array,
    p: Array,
    p_inside: Array,
    margins: tuple[Array | float, Array | float],
    alpha: float,
) -> Decision:
    """Decide a family of comparisons along the last axis.

    `p` is that there is no effect, `p_inside` that it does not lie inside the margins; NaN where there is none.
    `margins` are the lower and upper bound of what does not matter, on the scale of `centre`.
    """
    adjusted, adjusted_inside = correct(p), correct(p_inside)
    low, high = margins
    shown = adjusted <= alpha
    equivalent = adjusted_inside <= alpha
    beyond = (centre > high).astype(np.int8) - (centre < low).astype(np.int8)
    return Decision(
        p_adjusted=adjusted,
        p_equivalent=adjusted_inside,
        direction=np.where(shown & ~equivalent, beyond, 0).astype(np.int8),
        equivalent=equivalent,
    )


def correct(p: Array) -> Array:
    """Benjamini-Hochberg along the last axis. A family member without a p (NaN) stays out of the count."""
    if p.ndim > 1 and not np.isnan(p).any():
        return np.asarray(stats.false_discovery_control(p, axis=-1))
    if p.ndim > 1:
        return np.stack([correct(row) for row in p])
    adjusted, known = p.copy(), ~np.isnan(p)
    if known.any():
        adjusted[known] = stats.false_discovery_control(p[known])
    return adjusted
