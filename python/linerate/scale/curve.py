"""The curve: chosen loads, each measured equally often, to judge how the rate grows with the load.

The search measures some loads more often than others, and stops when it knows enough. So a curve has a list of its own,
which does not follow from what was measured. The first `repeats` runs of each load count, those of the search
among them: their number does not depend on their results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from linerate.scale.reached import Reached, ScaleTask


@dataclass(frozen=True, slots=True)
class Curve:
    """Loads in rising order, and how many runs of each count."""

    loads: tuple[int, ...]
    repeats: int = 4

    @property
    def runs(self) -> int:
        """How many runs of it count."""
        return self.repeats * len(self.loads)


def next_task(runs: Sequence[Reached], curve: Curve) -> ScaleTask | None:
    """The next run of the curve: a load with the fewest runs, so that a drift concerns all loads. None at its end."""
    counts = {load: len(found) for load, found in runs_of_curve(runs, curve).items()}
    load = min(curve.loads, key=lambda one: counts[one])
    return ScaleTask("curve", load) if counts[load] < curve.repeats else None


def by_load(runs: Sequence[Reached]) -> dict[int, list[Reached]]:
    """The runs of the response curve by load, in rising order."""
    found: dict[int, list[Reached]] = {}
    for run in runs:
        if run.is_on_curve:
            found.setdefault(run.load, []).append(run)
    return dict(sorted(found.items()))


def runs_of_curve(runs: Sequence[Reached], curve: Curve) -> Mapping[int, Sequence[Reached]]:
    """The runs of each load that count, in the order of loads."""
    of_load: dict[int, list[Reached]] = {load: [] for load in curve.loads}
    for run in runs:
        found = of_load.get(run.load)
        if found is not None and run.is_on_curve and len(found) < curve.repeats:
            found.append(run)
    return of_load
