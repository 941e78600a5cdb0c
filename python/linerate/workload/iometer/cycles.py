"""Which targets of which workers a run uses, and how many I/Os are in flight on each: the test types of Iometer.

From the source of Iometer 1.1.0 (GalileoView.cpp): a cycle goes on as long as its number brings more targets in. The
numbers are start, start+step, start+2*step, .. or start, start*step, start*step^2, ..; a step of 1 always adds. In
CYCLE_WORKERS_AND_TARGETS the step of the workers decides that for the targets too. Each manager goes through its own
workers at the same time; INCREMENT_TARGETS_SERIAL goes through those of all managers, one after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from linerate.workload.iometer.configuration import Cycling, IcfSetup


@dataclass(frozen=True, slots=True)
class RunShape:
    """The part of a configuration that one run uses. targets: by worker, how many of its first targets."""

    targets: tuple[int, ...]
    depth: int | None = None
    """I/Os in flight on each target; None: as the workers say."""
    loops: tuple[tuple[str, str], ...] = ()
    """What was changed, as (name, number)."""


def cycles_of(setup: IcfSetup) -> Sequence[Cycling]:
    """The cycles that the test type uses."""
    name = setup.kind.name
    used = []
    if "WORKERS" in name:
        used.append(setup.workers)
    if "TARGETS" in name:
        used.append(setup.targets)
    if "OUTSTANDING" in name:
        used.append(setup.depth)
    return used


def shapes(setup: IcfSetup, counts: Sequence[int], managers: Sequence[int]) -> Iterator[RunShape]:
    """The runs of one access specification in order. counts: targets of each worker that takes part, in the order of
    the file; managers: the number of its manager."""
    match setup.kind.name:
        case "CYCLE_TARGETS":
            yield from _more_targets(setup.targets, counts)
        case "CYCLE_WORKERS":
            for number, used in _growing(setup.workers, lambda number: _first(counts, managers, number)):
                yield RunShape(used, loops=(("workers", str(number)),))
        case "INCREMENT_TARGETS_PARALLEL" | "INCREMENT_TARGETS_SERIAL" as kind:
            groups = managers if kind == "INCREMENT_TARGETS_PARALLEL" else [0] * len(counts)
            for number, used in _growing(setup.targets, lambda number: _down(counts, groups, number)):
                yield RunShape(used, loops=(("targets", str(number)),))
        case "CYCLE_WORKERS_AND_TARGETS":
            for number, used in _growing(setup.workers, lambda number: _first(counts, managers, number)):
                adds = setup.targets.step == 1 or setup.workers.step == 1
                for shape in _more_targets(setup.targets, used, adds=adds):
                    yield RunShape(shape.targets, loops=(("workers", str(number)), *shape.loops))
        case "CYCLE_OUTSTANDING_IOS":
            yield from _more_depth(setup.depth, RunShape(tuple(counts)))
        case "CYCLE_OUTSTANDING_IOS_AND_TARGETS":
            for shape in _more_targets(setup.targets, counts):
                yield from _more_depth(setup.depth, shape)
        case _:
            yield RunShape(tuple(counts))


def _numbers(cycling: Cycling, *, adds: bool) -> Iterator[int]:
    number = cycling.start
    while cycling.end is None or number <= cycling.end:
        yield number
        number = number * cycling.step if cycling.is_exponential and not adds else number + cycling.step


def _growing(
    cycling: Cycling, used: Callable[[int], tuple[int, ...]], *, adds: bool | None = None
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Numbers with the targets that they use, while these become more."""
    before = 0
    for number in _numbers(cycling, adds=cycling.step == 1 if adds is None else adds):
        targets = used(number)
        if sum(targets) <= before:
            return
        before = sum(targets)
        yield number, targets


def _more_targets(cycling: Cycling, counts: Sequence[int], *, adds: bool | None = None) -> Iterator[RunShape]:
    def used(number: int) -> tuple[int, ...]:
        return tuple(min(number, count) for count in counts)

    for number, targets in _growing(cycling, used, adds=adds):
        yield RunShape(targets, loops=(("targets", str(number)),))


def _more_depth(cycling: Cycling, shape: RunShape) -> Iterator[RunShape]:
    for depth in _numbers(cycling, adds=cycling.step == 1):
        yield RunShape(shape.targets, depth, (*shape.loops, ("outstanding", str(depth))))


def _first(counts: Sequence[int], managers: Sequence[int], number: int) -> tuple[int, ...]:
    """All targets of the first workers of each manager."""
    taken: Counter[int] = Counter()
    used = []
    for count, manager in zip(counts, managers, strict=True):
        used.append(count if taken[manager] < number else 0)
        taken[manager] += 1
    return tuple(used)


def _down(counts: Sequence[int], managers: Sequence[int], number: int) -> tuple[int, ...]:
    """The first targets of each manager, worker by worker."""
    left = dict.fromkeys(managers, number)
    used = []
    for count, manager in zip(counts, managers, strict=True):
        used.append(min(count, left[manager]))
        left[manager] -= used[-1]
    return tuple(used)
