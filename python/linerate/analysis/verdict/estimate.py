"""Estimate, interval and p values of rows of per-block figures: Student's t, on whole arrays.

A row holds one case's log-ratio (or difference) per block, along the last axis; leading axes are cases, or studies
and cases. Blocks are independent of each other. Inside a block, drift and autocorrelation were shuffled into noise by
the order of the runs.

One number per block is compared with zero, so it does not matter whether the case is noisier than the baseline: both
parts are in the spread of that number. This is the paired t test (Student 1908) on log-ratios; equivalence is shown by
two one-sided t tests (Schuirmann 1987, J. Pharmacokinet. Biopharm. 15). Test and interval are the same calculation, so
they agree. `tests/analysis/test_truth.py` measures their error rates, also with unequal noise and outliers.

*Resolution.* A run counts whole I/Os. If all runs of a row counted nearly the same number, their spread is smaller than
what one I/O more or less means. So the spread is at least that of the rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from linerate.analysis.verdict.student import t_reach, t_tail

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimates:
    """Mean of each row, its standard error, and the degrees of freedom of that error (one number for all).

    With one block there is no error: it is NaN, and there are no degrees of freedom.
    """

    centre: Array
    error: Array
    freedom: int


def estimate(points: Array, spread_min: Array | float = 0.0) -> Estimates:
    """Mean and error of each row of `points` (..., blocks). `spread_min` is the standard deviation of the rounding."""
    blocks = points.shape[-1]
    centre = points.mean(axis=-1)
    if blocks < 2:
        return Estimates(centre, np.full_like(centre, np.nan), 0)
    spread = np.maximum(points.std(axis=-1, ddof=1), spread_min)
    return Estimates(centre, spread / np.sqrt(blocks), blocks - 1)


def t_interval(found: Estimates, alpha: Array | float) -> tuple[Array, Array]:
    """Bounds at confidence 1 - alpha; NaN without an error."""
    reach = found.error * t_reach(np.asarray(alpha) / 2, found.freedom) if found.freedom else found.error
    return found.centre - reach, found.centre + reach


def p_different(found: Estimates) -> Array:
    """Two-sided p of the t test that the mean is zero; NaN without an error."""
    if not found.freedom:
        return np.full_like(found.centre, np.nan)
    return 2 * t_tail(np.abs(_t(found, 0.0)), found.freedom)


def p_equivalent(found: Estimates, low: Array | float, high: Array | float) -> Array:
    """P of two one-sided t tests (TOST) that the mean is inside (low, high); NaN without an error."""
    if not found.freedom:
        return np.full_like(found.centre, np.nan)
    above_low = t_tail(_t(found, low), found.freedom)
    below_high = t_tail(-_t(found, high), found.freedom)
    return np.asarray(np.maximum(above_low, below_high))


def _t(found: Estimates, hypothesis: Array | float) -> Array:
    """Distance from the hypothesis in standard errors. It is infinite for values that never vary."""
    distance = found.centre - hypothesis
    with np.errstate(divide="ignore", invalid="ignore"):
        t = distance / found.error
    return np.asarray(np.where(distance == 0, 0.0, t))
