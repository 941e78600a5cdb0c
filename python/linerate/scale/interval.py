"""The t interval of a mean of logarithms: where a time or a rate is, from repeated measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean, stdev

from scipy import special  # type: ignore[import-untyped]

STEP = 0.002
"""Relative; a histogram of three digits resolves no more. Values that agree better count as that far apart."""
_LOG_MOST = 700.0  # a larger power of e is no number


@dataclass(frozen=True, slots=True)
class MeanInterval:
    """A geometric mean and its interval, in the unit of what was measured."""

    centre: float
    low: float
    high: float


def interval(values: Sequence[float], alpha: float = 0.05) -> MeanInterval | None:
    """The interval at a two-sided error of `alpha`; None for fewer than two values, which are all above 0."""
    if len(values) < 2:
        return None
    logs = [math.log(value) for value in values]
    spread = max(stdev(logs), STEP)
    half = t_quantile(1 - alpha / 2, len(logs) - 1) * spread / math.sqrt(len(logs))
    centre = fmean(logs)
    low, high = max(centre - half, -_LOG_MOST), min(centre + half, _LOG_MOST)
    return MeanInterval(math.exp(centre), math.exp(low), math.exp(high))


@lru_cache(maxsize=256)
def t_quantile(probability: float, degrees: float) -> float:
    """Of Student's t distribution."""
    return float(special.stdtrit(degrees, probability))
