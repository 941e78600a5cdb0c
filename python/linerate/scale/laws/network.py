"""Exact mean-value analysis of a closed network, with service demands that runs have measured.

Each disk, link and CPU that counts its busy time is a station with a queue. Its demand is the busy time per I/O of a
host (the utilisation law, D = U / X). All other time is one delay without a queue. It is fitted: the one unknown.

For n customers (I/Os in flight), station by station (M. Reiser and S. Lavenberg, Mean-Value Analysis of Closed
Multichain Queuing Networks, Journal of the ACM 1980):

    R_k = D_k (1 + Q_k)      X = n / (Z + sum R_k)      Q_k = X R_k

Demands differ from load to load: a disk orders its commands, and does more of them per second when its queue is long.
At each n the demands are those measured at the nearest loads, interpolated over the logarithm of the load, and
constant beyond (A. Kattepur and M. Nambiar, Performance Modeling of Multi-tiered Web Applications with Varying Service
Demands, IPDPS Workshops 2015). With equal demands at all loads the analysis is exact for queues of exponential service.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar  # type: ignore[import-untyped]

from linerate.scale.laws.jackknife import REACH, Law, left_out_one_by_one

_LOADS_MIN = 4  # one unknown, one load left out, and two to interpolate between
_DELAY_STEP = 1e-3
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Seen:
    """One run of a closed loop: its rate, I/Os in flight, and per station the busy seconds per I/O."""

    load: int
    iops: float
    in_flight: float
    demands_s: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ClosedNetwork:
    """Stations and a delay. `demands_s` has a row per measured load, in the order of `customers`, a column per station.

    `rates_iops` are those of 1, 2, 3 ... customers.
    """

    stations: tuple[str, ...]
    delay_s: float
    customers: Floats
    demands_s: Floats
    per_load: float
    """I/Os in flight per unit of load."""
    rates_iops: Floats = field(repr=False)

    def rate(self, load: float) -> float:
        """X(N), interpolated between whole numbers of I/Os in flight."""
        numbers = np.arange(1, len(self.rates_iops) + 1)
        return float(np.interp(load * self.per_load, numbers, self.rates_iops))

    @property
    def work_s(self) -> float:
        """Demand of all stations together at the largest load."""
        return float(self.demands_s[-1].sum())

    @property
    def busiest(self) -> tuple[str, float]:
        """The station with the largest demand at the largest load, and that demand in seconds: 1 / D is the most that
        the network can carry."""
        place = int(self.demands_s[-1].argmax())
        return self.stations[place], float(self.demands_s[-1][place])


def fit(runs: Sequence[Seen]) -> Law[ClosedNetwork] | None:
    """The law of measured runs; None with fewer than four loads, or where no station was seen at all of them."""
    by_load: dict[int, list[Seen]] = {}
    for run in runs:
        by_load.setdefault(run.load, []).append(run)
    if len(by_load) < _LOADS_MIN:
        return None
    stations = sorted(set.intersection(*(set(run.demands_s) for run in runs)))
    per_load = float(np.mean([run.in_flight / run.load for run in runs]))
    if not stations or per_load <= 0:
        return None
    rates = {load: float(np.mean([run.iops for run in of_load])) for load, of_load in by_load.items()}
    demands = {
        load: np.mean([[run.demands_s[name] for name in stations] for run in of_load], axis=0)
        for load, of_load in by_load.items()
    }

    def fitted(loads: Sequence[int]) -> ClosedNetwork:
        customers = np.array(loads, float) * per_load
        table = np.array([demands[load] for load in loads])
        measured = np.array([rates[load] for load in loads])
        most = ceil(REACH * max(by_load) * per_load)
        delay_s = _delay(customers, table, measured)
        found = analysed(delay_s, _at_each(customers, table, most))
        return ClosedNetwork(tuple(stations), delay_s, customers, table, per_load, found)

    return left_out_one_by_one(rates, fitted)


def analysed(delay_s: float, demands_s: Floats) -> Floats:
    """The rate of 1, 2, 3 ... customers in I/Os per second. `demands_s` has a row for each number, a column per
    station."""
    queues = np.zeros(demands_s.shape[1])
    rates = np.empty(len(demands_s))
    for number, demands in enumerate(demands_s, start=1):
        at_stations = demands * (1 + queues)
        rate = number / (delay_s + at_stations.sum())
        queues = rate * at_stations
        rates[number - 1] = rate
    return rates


def _at_each(customers: Floats, table: Floats, most: int) -> Floats:
    """Demands of 1 to `most` customers."""
    logs = np.log(np.arange(1, most + 1))
    return np.column_stack([np.interp(logs, np.log(customers), column) for column in table.T])


def _delay(customers: Floats, table: Floats, rates: Floats) -> float:
    """The delay in seconds, 0 or more, at which rates are nearest to those measured: least squares of logarithms."""
    demands = _at_each(customers, table, ceil(customers[-1]))
    numbers = np.arange(1, len(demands) + 1)
    longest = float(customers[0] / rates[0])  # all of the response time at the smallest load

    def misfit(delay_s: float) -> float:
        model = np.interp(customers, numbers, analysed(delay_s, demands))
        return float(np.square(np.log(model / rates)).sum())

    found = minimize_scalar(
        misfit, bounds=(0.0, longest), method="bounded", options={"xatol": _DELAY_STEP * longest}
    )
    return min((0.0, float(found.x)), key=misfit)
