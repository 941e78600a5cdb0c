"""Levels between: of factors that matter and have more than two levels, every other level is measured too.

The best point so far stays the reference. Each case changes one factor of it, all in the same blocks. Another level is
taken only if it is shown to be better, at an error of `ALPHA` over all levels that are compared (Holm).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linerate.analysis.verdict import ALPHA
from linerate.analysis.verdict.decide import holm
from linerate.analysis.verdict.estimate import Estimates, p_different
from linerate.errors import HostError
from linerate.tune.design import unique
from linerate.tune.effects import Effects, TuneRun, block_columns
from linerate.tune.factors import Point, Space
from linerate.tune.robust import fit


def levels_between(space: Space, best: Point, found: Effects) -> tuple[Point, ...]:
    """The best point, then it with each other level of one factor that matters; only the best point: nothing to do."""
    points = [best]
    for factor in found.matter():
        for level in range(1, space.factors[factor].last):
            points.append(tuple(level if index == factor else its for index, its in enumerate(best)))
    return unique([point for point in points if space.allows(point)])


def refined(space: Space, best: Point, runs: Sequence[TuneRun], better: int) -> Point:
    """The best point with every factor at the level that is shown to be best. Raises HostError for too few runs."""
    points = [point for point in dict.fromkeys(run.point for run in runs) if point != best]
    if not points:
        return best
    changes = np.array([[float(run.point == point) for point in points] for run in runs])
    nuisance = block_columns(runs)
    try:
        found = fit(np.column_stack([nuisance, changes]), np.array([run.value for run in runs]))
    except ValueError as error:
        raise HostError(f"too few runs count: {error}", "see why runs failed, then tune once more") from error
    begin = nuisance.shape[1]
    gains = found.coefficients[begin:] * better
    p = holm(p_different(Estimates(gains, found.errors[begin:], found.freedom)))
    chosen = list(best)
    gained: dict[int, float] = {}
    for point, gain, error_rate in zip(points, gains, p, strict=True):
        (factor,) = (index for index, level in enumerate(point) if level != best[index])
        if error_rate <= ALPHA and gain > gained.get(factor, 0.0):
            gained[factor] = float(gain)
            chosen[factor] = point[factor]
    return tuple(chosen) if space.allows(tuple(chosen)) else best
