"""How many blocks would decide an undecided case, if its estimate and spread are what they seem.

Beyond the margin a case needs enough blocks for the t test to show it and for its estimate to stay beyond; inside the
margin, for both one-sided tests to pass. The answer is the smallest number of blocks that does either in four of
five studies. An estimate on the margin itself has no answer: no number of blocks can decide it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import stats  # type: ignore[import-untyped]

from linerate.analysis.verdict.estimate import Array, freedom_of, trimmed_each_end

POWER = 0.8
BLOCKS_MAX = 100  # more is a matter of a better test bed, not of patience


def blocks_needed(
    centre: float, spread: float, margins: tuple[float, float], alpha: float, measured: int
) -> int | None:
    """The total number of blocks, more than `measured`; None when more than `BLOCKS_MAX` would be needed.

    Args:
        centre: the estimate, on the scale of the margins.
        spread: standard deviation of one block's figure.
        margins: lower and upper bound of what does not matter.
        alpha: the level that this one comparison has to reach after correction.
        measured: blocks there are already.
    """
    counts = np.arange(max(measured + 1, 2), BLOCKS_MAX + 1)
    if not len(counts) or not np.isfinite(spread):
        return None
    chance = (
        _chance_equivalent(centre, spread, margins, alpha, counts)
        if margins[0] <= centre <= margins[1]
        else _chance_shown(centre, spread, margins, alpha, counts)
    )
    enough = np.flatnonzero(chance >= POWER)
    return int(counts[enough[0]]) if len(enough) else None


def detectable(spread: float, blocks: int, alpha: float, power: float = 0.95) -> float | None:
    """The smallest change that the t test tells from nothing with probability `power`, on the spread's scale."""
    if blocks < 2:
        return None
    freedom = freedom_of(blocks)
    error = spread / np.sqrt(blocks - 2 * trimmed_each_end(blocks))
    return float(error * (stats.t.isf(alpha / 2, freedom) + stats.t.ppf(power, freedom)))


def _errors(spread: float, counts: NDArray[np.int_]) -> tuple[Array, Array]:
    freedom = np.array([freedom_of(int(count)) for count in counts], dtype=np.float64)
    return max(spread, 1e-12) / np.sqrt(counts), freedom


def _chance_shown(
    centre: float, spread: float, margins: tuple[float, float], alpha: float, counts: NDArray[np.int_]
) -> Array:
    error, freedom = _errors(spread, counts)
    shown = stats.nct.sf(stats.t.isf(alpha / 2, freedom), freedom, np.minimum(abs(centre) / error, 30.0))
    beyond = centre - margins[1] if centre > 0 else margins[0] - centre
    return np.asarray(np.minimum(shown, stats.norm.cdf(beyond / error)))


def _chance_equivalent(
    centre: float, spread: float, margins: tuple[float, float], alpha: float, counts: NDArray[np.int_]
) -> Array:
    error, freedom = _errors(spread, counts)
    reach = stats.t.isf(alpha, freedom) * error
    low, high = margins[0] + reach, margins[1] - reach
    inside = stats.norm.cdf((high - centre) / error) - stats.norm.cdf((low - centre) / error)
    return np.asarray(np.where(low < high, inside, 0.0))
