"""What shows when nothing was changed: the baseline against itself, drift along the blocks, stray runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from linerate.analysis.metric import Metric
from linerate.analysis.verdict.blocks import BlockComparison, BlockRun, Table, from_scale
from linerate.analysis.verdict.estimate import Array, estimate, t_interval
from linerate.analysis.verdict.looks import Looks
from linerate.analysis.verdict.model import Drift, NoiseFloor
from linerate.analysis.verdict.power import detectable
from linerate.analysis.verdict.student import t_reach

STRAY_SPREADS = 5.0  # robust standard deviations: one run in two million, were the noise normal
STRAY_FROM_BLOCKS = 4
STRAY_MARGINS = 0.5
"""A block that is closer than this share of the margin to the others is not far, however close these are."""
MAD_TO_SPREAD = 1.4826
DRIFT_FREEDOM_MIN = 4


def noise_floor(table: Table, baseline: str, alpha: float, looks: Looks) -> NoiseFloor | None:
    """A/A: the last baseline run of each block against the first. None without a block that has two."""
    blocks: dict[int, list[BlockRun]] = {}
    for place in table.runs.get(baseline, ()):
        blocks.setdefault(place.block, []).append(place)
    repeated = [places for places in blocks.values() if len(places) > 1]
    if not repeated:
        return None
    rounding = max(math.hypot(places[-1].rounding, places[0].rounding) for places in repeated)
    found = estimate(np.array([places[-1].value - places[0].value for places in repeated]), rounding)
    low, high = t_interval(found, alpha)
    spread = float(found.error) * math.sqrt(len(repeated)) if found.freedom else None
    change = None
    if spread is not None:
        # of two single runs; a case is one run against the mean of the block's baseline runs
        runs = min(len(places) for places in repeated)
        level = alpha * looks.share(len(repeated))
        change = detectable(spread * math.sqrt((1 + 1 / runs) / 2), len(repeated), level)
    return NoiseFloor(
        workload=table.workload,
        metric=table.metric.name,
        scale=table.metric.scale,
        blocks=len(repeated),
        estimate=from_scale(table.metric, float(found.centre)),
        low=from_scale(table.metric, float(low)) if found.freedom else None,
        high=from_scale(table.metric, float(high)) if found.freedom else None,
        spread=_as_change(table.metric, spread),
        detectable=_as_change(table.metric, change),
    )


def drift(table: Table, alpha: float) -> Drift | None:
    """The slope of the values over the place in the block, with cases and blocks taken out by least squares.

    None when places are unknown, or too few runs are left to tell a slope from noise.
    """
    runs = [(case, place) for case, places in table.runs.items() for place in places]
    positions = np.array([np.nan if place.position is None else place.position for _, place in runs])
    if not len(runs) or np.isnan(positions).any() or positions.max() == 0:
        return None
    values = np.array([place.value for _, place in runs])
    design = np.column_stack(
        [
            positions / positions.max(),
            _indicators([case for case, _ in runs]),
            _indicators([str(place.block) for _, place in runs])[:, 1:],
        ]
    )
    solution, _, rank, _ = np.linalg.lstsq(design, values, rcond=None)
    freedom = len(values) - int(rank)
    if freedom < DRIFT_FREEDOM_MIN or rank < design.shape[1]:
        return None
    residual = values - design @ solution
    covariance = np.linalg.inv(design.T @ design)[0, 0] * float(residual @ residual) / freedom
    reach = float(t_reach(alpha / 2, freedom)) * math.sqrt(covariance)
    slope = float(solution[0])
    low, middle, high = (
        _as_change(table.metric, value) or 0.0 for value in (slope - reach, slope, slope + reach)
    )
    return Drift(table.workload, table.metric.name, table.metric.scale, change=middle, low=low, high=high)


def stray_blocks(rows: Sequence[BlockComparison], margin: float) -> Mapping[tuple[str, str], tuple[int, ...]]:
    """Blocks far off their case's others, per (workload, case); the yardstick is what all cases of a workload do."""
    far: dict[tuple[str, str], tuple[int, ...]] = {}
    for workload in dict.fromkeys(row.workload for row in rows):
        enough = [row for row in rows if row.workload == workload and len(row.blocks) >= STRAY_FROM_BLOCKS]
        if not enough:
            continue
        offsets = {row.case: row.points - np.median(row.points) for row in enough}
        spread = MAD_TO_SPREAD * float(np.median(np.abs(np.concatenate(list(offsets.values())))))
        for row in enough:
            near = STRAY_MARGINS * (row.metric.margin or margin)
            distant = np.abs(offsets[row.case]) > max(STRAY_SPREADS * spread, near)
            far[workload, row.case] = tuple(np.array(row.blocks)[distant].tolist())
    return far


def _indicators(names: Sequence[str]) -> Array:
    distinct = {name: index for index, name in enumerate(dict.fromkeys(names))}
    table = np.zeros((len(names), len(distinct)))
    table[range(len(names)), [distinct[name] for name in names]] = 1.0
    return table


def _as_change(metric: Metric, value: float | None) -> float | None:
    if value is None or metric.scale == "difference":
        return value
    return 100 * (from_scale(metric, value) - 1)
