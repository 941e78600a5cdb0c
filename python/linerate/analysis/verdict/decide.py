"""From p values to verdicts: corrected for many cases, and held against the margin.

A verdict answers a storage administrator, for whom an effect below the margin does not matter:

    better, worse   an effect is shown (p after correction at most alpha) and its estimate lies beyond the margin
    equivalent      the effect is shown to lie inside the margin (TOST, corrected likewise)
    undecided       neither: more blocks are needed

An effect can be shown and small at once: then it is equivalent, and its interval says how small. The corrections
are those of Benjamini and Hochberg: of the cases called better or worse, at most alpha are so by chance alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats  # type: ignore[import-untyped]

from linerate.analysis.verdict.estimate import Array


@dataclass(frozen=True, slots=True)
class Decision:
    """Adjusted p values, and per row +1 (beyond the upper margin), -1 (below the lower), 0; or equivalent."""

    p_adjusted: Array
    p_equivalent: Array
    direction: NDArray[np.int8]
    equivalent: NDArray[np.bool_]


def decide(
    centre: Array,
    p_different: Array,
    p_equivalent: Array,
    margins: tuple[Array | float, Array | float],
    alpha: float,
) -> Decision:
    """Decide a family of comparisons along the last axis; NaN where a comparison has no p.

    `margins` are the lower and upper bound of what does not matter, on the scale of `centre`.
    """
    adjusted, adjusted_equivalent = correct(p_different), correct(p_equivalent)
    low, high = margins
    shown = adjusted <= alpha
    equivalent = adjusted_equivalent <= alpha
    beyond = (centre > high).astype(np.int8) - (centre < low).astype(np.int8)
    return Decision(
        p_adjusted=adjusted,
        p_equivalent=adjusted_equivalent,
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
