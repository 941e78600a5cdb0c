"""The stages of a search, each one a comparison of points in blocks. What comes next follows from what was measured.

    pilot -> screening -> fold-over (up to two) -> levels between -> confirmation

Only the confirmation is a result: it compares the chosen point with the baseline in blocks that took no part in the
choice. Effects of the stages before it were used for the choice: the largest of several estimates is too large on
average.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from pydantic import Field, NonNegativeFloat, NonNegativeInt

from linerate.tune.best import Best, best_point
from linerate.tune.design import Design, screening_design
from linerate.tune.effects import Effects, TuneRun, block_columns, effects
from linerate.tune.factors import Point, Space
from linerate.tune.foldover import FOLDS_MOST, candidates, fold_factor, folded
from linerate.tune.refine import levels_between, refined
from linerate.tune.robust import fit
from linerate.workload.spec import FrozenSpec

Kind = Literal["pilot", "screening", "fold-over", "levels", "confirmation"]
SPREAD = 0.03
"""Standard deviation of a run, relative, where nothing is known yet."""


class TuneEffort(FrozenSpec):
    """How much is measured."""

    blocks: int = Field(default=4, ge=2, le=50)
    """Of screening, fold-over and levels."""
    confirm: int = Field(default=8, ge=5, le=100)
    """Pairs of runs of the confirmation."""
    pilot: NonNegativeInt = 3
    """Blocks of the pilot; 0: none."""
    margin: float = Field(default=0.02, gt=0, lt=1)
    """A relative effect below this does not matter."""
    spread: NonNegativeFloat | None = None
    """Assumed standard deviation of a run, relative; null: from the pilot, or `SPREAD` before it."""


@dataclass(frozen=True, slots=True)
class TuneStage:
    """What to measure next: `points` in `blocks`, each once per block, and the first one `baselines` times."""

    name: str
    kind: Kind
    points: tuple[Point, ...]
    blocks: int
    baselines: Literal[1, 2] = 1

    @property
    def runs(self) -> int:
        """All of it."""
        return (len(self.points) - 1 + self.baselines) * self.blocks


@dataclass(frozen=True, slots=True)
class Choice:
    """What the stages before the confirmation say."""

    effects: Effects
    best: Best
    design: Design


Measured = Mapping[str, Sequence[TuneRun]]
"""Name of a stage -> its runs that count, for every stage that is over."""


class Procedure:
    """The stages of one search. `better` is +1 if more is good and -1 if less is. Raises UserError like the design."""

    def __init__(self, space: Space, effort: TuneEffort, better: int) -> None:
        self.space = space
        self.effort = effort
        self.better = better
        self.design = screening_design(space)
        self._margin = math.log1p(effort.margin)

    def next(self, measured: Measured) -> TuneStage | None:
        """The next stage, given those that are over; None at the end, also if nothing is to be confirmed."""
        if self.effort.pilot and self.effort.spread is None and "pilot" not in measured:
            return TuneStage("pilot", "pilot", self._pilot_points(), self.effort.pilot, 2)
        if "screening" not in measured:
            return TuneStage("screening", "screening", self.design.points, self.effort.blocks)
        if (fold := self._next_fold(measured)) is not None:
            return fold
        choice = self.choice(measured)
        if "levels" not in measured:
            points = levels_between(self.space, self._screened(measured).point, choice.effects)
            if len(points) > 1:
                return TuneStage("levels", "levels", points, self.effort.blocks)
        if "confirmation" in measured or choice.best.point == self.space.baseline:
            return None
        points = (self.space.baseline, choice.best.point)
        return TuneStage("confirmation", "confirmation", points, self.effort.confirm)

    def effects(self, measured: Measured) -> Effects:
        """Of the screening and its fold-overs together. Raises HostError if too few runs count."""
        runs = [*measured["screening"]]
        found = effects(self.space, runs, self._margin)
        for number in range(1, FOLDS_MOST + 1):
            if _fold_name(number) not in measured:
                break
            first = [pair for _, likely in candidates(found) for pair in likely]
            runs += measured[_fold_name(number)]
            found = effects(self.space, runs, self._margin, first)
        return found

    def choice(self, measured: Measured) -> Choice:
        """The point to confirm, and why. Raises HostError if too few runs count."""
        best = self._screened(measured)
        if "levels" in measured:
            point = refined(self.space, best.point, measured["levels"], self.better)
            best = replace(best, point=point)
        return Choice(self.effects(measured), best, self.design)

    def spread(self, measured: Measured) -> float:
        """The standard deviation of a run: assumed, or from the pilot."""
        if self.effort.spread is not None:
            return self.effort.spread
        return pilot_spread(measured["pilot"]) if "pilot" in measured else SPREAD

    def planned(self) -> tuple[TuneStage, ...]:
        """The stages that are sure to come, or likely."""
        pilot = self.next({})
        screening = TuneStage("screening", "screening", self.design.points, self.effort.blocks)
        confirmation = TuneStage("confirmation", "confirmation", self._pilot_points(), self.effort.confirm)
        first = (pilot,) if pilot is not None and pilot.kind == "pilot" else ()
        return (*first, screening, confirmation)

    def later_most(self) -> int:
        """Most runs of the stages that come only if something is found: fold-overs and levels."""
        between = sum(factor.last - 1 for factor in self.space.factors)
        levels = between + 1 if between else 0
        return (FOLDS_MOST * (len(self.design.points) + 1) + levels) * self.effort.blocks

    def _screened(self, measured: Measured) -> Best:
        return best_point(self.space, self.effects(measured), self.better)

    def _pilot_points(self) -> tuple[Point, ...]:
        """The baseline, and the point of the design that is farthest from it."""
        return self.space.baseline, max(self.design.points, key=lambda point: sum(map(bool, point)))

    def _next_fold(self, measured: Measured) -> TuneStage | None:
        done = sum(_fold_name(number) in measured for number in range(1, FOLDS_MOST + 1))
        if done == FOLDS_MOST:
            return None
        found = self.effects(measured)
        if (mirrored := fold_factor(found)) is None:
            return None
        points = folded(self.space, self.design.points, found, mirrored)
        if len(points) < 2:
            return None
        return TuneStage(_fold_name(done + 1), "fold-over", points, self.effort.blocks)


def _fold_name(number: int) -> str:
    return f"fold-over-{number}"


def pilot_spread(runs: Sequence[TuneRun]) -> float:
    """The standard deviation of a run, from points that were measured several times. NaN for too few runs."""
    points = list(dict.fromkeys(run.point for run in runs))
    changes = [[float(run.point == point) for point in points[1:]] for run in runs]
    try:
        return fit(
            np.column_stack([block_columns(runs), np.array(changes)]), np.array([run.value for run in runs])
        ).spread
    except ValueError:
        return math.nan
