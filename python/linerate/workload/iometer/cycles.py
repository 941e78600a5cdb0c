"""Which targets of which workers a run uses, and how many I/Os are in flight on each: the test types of Iometer.

From the source of Iometer 1.1.0 (GalileoView.cpp): a cycle goes on as long as its number brings more targets in. The
numbers are start, start+step, start+2*step, .. or start, start*step, start*step^2, ..; a step of 1 always adds. In
CYCLE_WORKERS_AND_TARGETS the step of the workers decides that for the targets too.
"""

from __future__ import annotations

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


def shapes(setup: IcfSetup, counts: Sequence[int]) -> Iterator[RunShape]:
    """The runs of one access specification in order. counts: targets of each worker that takes part."""
    match setup.kind.name:
        case "CYCLE_TARGETS":
            yield from _more_targets(setup.targets, counts)
        case "CYCLE_WORKERS":
            for number, used in _growing(setup.workers, lambda number: _first(counts, number)):
                yield RunShape(used, loops=(("workers", str(number)),))
        case "INCREMENT_TARGETS_PARALLEL" | "INCREMENT_TARGETS_SERIAL":
            for number, used in _growing(setup.targets, lambda number: _one_after_other(counts, number)):
                yield RunShape(used, loops=(("targets", str(number)),))
        case "CYCLE_WORKERS_AND_TARGETS":
            for number, used in _growing(setup.workers, lambda number: _first(counts, number)):
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


def _first(counts: Sequence[int], number: int) -> tuple[int, ...]:
    """All targets of the first workers."""
    return tuple(count if place < number else 0 for place, count in enumerate(counts))


def _one_after_other(counts: Sequence[int], number: int) -> tuple[int, ...]:
    """The first targets, worker by worker."""
    used = []
    for count in counts:
        used.append(min(count, number))
        number -= used[-1]
    return tuple(used)
