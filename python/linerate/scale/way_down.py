"""The way down: loads of the way up are measured once more after the highest one.

A SAN can be slower at a load after it had a larger one: a cache is full of old data, a queue is not empty yet, a
session sends slowly after losses. Then a load has two response times, and the way up shows only one of them. A drift of
the SAN shows in the same way.

A run of the way down is compared with the repeats of the way up by a t test for one more value. The spread is that of
the repeats of all loads that are compared, relative to their means. All comparisons share an error of 5 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from linerate.scale.interval import STEP, t_quantile
from linerate.scale.reached import Reached, ScaleTask
from linerate.scale.search import ALPHA

LOADS_MOST = 4
_PARTS = (1.0, 0.5, 0.25)  # of the largest load
_FIGURES: tuple[Callable[[Reached], float], ...] = (lambda run: run.response_ms, lambda run: run.iops)


@dataclass(frozen=True, slots=True)
class Compared:
    """A load on both ways: response times in ms and rates in I/Os per second, of the way up geometric means."""

    load: int
    up_ms: float
    down_ms: float
    up_iops: float
    down_iops: float
    differs: bool
    """By more than repeats explain."""


def loads_down(runs: Sequence[Reached], kept: int) -> list[int]:
    """The loads of the way down in their order: the highest, the largest that keeps the threshold, about half of that
    and a quarter."""
    loads = sorted({run.load for run in runs if run.purpose == "up"})
    below = [load for load in loads if load <= kept]
    near = {min(below, key=lambda load: abs(math.log(load / (part * kept)))) for part in _PARTS}
    return sorted(near | {loads[-1]}, reverse=True)


def next_task(runs: Sequence[Reached], kept: int) -> ScaleTask | None:
    """The next run of the way down; None at its end."""
    done = sum(run.purpose == "down" for run in runs)
    loads = loads_down(runs, kept)
    return ScaleTask("down", loads[done]) if done < len(loads) else None


def compared(runs: Sequence[Reached]) -> list[Compared]:
    """Every load of the way down, with its load on the way up."""
    down = [run for run in runs if run.purpose == "down"]
    up = {run.load: [one for one in runs if one.purpose == "up" and one.load == run.load] for run in down}
    differing: set[int] = set()
    for figure in _FIGURES:
        logs = {load: [math.log(figure(one)) for one in repeats] for load, repeats in up.items()}
        squares = sum((value - fmean(values)) ** 2 for values in logs.values() for value in values)
        degrees = sum(len(values) - 1 for values in logs.values())
        if degrees < 1:
            continue
        spread = max(math.sqrt(squares / degrees), STEP)
        limit = t_quantile(1 - ALPHA / (2 * len(_FIGURES) * len(down)), degrees) * spread
        for run in down:
            values = logs[run.load]
            apart = abs(math.log(figure(run)) - fmean(values))
            if apart > limit * math.sqrt(1 + 1 / len(values)):
                differing.add(run.load)
    return [
        Compared(
            run.load,
            _mean([one.response_ms for one in up[run.load]]),
            run.response_ms,
            _mean([one.iops for one in up[run.load]]),
            run.iops,
            run.load in differing,
        )
        for run in down
    ]


def _mean(values: Sequence[float]) -> float:
    return math.exp(fmean(map(math.log, values)))
