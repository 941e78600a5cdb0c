"""How many blocks would decide a case, and which change so many blocks show.

A change counts as found if it is shown in four of five studies (power 0.8). The power of the t test follows from the
noncentral t distribution; that of the equivalence test from the normal distribution of the estimate.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import special  # type: ignore[import-untyped]

from linerate.analysis.verdict.estimate import Array
from linerate.analysis.verdict.student import t_reach

POWER = 0.8
BLOCKS_MAX = 100  # beyond that a better test bed helps, not more blocks
_ERRORS_MAX = 200.0  # further away the noncentral t distribution is not computed


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
    chance = np.maximum(
        chance_shown(centre, spread, counts, alpha),
        _chance_equivalent(centre, spread, margins, alpha, counts),
    )
    enough = np.flatnonzero(chance >= POWER)
    return int(counts[enough[0]]) if len(enough) else None


def detectable(spread: float, blocks: int, alpha: float) -> float | None:
    """The smallest change that the t test shows with probability `POWER`, on the spread's scale; None with one block.

    `alpha` is the level of the one comparison.
    """
    if blocks < 2:
        return None
    if spread == 0:
        return 0.0
    counts, freedom = np.array([blocks]), blocks - 1
    most = _ERRORS_MAX / np.sqrt(blocks)

    def lack(change: float) -> float:
        return float(chance_shown(change, 1.0, counts, alpha)[0]) - POWER

    if lack(most) < 0:
        # So strict a level with so few blocks: only the spread that was measured decides, which is a chi-square.
        largest = np.sqrt(special.chdtri(freedom, 1 - POWER) / freedom)
        return float(spread * t_reach(alpha / 2, freedom) * largest / np.sqrt(blocks))
    from scipy import optimize  # loads slowly, and few need it

    return float(spread * optimize.brentq(lack, 0.0, most))


def chance_shown(change: float, spread: float, counts: NDArray[np.int_], alpha: float) -> Array:
    """The probability that a t test at `alpha` shows a change, per number of blocks."""
    error, freedom = _errors(spread, counts)
    distance = np.minimum(abs(change) / error, _ERRORS_MAX)
    below = special.nctdtr(freedom, distance, t_reach(alpha / 2, freedom))
    return np.asarray(1 - below, dtype=np.float64)


def _errors(spread: float, counts: NDArray[np.int_]) -> tuple[Array, Array]:
    return max(spread, 1e-12) / np.sqrt(counts), np.asarray(counts - 1, dtype=np.float64)


def _chance_equivalent(
    centre: float, spread: float, margins: tuple[float, float], alpha: float, counts: NDArray[np.int_]
) -> Array:
    error, freedom = _errors(spread, counts)
    reach = t_reach(alpha, freedom) * error
    low, high = margins[0] + reach, margins[1] - reach
    inside = special.ndtr((high - centre) / error) - special.ndtr((low - centre) / error)
    return np.asarray(np.where(low < high, inside, 0.0))
