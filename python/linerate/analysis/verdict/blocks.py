"""Observations laid out for comparison: each case beside the baseline of its own block.

Values are compared as logarithms (ratios) or as they are (differences), by their metric. A block that lacks the case
or the baseline is no block for that case: nothing is filled in.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from linerate.analysis.metric import Metric
from linerate.analysis.verdict.estimate import Array, location
from linerate.analysis.verdict.model import Observation
from linerate.analysis.verdict.permutation import relabelled

LOG_RATIO_MAX = 700.0  # with two blocks a bound may lie anywhere; beyond this it is no floating-point number


@dataclass(frozen=True, slots=True)
class BlockRun:
    """One run of a case: its block, its place in the block's order (if known), its value on the metric's scale."""

    block: int
    position: int | None
    value: float


@dataclass(frozen=True, slots=True)
class Table:
    """One metric under one workload: the runs of every case. `unusable` counts values that have no logarithm."""

    workload: str
    metric: Metric
    runs: Mapping[str, Sequence[BlockRun]]
    unusable: int = 0


@dataclass(frozen=True, slots=True)
class BlockComparison:
    """One case against the baseline, block by block.

    `labels` holds per block the effect under every labelling of its runs, the observed one first; `points` are those
    first ones. `baseline` and `value` are typical absolute figures.
    """

    case: str
    workload: str
    metric: Metric
    blocks: tuple[int, ...]
    labels: tuple[Array, ...]
    baseline: float
    value: float

    @property
    def points(self) -> Array:
        """The effect per block, on the metric's scale."""
        return np.array([block[0] for block in self.labels])


def to_scale(metric: Metric, value: float) -> float | None:
    """A value on the scale where effects add: its logarithm, or itself. None where it has no logarithm."""
    if metric.scale == "difference":
        return value if math.isfinite(value) else None
    return math.log(value) if value > 0 and math.isfinite(value) else None


def from_scale(metric: Metric, value: float) -> float:
    """The ratio or difference that an effect on the scale means."""
    return math.exp(min(value, LOG_RATIO_MAX)) if metric.scale == "ratio" else value


def tabulate(observations: Iterable[Observation], workload: str, metric: Metric) -> Table:
    """The runs of one workload that have the metric, in the order of their blocks."""
    runs: dict[str, list[BlockRun]] = {}
    unusable = 0
    for seen in observations:
        if seen.workload != workload or metric.name not in seen.values:
            continue
        value = to_scale(metric, seen.values[metric.name])
        if value is None:
            unusable += 1
        else:
            runs.setdefault(seen.case, []).append(BlockRun(seen.block, seen.position, value))
    ordered = {case: sorted(places, key=_in_order) for case, places in runs.items()}
    return Table(workload, metric, ordered, unusable)


def comparisons(table: Table, baseline: str) -> list[BlockComparison]:
    """Every case of the table that shares at least one block with the baseline."""
    reference = _by_block(table.runs.get(baseline, ()))
    found = []
    for case, places in table.runs.items():
        runs = {block: values for block, values in _by_block(places).items() if block in reference}
        if case == baseline or not runs:
            continue
        found.append(
            BlockComparison(
                case=case,
                workload=table.workload,
                metric=table.metric,
                blocks=tuple(runs),
                labels=tuple(relabelled(values, reference[block]) for block, values in runs.items()),
                baseline=_typical(table.metric, [reference[block] for block in runs]),
                value=_typical(table.metric, list(runs.values())),
            )
        )
    return found


def _in_order(place: BlockRun) -> tuple[int, int]:
    return place.block, -1 if place.position is None else place.position


def _by_block(places: Sequence[BlockRun]) -> dict[int, list[float]]:
    blocks: dict[int, list[float]] = {}
    for place in places:
        blocks.setdefault(place.block, []).append(place.value)
    return blocks


def _typical(metric: Metric, blocks: Sequence[Sequence[float]]) -> float:
    return from_scale(metric, float(location(np.array([np.mean(values) for values in blocks]))))
