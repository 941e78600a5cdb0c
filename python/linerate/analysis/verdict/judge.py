"""`judge`: from the observations of a study to a verdict per case, workload and metric.

Each workload has one primary metric: those effects form the verdict table and are corrected as one family, over all
cases and workloads. The other metrics (response time, CPU, retransmits) are judged too, each metric as
a family of its own, to explain the primary ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from linerate.analysis.metric import Metric
from linerate.analysis.verdict.blocks import BlockComparison, Table, comparisons, from_scale, tabulate
from linerate.analysis.verdict.decide import decide, measure
from linerate.analysis.verdict.estimate import spread_of
from linerate.analysis.verdict.metric import METRICS, find_metric
from linerate.analysis.verdict.model import Effect, Interval, Judgement, Observation, Test, Verdict
from linerate.analysis.verdict.noise import drift, noise_floor, stray_blocks
from linerate.analysis.verdict.power import blocks_needed
from linerate.analysis.verdict.warnings import warnings_about
from linerate.errors import UserError

MARGIN = 0.05  # of the NIC paper: smaller differences were not acknowledged
ALPHA = 0.05


@dataclass(slots=True)
class _Figures:
    """What one comparison comes down to before its family is corrected; NaN where blocks do not suffice."""

    centre: float
    error: float
    low: float
    high: float
    p: float
    p_equivalent: float
    test: Test
    interval: Interval


def judge(
    observations: Iterable[Observation],
    baseline: str,
    metric_of: Mapping[str, str],
    margin: float = MARGIN,
    alpha: float = ALPHA,
) -> Judgement:
    """Judge every case against the baseline.

    Args:
        observations: valid runs, in any order. Two baseline runs per block give the noise floor.
        baseline: the name of the case that the others are held against.
        metric_of: workload -> name of its primary metric.
        margin: relative difference that does not matter, in (0, 1).
        alpha: share of false positives allowed among the effects called better or worse.

    Raises:
        UserError: no observation of the baseline, a workload without a primary metric, a margin outside (0, 1).
    """
    seen = list(observations)
    _check(seen, baseline, metric_of, margin)
    workloads = list(dict.fromkeys(item.workload for item in seen))
    primary = [tabulate(seen, workload, find_metric(metric_of[workload])) for workload in workloads]
    other = {
        name: [tabulate(seen, workload, metric) for workload in workloads if metric_of[workload] != name]
        for name, metric in METRICS.items()
    }
    families = [primary, *other.values()]
    effects = [
        effect
        for tables in families
        for effect in _effects(tables, baseline, margin, alpha, primary=tables is primary)
    ]
    floors = [
        floor for tables in families for table in tables if (floor := noise_floor(table, baseline, alpha))
    ]
    drifts = [found for table in primary if (found := drift(table, alpha))]
    return Judgement(
        baseline=baseline,
        margin=margin,
        alpha=alpha,
        effects=tuple(effects),
        noise_floor=tuple(floors),
        drifts=tuple(drifts),
        warnings=tuple(warnings_about(primary, baseline, effects, floors, drifts)),
    )


def margins_of(metric: Metric, margin: float) -> tuple[float, float]:
    """Lower and upper bound of what does not matter, on the metric's scale: log(0.95), log(1.05) for 5 %."""
    if metric.margin is not None:
        return -metric.margin, metric.margin
    return math.log(1 - margin), math.log(1 + margin)


def _check(seen: Sequence[Observation], baseline: str, metric_of: Mapping[str, str], margin: float) -> None:
    if not 0 < margin < 1:
        raise UserError(f"the margin is {margin:g}", "give a fraction between 0 and 1, such as 0.05 for 5 %")
    if not any(item.case == baseline for item in seen):
        raise UserError(
            f"no valid run of the baseline {baseline}", "run the study's baseline, or look at why it failed"
        )
    for workload in dict.fromkeys(item.workload for item in seen):
        if workload not in metric_of:
            raise UserError(f"workload {workload} has no primary metric", "name one, such as iops or mib_s")


def _effects(
    tables: Sequence[Table], baseline: str, margin: float, alpha: float, *, primary: bool
) -> list[Effect]:
    rows = [row for table in tables for row in comparisons(table, baseline)]
    if not rows:
        return []
    margins = [margins_of(row.metric, margin) for row in rows]
    figures = _measure(rows, margins, alpha)
    decision = decide(
        centre=np.array([item.centre for item in figures]),
        p=np.array([item.p for item in figures]),
        p_inside=np.array([item.p_equivalent for item in figures]),
        margins=(np.array([low for low, _ in margins]), np.array([high for _, high in margins])),
        alpha=alpha,
    )
    # the level at which one more effect of this family would be shown
    decided = int((decision.p_adjusted <= alpha).sum())
    level = alpha * min(decided + 1, len(rows)) / len(rows)
    strays = stray_blocks(rows)
    effects = []
    for index, (row, item) in enumerate(zip(rows, figures, strict=True)):
        verdict = _verdict(row.metric, int(decision.direction[index]), bool(decision.equivalent[index]))
        needed = None
        if verdict == "undecided":
            spread = spread_of(item.error, len(row.blocks))
            needed = blocks_needed(item.centre, spread, margins[index], level, len(row.blocks))
        effects.append(
            Effect(
                case=row.case,
                workload=row.workload,
                metric=row.metric.name,
                scale=row.metric.scale,
                primary=primary,
                baseline=row.baseline,
                value=row.value,
                estimate=from_scale(row.metric, item.centre),
                low=_bound(row.metric, item.low),
                high=_bound(row.metric, item.high),
                p=_known(item.p),
                p_adjusted=_known(float(decision.p_adjusted[index])),
                p_equivalent=_known(float(decision.p_equivalent[index])),
                verdict=verdict,
                blocks=len(row.blocks),
                blocks_needed=needed,
                points=tuple(
                    (block, from_scale(row.metric, float(point)))
                    for block, point in zip(row.blocks, row.points, strict=True)
                ),
                outliers=strays.get((row.workload, row.case), ()),
                test=item.test,
                interval=item.interval,
            )
        )
    return effects


def _measure(
    rows: Sequence[BlockComparison], margins: Sequence[tuple[float, float]], alpha: float
) -> list[_Figures]:
    """The figures of every row of one family; rows with the same numbers of runs per block are measured at once."""
    alike: dict[tuple[int, ...], list[int]] = {}
    for index, row in enumerate(rows):
        alike.setdefault(tuple(len(block) for block in row.labels), []).append(index)
    family = sum(len(row.blocks) > 1 for row in rows)  # the others have no p to correct
    figures: dict[int, _Figures] = {}
    for shape, indices in alike.items():
        labels = [np.stack([rows[index].labels[block] for index in indices]) for block in range(len(shape))]
        low, high = (np.array([margins[index][side] for index in indices]) for side in (0, 1))
        found = measure(labels, (low, high), family, alpha)
        for place, index in enumerate(indices):
            figures[index] = _Figures(
                centre=float(found.centre[place]),
                error=float(found.error[place]),
                low=float(found.low[place]),
                high=float(found.high[place]),
                p=float(found.p[place]),
                p_equivalent=float(found.p_equivalent[place]),
                test=found.test,
                interval=found.interval,
            )
    return [figures[index] for index in range(len(rows))]


def _verdict(metric: Metric, direction: int, equivalent: bool) -> Verdict:
    if equivalent:
        return "equivalent"
    if not direction:
        return "undecided"
    return "better" if direction == metric.better else "worse"


def _bound(metric: Metric, value: float) -> float | None:
    return None if math.isnan(value) else from_scale(metric, value)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
