"""Designs of two levels: which configurations a screening measures.

Without exclusions it is a regular fraction of resolution IV: main effects are mixed with no interaction of two factors,
and such interactions are mixed with each other (Box, Hunter and Hunter, Statistics for Experimenters, chapter 6).
pyDOE3 finds its generators.

With exclusions, the design is the next larger one, and rows that are excluded are replaced by others, one factor at a
time, as long as the determinant of the information matrix grows. Interactions of two factors are in that matrix with a
prior variance, so that main effects stay as free of them as the exclusions permit (DuMouchel and Jones 1994,
Technometrics 36).
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from linerate.analysis.verdict.estimate import Array
from linerate.errors import UserError
from linerate.tune.factors import Point, Space

FACTORS_MOST = 15
"""More of them have no design of resolution IV in 32 runs."""
_PRIOR_VARIANCE = 1.0  # of an interaction, relative to the noise: the value of the paper
_PASSES_MOST = 20
_DRAWS_MOST = 1000
_NOTHING = 1e-6
_ALL_MOST = 4  # factors, of which all combinations are few
_LARGER = range(6, 11)  # numbers of factors that have 32 runs where 16 would do without exclusions
_STARTS = 3  # the exchange ends at a local maximum


@dataclass(frozen=True, slots=True)
class Design:
    """The points of a screening in order; the first one is the baseline.

    `mixed` is the largest share of an interaction of two factors that gets into a main effect: 0 with resolution IV.
    """

    points: tuple[Point, ...]
    mixed: float


def screening_design(space: Space) -> Design:
    """The smallest design of resolution IV, or the nearest one that the exclusions permit.

    Raises UserError for more factors than `FACTORS_MOST`, an excluded baseline, and exclusions that leave a factor no
    configuration in which it can be changed.
    """
    if len(space.factors) > FACTORS_MOST:
        raise UserError(
            f"{len(space.factors)} settings to tune; at most {FACTORS_MOST}",
            "tune those first that may matter most",
        )
    if not space.allows(space.baseline):
        raise UserError("the baseline itself is excluded", "take another first value, or another --forbid")
    rows = regular_rows(len(space.factors))
    if not all(space.allows(space.point(list(row))) for row in rows):
        rows = _allowed_rows(space)
    _check_rank(space, rows)
    points = tuple(dict.fromkeys((space.baseline, *(space.point(list(row)) for row in rows))))
    return Design(points, _mixed(np.array(list(space.signs(points)), dtype=np.float64)))


def regular_rows(factors: int) -> Array:
    """A regular fraction of resolution IV, or all combinations of up to three factors: (runs, factors) of -1 and +1.

    The first row is the baseline: columns are mirrored so that it is all -1. That changes no resolution.
    """
    import pyDOE3  # loads slowly, and is needed once

    if factors <= 3:
        rows = pyDOE3.ff2n(factors)
    elif factors == 4:
        rows = pyDOE3.fracfact("a b c abc")
    else:
        rows = pyDOE3.fracfact_by_res(factors, 4)
    rows = np.asarray(rows, dtype=np.float64)
    return np.asarray(rows * -rows[0])


def _allowed_rows(space: Space) -> Array:
    """Rows without an excluded one: all of them for up to four factors, else twice a regular fraction, exchanged."""
    import pyDOE3

    def allowed(row: Array) -> bool:
        return space.allows(space.point(list(row)))

    count = len(space.factors)
    if count <= _ALL_MOST:
        return np.array([row for row in np.asarray(pyDOE3.ff2n(count), dtype=np.float64) if allowed(row)])
    if count in _LARGER:
        start = np.asarray(pyDOE3.fracfact_by_res(count, 5), dtype=np.float64)
    else:
        start = np.asarray(pyDOE3.ff2n(count)) if count < min(_LARGER) else regular_rows(count)
    start = start * -start[0]
    orders = [random.Random(number).sample(range(count), count) for number in range(_STARTS)]
    found = [_exchanged(start[:, order], allowed) for order in orders]
    return max(found, key=_information)


def pair_columns(rows: Array) -> Array:
    """The products of any two columns, in the order of `itertools.combinations`: (runs, pairs)."""
    pairs = list(itertools.combinations(range(rows.shape[1]), 2))
    first, second = [one for one, _ in pairs], [two for _, two in pairs]
    return np.asarray(rows[:, first] * rows[:, second])


def _exchanged(rows: Array, allowed: Callable[[Array], bool]) -> Array:
    """The rows with those that are not allowed replaced, then improved one factor at a time. Row 0 stays."""
    dice = random.Random(len(rows))
    found = rows.copy()
    for row in found[1:]:
        _make_allowed(row, allowed, dice)
    best = _information(found)
    for _ in range(_PASSES_MOST):
        before = best
        for row, column in itertools.product(range(1, len(found)), range(found.shape[1])):
            found[row, column] *= -1
            if allowed(found[row]) and (now := _information(found)) > best + 1e-9:
                best = now
            else:
                found[row, column] *= -1
        if best == before:
            break
    return found


def _make_allowed(row: Array, allowed: Callable[[Array], bool], dice: random.Random) -> None:
    """Mirrors as few factors of a row as possible until it is allowed."""
    start = row.copy()
    for count in range(len(row) + 1):
        changes = list(itertools.islice(itertools.combinations(range(len(row)), count), _DRAWS_MOST))
        dice.shuffle(changes)
        for change in changes:
            row[:] = start
            row[list(change)] *= -1
            if allowed(row):
                return
    row[:] = -1.0


def _information(rows: Array) -> float:
    """The logarithm of the determinant; interactions have a prior, the mean and main effects have none."""
    primary = np.column_stack([np.ones(len(rows)), rows])
    # |X'X + K| of both, by the covariance of the runs that the interactions cause: its size is that of the runs.
    pairs = pair_columns(rows)
    covariance = np.eye(len(rows)) + _PRIOR_VARIANCE * pairs @ pairs.T
    inner = primary.T @ np.linalg.solve(covariance, primary)
    return float(np.linalg.slogdet(covariance)[1] + np.linalg.slogdet(inner)[1])


def _check_rank(space: Space, rows: Array) -> None:
    """Raises UserError for a factor whose effect these rows cannot tell."""
    known = np.ones((len(rows), 1))
    for index, factor in enumerate(space.factors):
        wider = np.column_stack([known, rows[:, index]])
        if np.linalg.matrix_rank(wider) == known.shape[1]:
            raise UserError(
                f"{factor.name}: what is forbidden leaves no configurations that show its effect",
                "forbid less, or leave this setting out",
            )
        known = wider


def _mixed(rows: Array) -> float:
    """The largest entry of the alias matrix of main effects and interactions of two factors.

    Two factors of which one combination is excluded have no interaction: it would be a sum of main effects.
    """
    if rows.shape[1] < 2:
        return 0.0
    primary, pairs = np.column_stack([np.ones(len(rows)), rows]), pair_columns(rows)
    alias = np.linalg.lstsq(primary, pairs, rcond=None)[0]
    exists = np.linalg.norm(pairs - primary @ alias, axis=0) > _NOTHING
    return float(np.round(np.abs(alias[1:, exists]).max(initial=0.0), 6))


def unique(points: Sequence[Point]) -> tuple[Point, ...]:
    """The points in their order, each once."""
    return tuple(dict.fromkeys(points))
