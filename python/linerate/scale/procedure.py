"""The whole procedure, without I/O: the search for the largest load, then the curve, the way down, and headroom.

    procedure = Procedure(limits)
    while (task := procedure.next()) is not None:
        procedure.record(measure(task))

It follows from what was measured. The same runs, given again in their order, lead to the same next task.
"""

from __future__ import annotations

from dataclasses import dataclass

from linerate.scale import curve, headroom, way_down
from linerate.scale.curve import Curve
from linerate.scale.reached import Reached, ScaleTask
from linerate.scale.search import Capacity, Search, SearchLimits, runs_of


@dataclass(frozen=True, slots=True)
class Parts:
    """What is measured beside the largest load."""

    down: bool = True
    headroom: bool = True
    curve: Curve | None = None


class Procedure:
    """Chooses runs; see the head of the module."""

    def __init__(self, limits: SearchLimits, parts: Parts) -> None:
        self.limits = limits
        self._parts = parts
        self._search = Search(limits)
        self._runs: list[Reached] = []

    @property
    def runs(self) -> tuple[Reached, ...]:
        """All runs in their order."""
        return tuple(self._runs)

    def record(self, reached: Reached) -> None:
        """One run. Raises ValueError for a time that is not above 0."""
        if reached.purpose == "up":
            self._search.record(reached.load, reached.response_ms)
        self._runs.append(reached)

    def next(self) -> ScaleTask | None:
        """The run to make next; None at the end."""
        if (load := self._search.next()) is not None:
            return ScaleTask("up", load)
        if self._parts.curve and (task := curve.next_task(self._runs, self._parts.curve)) is not None:
            return task
        kept = self.capacity().kept
        if kept is None:
            return None
        task = way_down.next_task(self._runs, kept) if self._parts.down else None
        if task is None and self._parts.headroom:
            task = headroom.next_task(self._runs, self.limits, kept)
        return task

    def capacity(self) -> Capacity:
        """What is known of the largest load now."""
        return self._search.capacity()


@dataclass(frozen=True, slots=True)
class RunsPlanned:
    """How many runs a procedure makes: fewest, most that are likely, and how many of these beside the search."""

    least: int
    most: int
    curve_most: int
    down_most: int
    headroom_most: int


def runs_planned(limits: SearchLimits, parts: Parts) -> RunsPlanned:
    """The fewest are those of a smallest load that misses the threshold: beside it only the curve is measured then."""
    least, most = runs_of(limits)
    headroom_most = len(headroom.SHARES_PERCENT) * headroom.repeats_of(limits)[1] if parts.headroom else 0
    down_most = way_down.LOADS_MOST if parts.down else 0
    curve_most = parts.curve.runs if parts.curve else 0
    most += curve_most + down_most + headroom_most
    # Runs of the search count for the curve too.
    return RunsPlanned(max(least, curve_most), most, curve_most, down_most, headroom_most)
