"""A SAN on paper with a known knee: a closed network of equal disks, and the same disks under Poisson arrivals."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from linerate.scale import Parts, Procedure, Reached, ScaleTask, SearchLimits

LIMIT_MS = 20.0
MOST = 256


@lru_cache
def response_ms(load: int, disks: int, service_ms: float, think_ms: float = 0.3) -> float:
    """Mean response time of `load` I/Os in flight over equal disks, and a delay (Reiser and Lavenberg 1980)."""
    queue = 0.0
    response = 0.0
    for customers in range(1, load + 1):
        at_disk = service_ms * (1 + queue)
        response = at_disk + think_ms  # each I/O visits one of the disks
        queue = customers * at_disk / response / disks
    return response


def knee(disks: int, service_ms: float) -> int:
    """The largest load that keeps the limit."""
    load = 0
    while load < MOST and response_ms(load + 1, disks, service_ms) <= LIMIT_MS:
        load += 1
    return load


def open_response_ms(rate_iops: float, disks: int, service_ms: float, think_ms: float = 0.3) -> float:
    """Mean response time of Poisson arrivals at equal disks with exponential service: M/M/1 each, and a delay."""
    busy = rate_iops / disks * service_ms / 1000
    return service_ms / (1 - busy) + think_ms


class Disks:
    """Equal disks, with noise of every run.

    They take `slower_after` times as long once a load was above `past`, and `bursts` times as long for open arrivals.
    """

    def __init__(
        self,
        disks: int = 24,
        service_ms: float = 5.0,
        noise: float = 0.02,
        seed: int = 1,
        *,
        bursts: float = 1.0,
        past: float = math.inf,
        slower_after: float = 1.0,
    ) -> None:
        self._shape = (disks, service_ms)
        self._noise = noise
        self._random = np.random.default_rng(seed)
        self._bursts = bursts
        self._past, self._slower_after = past, slower_after
        self._slow = False

    def run(self, task: ScaleTask) -> Reached:
        """Makes a run."""
        disks, service_ms = self._shape
        if self._slow:
            service_ms *= self._slower_after
        self._slow = self._slow or task.load > self._past
        if task.rate_iops is not None:
            time_ms = self._bursts * open_response_ms(task.rate_iops, disks, service_ms)
            iops = task.rate_iops
        else:
            time_ms = response_ms(task.load, disks, service_ms)
            iops = 1000 * task.load / time_ms
        noise = math.exp(self._random.normal(0, self._noise))
        return Reached(
            purpose=task.purpose,
            load=task.load,
            response_ms=time_ms * noise,
            mean_ms=time_ms * noise,
            p99_ms=4.6 * time_ms * noise,
            iops=iops if task.rate_iops else iops / noise,
            share_percent=task.share_percent,
            asked_iops=task.rate_iops,
            directory="",
        )


def carried_out(
    run: Callable[[ScaleTask], Reached], parts: Parts | None = None, limits: SearchLimits | None = None
) -> Procedure:
    """A whole procedure."""
    procedure = Procedure(limits or SearchLimits(LIMIT_MS, most=MOST), parts or Parts())
    while (task := procedure.next()) is not None:
        procedure.record(run(task))
    return procedure
