"""Whether the rate grows linearly with the load: of each load, how its rate per unit of load compares with the first.

With linear growth the rate per thread (or host) stays what it is at the smallest load. The ratio of both is 1 then, and
less where disks, links or CPUs are saturated. Its interval is that of Welch's t test on the logarithms of the rates, as
repeats of a small load scatter more than those of a large one. The loads of a curve share an error of `alpha`
(Bonferroni), so that their intervals hold together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Literal

from linerate.scale.interval import STEP, t_quantile
from linerate.scale.search import ALPHA

Growth = Literal["linear", "less", "more", "undecided"]
"""linear: the whole interval is within the margin. less, more: the whole interval is below it, or above it."""


@dataclass(frozen=True, slots=True)
class LoadGrowth:
    """A load of a curve: its rate in I/Os per second (geometric mean), and its rate per unit of load over that of the
    smallest load, with the interval. Of the smallest load itself they are 1."""

    load: int
    iops: float
    share: float
    low: float
    high: float
    growth: Growth


def growth(
    rates: Mapping[int, Sequence[float]], margin: float, alpha: float = ALPHA
) -> tuple[LoadGrowth, ...]:
    """Every load in rising order.

    Args:
        rates: load -> I/Os per second of its runs, above 0; two runs or more of each, two loads or more.
        margin: a relative difference of the rate per unit of load below this is no bend.
        alpha: chance that some interval does not hold its true value.

    Raises ValueError for fewer runs or loads.
    """
    loads = sorted(rates)
    if len(loads) < 2 or min(map(len, rates.values())) < 2:
        raise ValueError("a curve has two loads or more, with two runs or more of each")
    logs = {load: [math.log(rate / load) for rate in rates[load]] for load in loads}
    first = loads[0]
    found = [LoadGrowth(first, _rate(rates[first]), 1.0, 1.0, 1.0, "linear")]
    for load in loads[1:]:
        centre = fmean(logs[load]) - fmean(logs[first])
        half = _half_width(logs[first], logs[load], alpha / (len(loads) - 1))
        low, high = math.exp(centre - half), math.exp(centre + half)
        found.append(
            LoadGrowth(load, _rate(rates[load]), math.exp(centre), low, high, _growth(low, high, margin))
        )
    return tuple(found)


def _rate(rates: Sequence[float]) -> float:
    return math.exp(fmean(map(math.log, rates)))


def _half_width(one: Sequence[float], other: Sequence[float], alpha: float) -> float:
    """Of Welch's interval of a difference of means. Values that agree better than STEP count as that far apart."""
    parts = [max(stdev(values), STEP) ** 2 / len(values) for values in (one, other)]
    degrees = sum(parts) ** 2 / sum(
        part**2 / (len(values) - 1) for part, values in zip(parts, (one, other), strict=True)
    )
    return t_quantile(1 - alpha / 2, degrees) * math.sqrt(sum(parts))


def _growth(low: float, high: float, margin: float) -> Growth:
    least, most = 1 - margin, 1 + margin
    if high < least:
        return "less"
    if low > most:
        return "more"
    return "linear" if least <= low and high <= most else "undecided"
