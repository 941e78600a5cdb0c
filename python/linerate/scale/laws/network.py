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

from linerate.scale.laws.jackknife import REACH, Law, left_out_one_by_one

_LOADS_MIN = 4  # one unknown, one load left out, and two to interpolate between
_GRIDS, _GRID = 2, 33
"""Grids of delays, and the delays of each: to 1 / 512 of the response time at the smallest load."""
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

    def fitted(choices: Sequence[Sequence[int]]) -> list[ClosedNetwork]:
        """All at once: the recursion costs little more for many networks than for one."""
        most = ceil(REACH * max(by_load) * per_load)
        customers = [np.array(loads, float) * per_load for loads in choices]
        tables = [np.array([demands[load] for load in loads]) for loads in choices]
        measured = [np.array([rates[load] for load in loads]) for loads in choices]
        at_each = np.stack([_at_each(*one, most) for one in zip(customers, tables, strict=True)], axis=1)
        delays_s = _delays(customers, measured, at_each[: ceil(max(by_load) * per_load)])
        found = analysed(delays_s[:, np.newaxis], at_each)[:, :, 0]
        return [
            ClosedNetwork(
                tuple(stations),
                float(delays_s[place]),
                customers[place],
                tables[place],
                per_load,
                found[:, place],
            )
            for place in range(len(choices))
        ]

    return left_out_one_by_one(rates, fitted)


def analysed(delays_s: Floats, demands_s: Floats) -> Floats:
    """The rate of 1, 2, 3 ... customers in I/Os per second.

    Args:
        delays_s: (networks, delays): the delays that are tried of each network.
        demands_s: (customers, networks, stations).

    Returns (customers, networks, delays).
    """
    queues = np.zeros((*delays_s.shape, demands_s.shape[2]))
    rates = np.empty((len(demands_s), *delays_s.shape))
    for number, demands in enumerate(demands_s, start=1):
        at_stations = demands[:, np.newaxis, :] * (1 + queues)
        rate = number / (delays_s + at_stations.sum(axis=2))
        queues = rate[:, :, np.newaxis] * at_stations
        rates[number - 1] = rate
    return rates


def _at_each(customers: Floats, table: Floats, most: int) -> Floats:
    """Demands of 1 to `most` customers."""
    logs = np.log(np.arange(1, most + 1))
    return np.column_stack([np.interp(logs, np.log(customers), column) for column in table.T])


def _delays(customers: Sequence[Floats], measured: Sequence[Floats], demands_s: Floats) -> Floats:
    """Of each network the delay in seconds, 0 or more, at which rates are nearest to those measured.

    Least squares of logarithms. A grid, then a finer one around its best.
    """
    numbers = np.arange(1, len(demands_s) + 1)
    low = np.zeros(len(customers))
    # All of the response time at the smallest load.
    high = np.array([seen[0] / rates[0] for seen, rates in zip(customers, measured, strict=True)])
    best = low
    every = np.arange(len(customers))
    for _ in range(_GRIDS):
        tried = np.linspace(low, high, _GRID, axis=1)
        found = analysed(tried, demands_s)
        misfits = [
            [np.square(np.log(np.interp(seen, numbers, column) / rates)).sum() for column in of_network.T]
            for seen, rates, of_network in zip(customers, measured, found.swapaxes(0, 1), strict=True)
        ]
        place = np.array(misfits).argmin(axis=1)
        best = tried[every, place]
        low, high = tried[every, np.maximum(place - 1, 0)], tried[every, np.minimum(place + 1, _GRID - 1)]
    return best
