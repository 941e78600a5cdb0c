"""The fold-over: more runs where an interaction is shown, and several pairs of factors may be the reason.

The design is measured once more with one factor mirrored (Mee and Peralta 2000, Technometrics 42). That changes the
sign of every interaction with this factor, and of no other. Factors without an effect stay at the baseline's level, so
most rows are the same then, and are measured once. A pair can be the reason only if at least one of its factors has a
main effect (effect heredity; Hamada and Wu 1992, Journal of Quality Technology 24).
"""

from __future__ import annotations

from collections.abc import Sequence

from linerate.tune.design import unique
from linerate.tune.effects import Effects, Pair, PairEffect
from linerate.tune.factors import Point, Space

FOLDS_MOST = 2


def candidates(found: Effects) -> list[tuple[PairEffect, list[Pair]]]:
    """Every interaction that is shown, with the pairs that may be the reason."""
    matter = set(found.matter())
    shown = (
        (one, [pair for pair in one.aliases if matter & set(pair)]) for one in found.pairs if one.is_active
    )
    return [(one, likely) for one, likely in shown if likely]


def fold_factor(found: Effects) -> int | None:
    """The factor to mirror: the one that splits most groups of pairs. None if there is nothing to split."""
    open_groups = [likely for _, likely in candidates(found) if len(likely) > 1]
    members = sorted({factor for group in open_groups for pair in group for factor in pair})
    if not members:
        return None

    def splits(factor: int) -> int:
        halves = ((sum(factor in pair for pair in group), len(group)) for group in open_groups)
        return sum(min(part, whole - part) for part, whole in halves)

    best = max(members, key=splits)
    return best if splits(best) else None


def kept_factors(found: Effects) -> set[int]:
    """The factors that a fold-over changes: those with an effect, and those of pairs that may be a reason."""
    return set(found.matter()) | {one for _, likely in candidates(found) for pair in likely for one in pair}


def folded(space: Space, design: Sequence[Point], found: Effects, mirrored: int) -> tuple[Point, ...]:
    """The points of the fold-over, as far as no exclusion holds, the baseline first."""
    kept = kept_factors(found)
    points = []
    for point in design:
        levels = [level if index in kept else 0 for index, level in enumerate(point)]
        levels[mirrored] = 0 if levels[mirrored] else space.factors[mirrored].last
        points.append(tuple(levels))
    return unique([space.baseline, *(point for point in points if space.allows(point))])
