"""Effects of factors and of their interactions, from all runs of a screening together.

Each effect is on the metric's scale (mostly a logarithm): what the last level adds to the first one's value, as a mean
over all settings of the other factors. The effect of an interaction is half the difference that one factor's level
makes to the effect of the other. Every block has a level of its own, and blocks of eight runs or more a trend: SANs
drift. Main effects share an error of `ALPHA`, and interactions another one (Holm).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from linerate.analysis.verdict import ALPHA
from linerate.analysis.verdict.decide import holm
from linerate.analysis.verdict.estimate import Array, Estimates, p_different, p_equivalent, t_interval
from linerate.errors import HostError
from linerate.tune.design import pair_columns
from linerate.tune.factors import Point, Space
from linerate.tune.robust import Fit, fit

Pair = tuple[int, int]
Standing = Literal["matters", "no effect", "undecided"]
TREND_RUNS = 8  # a block of fewer runs has none to spare for a trend
_OWN_LEAST = 0.5  # share of an interaction's column that no other column explains
_SAME = 1e-6


@dataclass(frozen=True, slots=True)
class TuneRun:
    """One run: its stage and block, its place in the block, its point, and its value on the metric's scale.

    `position` counts from 0; it is 0 in all runs of a SAN in modelled time, which has no drift.
    """

    stage: str
    block: int
    position: int
    point: Point
    value: float


@dataclass(frozen=True, slots=True)
class FactorEffect:
    """The main effect of a factor, with its interval of 95 % and the p value after Holm's correction."""

    factor: int
    effect: float
    low: float
    high: float
    p: float
    standing: Standing


@dataclass(frozen=True, slots=True)
class PairEffect:
    """The effect of an interaction. The runs cannot tell the pairs of `aliases` apart.

    `effect` is that of the first one; `signs` say of each whether its own is the same (+1) or the opposite (-1).
    """

    aliases: tuple[Pair, ...]
    signs: tuple[int, ...]
    effect: float
    low: float
    high: float
    p: float

    @property
    def is_active(self) -> bool:
        """An interaction is shown."""
        return self.p <= ALPHA

    def effect_of(self, pair: Pair) -> float:
        """The effect if this one of the aliases is the reason."""
        return self.effect * self.signs[self.aliases.index(pair)]


@dataclass(frozen=True, slots=True)
class Effects:
    """All effects, the standard deviation of a run, and how many runs were left out as disturbed."""

    factors: tuple[FactorEffect, ...]
    pairs: tuple[PairEffect, ...]
    spread: float
    runs: int
    left_out: int

    def matter(self) -> tuple[int, ...]:
        """The factors whose main effect is shown."""
        return tuple(one.factor for one in self.factors if one.standing == "matters")


def effects(space: Space, runs: Sequence[TuneRun], margin: float, first: Sequence[Pair] = ()) -> Effects:
    """All effects that the runs tell.

    Args:
        space: the factors.
        runs: at least as many as there are effects, in blocks.
        margin: an effect below it does not matter, on the metric's scale.
        first: interactions to tell apart, if the runs can.

    Raises HostError if runs are missing that a main effect needs.
    """
    rows = np.array(list(space.signs([run.point for run in runs])), dtype=np.float64)
    values = np.array([run.value for run in runs])
    nuisance = block_columns(runs)
    chosen = _pairs(np.column_stack([nuisance, rows]), rows, first)
    columns = np.column_stack([nuisance, rows, *(_column(rows, next(iter(group))) for group in chosen)])
    try:
        found = fit(columns, values)
    except ValueError as error:
        raise HostError(f"too few runs count: {error}", "see why runs failed, then tune once more") from error
    begin, end = nuisance.shape[1], nuisance.shape[1] + rows.shape[1]
    return Effects(
        tuple(_factor_effects(found, begin, end, margin)),
        tuple(_pair_effects(found, end, chosen)),
        found.spread,
        len(runs),
        int((found.weights < _SAME).sum()),
    )


def block_columns(runs: Sequence[TuneRun]) -> Array:
    """A level for every block, and a trend along those that are long enough: (runs, columns)."""
    columns = []
    for block in dict.fromkeys((run.stage, run.block) for run in runs):
        inside = np.array([(run.stage, run.block) == block for run in runs])
        columns.append(inside.astype(np.float64))
        place = np.array([float(run.position) for run in runs])
        length = np.ptp(place[inside])
        if inside.sum() >= TREND_RUNS and length > 0:
            columns.append(np.where(inside, place - place[inside].mean(), 0.0) / length)
    return np.column_stack(columns)


def _pairs(known: Array, rows: Array, first: Sequence[Pair]) -> list[dict[Pair, int]]:
    """The interactions that the runs tell, each with those that cannot be told from it and their signs."""
    every = list(itertools.combinations(range(rows.shape[1]), 2))
    remainders = _remainder(known, pair_columns(rows))
    own = {pair: remainders[:, index] for index, pair in enumerate(every)}
    groups: list[dict[Pair, int]] = []
    for pair in (*first, *(one for one in every if one not in first)):
        if np.linalg.norm(own[pair]) ** 2 < _OWN_LEAST * len(rows):
            continue
        same = next((group for group in groups if _is_same(own[next(iter(group))], own[pair])), None)
        if same is not None:
            same[pair] = 1 if own[next(iter(same))] @ own[pair] > 0 else -1
        elif known.shape[1] + 1 < len(rows):
            left = _remainder(known, _column(rows, pair))
            if np.linalg.norm(left) ** 2 >= _OWN_LEAST * np.linalg.norm(own[pair]) ** 2:
                groups.append({pair: 1})
                known = np.column_stack([known, _column(rows, pair)])
    return groups


def _column(rows: Array, pair: Pair) -> Array:
    return np.asarray(rows[:, pair[0]] * rows[:, pair[1]])


def _remainder(known: Array, columns: Array) -> Array:
    """The part of one or more columns that the known ones do not explain."""
    return np.asarray(columns - known @ np.linalg.lstsq(known, columns, rcond=None)[0])


def _is_same(one: Array, other: Array) -> bool:
    return bool(abs(one @ other) >= (1 - _SAME) * np.linalg.norm(one) * np.linalg.norm(other))


def _estimates(found: Fit, begin: int, end: int) -> Estimates:
    """Effects are twice the coefficients: from -1 to +1 is two steps."""
    return Estimates(2 * found.coefficients[begin:end], 2 * found.errors[begin:end], found.freedom)


def _factor_effects(found: Fit, begin: int, end: int, margin: float) -> Iterator[FactorEffect]:
    estimates = _estimates(found, begin, end)
    low, high = t_interval(estimates, ALPHA)
    p, inside = holm(p_different(estimates)), p_equivalent(estimates, -margin, margin)
    for index, effect in enumerate(estimates.centre):
        standing: Standing = "undecided"
        if p[index] <= ALPHA:
            standing = "matters"
        elif inside[index] <= ALPHA:
            standing = "no effect"
        yield FactorEffect(
            index, float(effect), float(low[index]), float(high[index]), float(p[index]), standing
        )


def _pair_effects(found: Fit, begin: int, groups: Sequence[dict[Pair, int]]) -> Iterator[PairEffect]:
    estimates = _estimates(found, begin, begin + len(groups))
    low, high = t_interval(estimates, ALPHA)
    p = holm(p_different(estimates)) if groups else estimates.centre
    for index, group in enumerate(groups):
        yield PairEffect(
            tuple(group),
            tuple(group.values()),
            float(estimates.centre[index]),
            float(low[index]),
            float(high[index]),
            float(p[index]),
        )
