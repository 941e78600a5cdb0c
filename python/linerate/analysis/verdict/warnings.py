"""What weakens a judgement as a whole, or is to be known about it: one sentence each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from linerate.analysis.metric import METRICS, Metric
from linerate.analysis.verdict.blocks import Table, from_scale, margins_of, to_scale
from linerate.analysis.verdict.model import Drift, Effect, NoiseFloor, change_of
from linerate.plural import plural

BLOCKS_FEW = 3  # of the seed's repeat rule; fewer give no usable error
STRAY_SHARE_MAX = 0.2
_SHUFFLE_FROM_BLOCKS = 4


@dataclass(frozen=True, slots=True)
class UnsteadyCase:
    """A case with many blocks far from the others. `shifts`: its verdict rests on those blocks."""

    said: str
    shifts: bool


def warnings_about(
    tables: Sequence[Table],
    baseline: str,
    floors: Sequence[NoiseFloor],
    unsteady: Sequence[UnsteadyCase],
) -> Iterator[str]:
    """What may shift a verdict. `tables` are those of the primary metrics."""
    yield from _unclean(tables, floors)
    for table in tables:
        yield from _order(table, baseline)
    yield from (case.said for case in unsteady if case.shifts)


def notes_about(
    tables: Sequence[Table],
    baseline: str,
    effects: Sequence[Effect],
    floors: Sequence[NoiseFloor],
    drifts: Sequence[Drift],
    unsteady: Sequence[UnsteadyCase],
) -> Iterator[str]:
    """What the intervals and the number of blocks account for already, or what the study chose."""
    yield from _few_blocks([effect for effect in effects if effect.primary])
    known = {(floor.workload, floor.metric) for floor in floors}
    missing = [table.workload for table in tables if (table.workload, table.metric.name) not in known]
    if missing:
        yield f"the baseline ran once per block, so there is no noise floor for {', '.join(missing)}"
    for item in drifts:
        if item.shown:
            metric = METRICS[item.metric]
            yield (
                f"{item.workload}: {metric.label} moved by {_points(metric, item.change)} from the first run "
                "of a block to the last: the order is shuffled, so verdicts hold, but warm up or settle for longer"
            )
    yield from (case.said for case in unsteady if not case.shifts)
    for table in tables:
        yield from _unusable(table, baseline)


def _few_blocks(effects: Sequence[Effect]) -> Iterator[str]:
    few = [effect for effect in effects if effect.blocks < BLOCKS_FEW]
    if few:
        fewest = min(effect.blocks for effect in few)
        yield (
            f"{len(few)} of {len(effects)} comparisons rest on {plural(fewest, 'block')}: "
            f"measure at least {BLOCKS_FEW}, better 6"
        )


def _unclean(tables: Sequence[Table], floors: Sequence[NoiseFloor]) -> Iterator[str]:
    known = {(floor.workload, floor.metric): floor for floor in floors}
    for table in tables:
        floor = known.get((table.workload, table.metric.name))
        if floor is not None and not floor.clean:
            yield (
                f"{floor.workload}: the baseline differs from itself by {_points(table.metric, floor.change)} in "
                f"{table.metric.label}: doubt effects of that size"
            )


def _order(table: Table, baseline: str) -> Iterator[str]:
    """A case that always runs at the same place cannot be told from what happens at that place."""
    for case, places in table.runs.items():
        blocks = {place.block for place in places}
        positions = {place.position for place in places}
        if len(blocks) < _SHUFFLE_FROM_BLOCKS or None in positions:
            continue
        fixed = len(positions) == 1 or (case == baseline and len(positions) * len(blocks) == len(places))
        if fixed:
            yield f"{table.workload}: {case} ran at the same place of every block: shuffle the order"


def _unusable(table: Table, baseline: str) -> Iterator[str]:
    if table.unusable:
        yield f"{table.workload}: {table.unusable} runs without a positive {table.metric.label} were left out"
    reference = {place.block for place in table.runs.get(baseline, ())}
    blocks = {place.block for places in table.runs.values() for place in places}
    if lost := sorted(blocks - reference):
        yield (
            f"{table.workload}: no valid baseline in block {', '.join(map(str, lost))}: "
            "what ran there is compared with nothing"
        )


def unsteady_cases(effects: Sequence[Effect], margin: float) -> Iterator[UnsteadyCase]:
    """Cases with many blocks far from the others.

    The verdict of an undecided case does not rest on those blocks: its interval is wide because of them.
    """
    for effect in effects:
        far = len(effect.outliers)
        if not effect.primary or far <= STRAY_SHARE_MAX * effect.blocks:
            continue
        metric = METRICS[effect.metric]
        near = [
            to_scale(metric, point) or 0.0 for block, point in effect.points if block not in effect.outliers
        ]
        whole = to_scale(metric, effect.estimate) or 0.0
        rests = effect.verdict != "undecided" and bool(near)
        shifts = rests and _size(metric, fmean(near), margin) != _size(metric, whole, margin)
        said = (
            f"{effect.workload}: {effect.case} is unsteady: {far} of {effect.blocks} blocks "
            f"{'is' if far == 1 else 'are'} far from the others"
        )
        if shifts:
            change = _points(metric, change_of(effect.scale, from_scale(metric, fmean(near))))
            said += f". Without {'it' if far == 1 else 'them'} the change is {change}: add blocks"
        yield UnsteadyCase(said, shifts)


def _points(metric: Metric, change: float) -> str:
    """A change in percent, or in the metric's own unit."""
    return f"{change:+.1f}" + ("%" if metric.scale == "ratio" else f" {metric.unit}")


def _size(metric: Metric, value: float, margin: float) -> int:
    """-1, 0 or 1: a value on the metric's scale is below, within or above the margins."""
    low, high = margins_of(metric, margin)
    return int(value > high) - int(value < low)
