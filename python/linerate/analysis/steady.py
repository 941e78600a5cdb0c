"""Steady state, by the window test of the SNIA Solid State Storage Performance Test Specification.

A window of five rounds is steady when the largest and smallest value differ by at most 20 % of the mean, and
the least-squares line across the window climbs or falls by at most 10 % of the mean. Here the whole measured
time is cut into five equal rounds, for the summary speaks of the whole measured time; if that is not steady,
the test looks for the moment from which the rest is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

ROUNDS = 5
RANGE_PERCENT_MAX = 20.0
SLOPE_PERCENT_MAX = 10.0


@dataclass(frozen=True, slots=True)
class SteadyState:
    """Outcome of the test over the whole measured time.

    `range_percent` is max - min of the rounds, `slope_percent` the climb of the fitted line across the window
    (negative when it falls), both against the mean. `steady_from` is the index of the first value from which
    the rest is steady: 0 when all is, None when no such moment leaves at least half of the values.
    """

    mean: float
    range_percent: float
    slope_percent: float
    steady_from: int | None

    @property
    def attained(self) -> bool:
        """The whole measured time is steady."""
        return self.steady_from == 0


def steady_state(values: Sequence[float]) -> SteadyState | None:
    """Test one value per interval (IOPS, or a percentile).

    None with fewer than five values or nothing but zeros.
    """
    if len(values) < ROUNDS or not any(values):
        return None
    mean, spread, slope = window_test(values)
    starts = range(0, len(values) // 2 + 1)
    steady_from = next((start for start in starts if _is_steady(values[start:])), None)
    return SteadyState(mean=mean, range_percent=spread, slope_percent=slope, steady_from=steady_from)


def window_test(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean, range and slope excursion (both in percent of the mean) of five rounds cut from `values`."""
    bounds = [round(number * len(values) / ROUNDS) for number in range(ROUNDS + 1)]
    rounds = [sum(values[a:b]) / (b - a) for a, b in pairwise(bounds)]
    mean = sum(rounds) / ROUNDS
    if mean == 0:
        return 0.0, 0.0, 0.0
    middle = (ROUNDS - 1) / 2
    weights = [number - middle for number in range(ROUNDS)]
    slope = sum(weight * value for weight, value in zip(weights, rounds, strict=True))
    slope /= sum(weight**2 for weight in weights)
    return mean, 100 * (max(rounds) - min(rounds)) / mean, 100 * slope * (ROUNDS - 1) / mean


def _is_steady(values: Sequence[float]) -> bool:
    if len(values) < ROUNDS:
        return False
    mean, spread, slope = window_test(values)
    return mean > 0 and spread <= RANGE_PERCENT_MAX and abs(slope) <= SLOPE_PERCENT_MAX
