"""The configuration that the effects speak for: of all that are allowed, the one with the best sum of shown effects."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from linerate.tune.effects import Effects
from linerate.tune.factors import Point, Space
from linerate.tune.foldover import candidates


@dataclass(frozen=True, slots=True)
class Best:
    """A point, and what the screening expects of it against the baseline, on the metric's scale: not a result."""

    point: Point
    expected: float


def best_point(space: Space, found: Effects, better: int) -> Best:
    """The best of all allowed points; a factor without a shown effect keeps the baseline's level.

    `better` is +1 if more is good and -1 if less is. An interaction counts if only one pair can be its reason.
    """
    mains = {one.factor: one.effect for one in found.factors if one.standing == "matters"}
    pairs = {likely[0]: one.effect_of(likely[0]) for one, likely in candidates(found) if len(likely) == 1}
    factors = sorted(set(mains) | {factor for pair in pairs for factor in pair})

    def value(signs: dict[int, int]) -> float:
        total = sum(effect * signs[factor] / 2 for factor, effect in mains.items())
        return total + sum(effect * signs[one] * signs[two] / 2 for (one, two), effect in pairs.items())

    base = value(dict.fromkeys(factors, -1))
    best = Best(space.baseline, 0.0)
    for levels in itertools.product((-1, 1), repeat=len(factors)):
        signs = dict(zip(factors, levels, strict=True))
        point = space.point([signs.get(index, -1) for index in range(len(space.factors))])
        gain = value(signs) - base
        if better * gain > better * best.expected and space.allows(point):
            best = Best(point, gain)
    return best
