"""From per-block figures to verdicts: measured, corrected for many comparisons and looks, and held against the margin.

`measure` works on rows that have the same blocks, as arrays: the cases of a study, or those of a thousand simulated
studies.

`decide` answers two questions, which a storage administrator asks apart. *Is there a difference?* A difference is shown
if the t test excludes zero. *Does it matter?* It matters if it is larger than the margin.

    better, worse                      a difference is shown, and as measured it is beyond the margin
    slightly better, slightly worse    a difference is shown, and as measured it is below the margin
    no difference                      none is shown, and the equivalence test shows that any would be below the margin
    undecided                          neither is shown: more blocks are needed

The correction for many comparisons is Holm's (1979, Scand. J. Stat. 6): the chance that a study shows any difference
that is not there is at most alpha. The correction for several looks divides p by the share of its look (`looks.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linerate.analysis.verdict.estimate import Array, estimate, p_different, p_equivalent, t_interval


@dataclass(frozen=True, slots=True)
class Measured:
    """Figures per row; all but `centre` are NaN with a single block."""

    centre: Array
    error: Array
    low: Array
    high: Array
    p: Array
    p_equivalent: Array


@dataclass(frozen=True, slots=True)
class Decision:
    """Adjusted p values. Per row `direction` is +1 or -1 if a difference is shown, else 0.

    `matters`: the estimate is beyond the margin. `equivalent`: shown to be inside it.
    """

    p_adjusted: Array
    p_equivalent: Array
    direction: NDArray[np.int8]
    matters: NDArray[np.bool_]
    equivalent: NDArray[np.bool_]


def measure(
    points: Array,
    margins: tuple[Array | float, Array | float],
    alpha: Array | float,
    spread_min: Array | float = 0.0,
) -> Measured:
    """Measure rows.

    Args:
        points: (rows, blocks): the effect of each block.
        margins: lower and upper bound of what does not matter, one for all or one per row.
        alpha: error rate of the intervals, one for all or one per row.
        spread_min: standard deviation of the rounding of one block's effect, one for all or one per row.
    """
    found = estimate(points, spread_min)
    low, high = t_interval(found, alpha)
    return Measured(
        centre=found.centre,
        error=found.error,
        low=low,
        high=high,
        p=p_different(found),
        p_equivalent=p_equivalent(found, *margins),
    )


def decide(
    centre: Array,
    p: Array,
    p_inside: Array,
    margins: tuple[Array | float, Array | float],
    alpha: float,
    shares: Array | float = 1.0,
) -> Decision:
    """Decide a family of comparisons along the last axis.

    `p` is that there is no effect, `p_inside` that it is not inside the margins; NaN where there is none. `margins` are
    the lower and upper bound of what does not matter, on the scale of `centre`. `shares` are those of the looks.
    """
    adjusted, adjusted_inside = (holm(np.minimum(each / shares, 1.0)) for each in (p, p_inside))
    low, high = margins
    shown = adjusted <= alpha
    return Decision(
        p_adjusted=adjusted,
        p_equivalent=adjusted_inside,
        direction=np.where(shown, np.sign(centre), 0).astype(np.int8),
        matters=(centre > high) | (centre < low),
        equivalent=adjusted_inside <= alpha,
    )


def holm(p: Array) -> Array:
    """Holm's step-down correction along the last axis. A member without a p (NaN) stays out of the count."""
    order = np.argsort(p, axis=-1)  # NaN comes last
    ordered = np.take_along_axis(p, order, axis=-1)
    known = np.sum(~np.isnan(p), axis=-1, keepdims=True)
    steps = np.maximum(known - np.arange(p.shape[-1]), 1)
    stepped = np.minimum(np.maximum.accumulate(ordered * steps, axis=-1), 1.0)
    adjusted = np.empty_like(p)
    np.put_along_axis(adjusted, order, stepped, axis=-1)
    return adjusted
