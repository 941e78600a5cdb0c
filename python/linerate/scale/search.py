"""The search for the largest load that keeps a threshold, without I/O: it says what to measure next.

    search = Search(limits)
    while (load := search.next()) is not None:
        search.record(load, measure(load))
    search.capacity()

Loads are integers, and a larger load is taken to have no shorter response time. The search doubles the load until it is
surely above the threshold. Then it halves the gap between the largest load that is surely below and the smallest that
is surely above. A load that stays undecided after all repeats is too close to the threshold to be told from it; the
search then goes on at both sides of it, and the answer is an interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import ceil, log2

from linerate.errors import UserError
from linerate.scale.threshold import Standing, standing

ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """Where to search and how often to measure. `resolution` is the relative gap at which the search ends."""

    limit_ms: float
    least: int = 1
    most: int = 1024
    repeats_least: int = 2
    repeats_most: int = 6
    resolution: float = 0.0
    alpha: float = ALPHA
    """Chance that the answer does not hold the true load."""

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most:
            raise UserError(
                f"loads from {self.least} to {self.most}", "the first must be 1 or more, and not larger"
            )
        if not 2 <= self.repeats_least <= self.repeats_most:
            raise UserError(
                f"{self.repeats_least} to {self.repeats_most} repeats",
                "two or more; one value decides nothing",
            )

    @property
    def doublings(self) -> int:
        """Loads of the way up."""
        return ceil(log2(self.most / self.least)) + 1

    @property
    def loads_most(self) -> int:
        """Most loads that are measured: those of the way up, and of two halvings."""
        return 2 + 3 * self.doublings

    @property
    def alpha_of_look(self) -> float:
        """The share of the error of one look at one load: each load may be looked at after every repeat."""
        looks = self.repeats_most - self.repeats_least + 1
        return self.alpha / (self.loads_most * looks)


@dataclass(frozen=True, slots=True)
class Capacity:
    """The answer: the largest load that keeps the threshold is at least `kept` and less than `missed`.

    `kept` is None if even the smallest load misses it, `missed` is None if the largest that was allowed keeps it.
    """

    kept: int | None
    missed: int | None
    undecided: tuple[int, ...]
    """Loads between the two that could not be told from the threshold."""


class Search:
    """Chooses loads; see the head of the module."""

    def __init__(self, limits: SearchLimits) -> None:
        self._limits = limits
        self._values: dict[int, list[float]] = {}
        self._standings: dict[int, Standing] = {}

    @property
    def runs(self) -> int:
        """How many measurements there were."""
        return sum(map(len, self._values.values()))

    def record(self, load: int, value_ms: float) -> None:
        """One measurement of a load. Raises ValueError for a time that is not above 0.

        The load is looked at after each repeat, until it is decided; each look has its share of the error.
        """
        if not value_ms > 0:
            raise ValueError(f"a response time of {value_ms} ms")
        values = self._values.setdefault(load, [])
        values.append(value_ms)
        if self.standing(load) == "undecided" and len(values) >= self._limits.repeats_least:
            self._standings[load] = standing(values, self._limits.limit_ms, self._limits.alpha_of_look)

    def standing(self, load: int) -> Standing:
        """What is known of a load."""
        return self._standings.get(load, "undecided")

    def next(self) -> int | None:
        """The load to measure next; None when the answer is known."""
        for load, values in self._values.items():
            if self.standing(load) == "undecided" and len(values) < self._limits.repeats_most:
                return load
        below, above = self._edges()
        if above is None:
            return self._higher()
        known = sorted(load for load in self._values if below <= load <= above)
        if below not in known:
            known.insert(0, below)
        gaps = [(low, high) for low, high in pairwise(known) if not self._is_narrow(low, high)]
        # Only the gaps at the two ends matter: between undecided loads there is nothing to learn.
        for low, high in gaps:
            if low == below or high == above:
                return (low + high) // 2
        return None

    def capacity(self) -> Capacity:
        """What is known now."""
        below, above = self._edges()
        between = (load for load in self._values if below < load < (above or load + 1))
        return Capacity(
            below if below >= self._limits.least else None,
            above,
            tuple(sorted(load for load in between if self.standing(load) == "undecided")),
        )

    def _edges(self) -> tuple[int, int | None]:
        """The largest load below all that are above and surely below itself, and the smallest surely above."""
        above = min((load for load in self._values if self.standing(load) == "above"), default=None)
        below = [
            load
            for load in self._values
            if self.standing(load) == "below" and (above is None or load < above)
        ]
        return max(below, default=self._limits.least - 1), above

    def _higher(self) -> int | None:
        """The next load of the way up."""
        if not self._values:
            return self._limits.least
        top = max(self._values)
        return None if top >= self._limits.most else min(2 * top, self._limits.most)

    def _is_narrow(self, low: int, high: int) -> bool:
        return high - low <= max(1, int(self._limits.resolution * low))


def runs_of(limits: SearchLimits) -> tuple[int, int]:
    """Fewest runs of a search, and most that are likely: with several loads that stay undecided."""
    return limits.repeats_least, limits.repeats_least * 2 * limits.doublings + 4 * limits.repeats_most
