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
from linerate.analysis.observation import Observation
from linerate.analysis.verdict.estimate import Array

LOG_RATIO_MAX = 700.0  # with two blocks a bound may be anywhere; beyond this it is no floating-point number
COUNTED = frozenset({"iops", "mib_s"})
"""Metrics that are a count of whole I/Os over a time."""
_ROUNDING = 1 / math.sqrt(12)  # standard deviation of a number that is rounded to one


@dataclass(frozen=True, slots=True)
class BlockRun:
    """One run of a case: its block, its place in the block's order (if known), its value on the metric's scale.

    `rounding` is the standard deviation that counting whole I/Os gives the value; 0 if their number is not known.
    """

    block: int
    position: int | None
    value: float
    rounding: float = 0.0


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

    `points` are the effects per block, on the metric's scale, and `rounding` the standard deviation that counting whole
    I/Os gives them. `baseline` and `value` are the means over the same blocks (geometric means for ratios). So `value`
    over `baseline` is the mean effect.
    """

    case: str
    workload: str
    metric: Metric
    blocks: tuple[int, ...]
    points: Array
    rounding: float
    baseline: float
    value: float


def to_scale(metric: Metric, value: float) -> float | None:
    """A value on the scale where effects add: its logarithm, or itself. None where it has no logarithm."""
    if metric.scale == "difference":
        return value if math.isfinite(value) else None
    return math.log(value) if value > 0 and math.isfinite(value) else None


def from_scale(metric: Metric, value: float) -> float:
    """The ratio or difference that an effect on the scale means."""
    return math.exp(min(value, LOG_RATIO_MAX)) if metric.scale == "ratio" else value


def margins_of(metric: Metric, margin: float) -> tuple[float, float]:
    """Lower and upper bound of what does not matter, on the metric's scale: log(0.95), log(1.05) for 5 %."""
    if metric.margin is not None:
        return -metric.margin, metric.margin
    return math.log(1 - margin), math.log(1 + margin)


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
            run = BlockRun(seen.block, seen.position, value, _rounding(metric, seen.values))
            runs.setdefault(seen.case, []).append(run)
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
        ours = np.array([_mean(values) for values in runs.values()])
        theirs = np.array([_mean(reference[block]) for block in runs])
        found.append(
            BlockComparison(
                case=case,
                workload=table.workload,
                metric=table.metric,
                blocks=tuple(runs),
                points=ours - theirs,
                rounding=max(
                    math.hypot(_rounding_of_mean(values), _rounding_of_mean(reference[block]))
                    for block, values in runs.items()
                ),
                baseline=from_scale(table.metric, float(theirs.mean())),
                value=from_scale(table.metric, float(ours.mean())),
            )
        )
    return found


def _rounding(metric: Metric, values: Mapping[str, float]) -> float:
    ios = values.get("ios", 0.0)
    return _ROUNDING / ios if metric.name in COUNTED and ios > 0 else 0.0


def _in_order(place: BlockRun) -> tuple[int, int]:
    return place.block, -1 if place.position is None else place.position


def _by_block(places: Sequence[BlockRun]) -> dict[int, list[BlockRun]]:
    blocks: dict[int, list[BlockRun]] = {}
    for place in places:
        blocks.setdefault(place.block, []).append(place)
    return blocks


def _mean(runs: Sequence[BlockRun]) -> float:
    return sum(run.value for run in runs) / len(runs)


def _rounding_of_mean(runs: Sequence[BlockRun]) -> float:
    return math.sqrt(sum(run.rounding**2 for run in runs)) / len(runs)
