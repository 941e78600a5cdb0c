"""Which law of scaling to believe: the one that misses loads that it has not seen by less."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from linerate.scale.laws import network, universal
from linerate.scale.laws.jackknife import REACH, Law, Model
from linerate.scale.laws.network import ClosedNetwork, Seen
from linerate.scale.laws.universal import Parameters
from linerate.scale.reached import Axis, Reached

Name = Literal["universal", "network"]
WORDS: dict[Name, str] = {"universal": "Universal Scalability Law", "network": "Mean-value analysis"}


@dataclass(frozen=True, slots=True)
class Prediction:
    """The rate of a load in I/Os per second, its interval and the probability of that."""

    load: int
    iops: float
    low: float
    high: float
    probability: float


@dataclass(frozen=True, slots=True)
class Laws:
    """Both laws, as far as there were enough loads, and service demands."""

    universal: Law[Parameters] | None
    network: Law[ClosedNetwork] | None

    @property
    def all(self) -> dict[Name, Law[Model]]:
        """Those that there are."""
        found: dict[Name, Law[Model] | None] = {"universal": self.universal, "network": self.network}
        return {name: law for name, law in found.items() if law is not None}

    @property
    def chosen(self) -> Name | None:
        """The one with the smaller error of loads that were left out."""
        there = self.all
        return min(there, key=lambda name: there[name].typical_error, default=None)

    def furthest(self) -> Prediction | None:
        """What the chosen law expects of the largest load that it may speak of."""
        if self.chosen is None:
            return None
        law = self.all[self.chosen]
        load = int(REACH * law.largest_load)
        low, high = law.interval(load)
        return Prediction(load, law.rate(load), low, high, min(law.probability, 0.95))


def laws_of(axis: Axis, runs: Sequence[Reached]) -> Laws:
    """The laws of a search. A paced load has none: its rate is what was asked for."""
    up = [run for run in runs if run.is_on_curve]
    if axis == "rate":
        return Laws(None, None)
    rates: dict[int, list[float]] = {}
    for run in up:
        rates.setdefault(run.load, []).append(run.iops)
    seen = [
        Seen(run.load, run.iops, float(run.in_flight), run.demands_s)
        for run in up
        if run.in_flight is not None
    ]
    return Laws(universal.fit(rates), network.fit(seen) if len(seen) == len(up) else None)
