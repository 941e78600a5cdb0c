"""What a screening finds: the smallest effect that is shown with probability `POWER`; and what other ways cost."""

from __future__ import annotations

import math

from scipy import optimize, special  # type: ignore[import-untyped]

from linerate.analysis.verdict import ALPHA
from linerate.analysis.verdict.power import POWER
from linerate.analysis.verdict.student import t_reach
from linerate.tune.effects import TREND_RUNS

_ERRORS_MOST = 50.0  # standard errors; the effect is smaller


def smallest_effect(spread: float, points: int, blocks: int, factors: int) -> float:
    """The smallest main effect that is shown with probability `POWER`, at the strictest step of Holm's correction.

    Args:
        spread: standard deviation of a run, on the metric's scale.
        points: configurations in a block, each measured once.
        blocks: number of blocks, at least 2.
        factors: number of main effects.
    """
    runs = points * blocks
    of_a_block = 2 if points >= TREND_RUNS else 1  # its level, and its trend
    freedom = max(runs - points - of_a_block * blocks, 1)
    reach = float(t_reach(ALPHA / factors / 2, freedom))

    def lack(distance: float) -> float:
        missed = float(special.nctdtr(freedom, distance, reach))
        return 1 - (missed if math.isfinite(missed) else 0.0) - POWER  # so far out that it is no number

    distance = optimize.brentq(lack, 0.0, max(_ERRORS_MOST, 2 * reach))
    return float(distance) * 2 * spread / math.sqrt(runs)


def runs_one_at_a_time(points: int, blocks: int, factors: int) -> int:
    """The runs that give every effect the same standard error if one factor is changed at a time.

    Each configuration needs half of the runs of the screening: the variance of a difference of two means of n runs is
    2 s^2 / n, and that of an effect from N runs of two levels is 4 s^2 / N.
    """
    return (factors + 1) * points * blocks // 2
