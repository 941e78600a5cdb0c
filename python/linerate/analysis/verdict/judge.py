"""`judge`: from the observations of a study to a verdict per case, workload and metric.

Each workload has one primary metric: those effects form the verdict table and are corrected as one family, over all
cases and workloads. The other metrics (response time, CPU, retransmits) are judged too, each metric as
a family of its own, to explain the primary ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields

import numpy as np

from linerate.analysis.metric import METRICS, Metric, find_metric
from linerate.analysis.observation import Observation
from linerate.analysis.verdict.blocks import (
    BlockComparison,
    Table,
    comparisons,
    from_scale,
    margins_of,
    tabulate,
)
from linerate.analysis.verdict.decide import Measured, decide, measure
from linerate.analysis.verdict.estimate import Array
from linerate.analysis.verdict.looks import Looks
from linerate.analysis.verdict.model import Effect, Judgement, Verdict
from linerate.analysis.verdict.noise import drift, noise_floor, stray_blocks
from linerate.analysis.verdict.power import blocks_needed
from linerate.analysis.verdict.warnings import notes_about, unsteady_cases, warnings_about
from linerate.errors import UserError

MARGIN = 0.05  # of the NIC paper: smaller differences were not acknowledged
ALPHA = 0.05


def judge(
    observations: Iterable[Observation],
    baseline: str,
    metric_of: Mapping[str, str],
    margin: float = MARGIN,
    alpha: float = ALPHA,
    looks: Looks | None = None,
) -> Judgement:
    """Judge every case against the baseline.

    Args:
        observations: valid runs, in any order. Two baseline runs per block give the noise floor.
        baseline: the name of the case that the others are held against.
        metric_of: workload -> name of its primary metric.
        margin: relative difference that does not matter, in (0, 1).
        alpha: the chance that a family of comparisons shows any difference that is not there, over all looks.
        looks: when the results are looked at; None: once.

    Raises:
        UserError: no observation of the baseline, a workload without a primary metric, a margin outside (0, 1).
    """
    seen, looks = list(observations), looks or Looks()
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
        for effect in _effects(tables, baseline, margin, alpha, looks, primary=tables is primary)
    ]
    floors = [
        floor
        for tables in families
        for table in tables
        if (floor := noise_floor(table, baseline, alpha, looks))
    ]
    drifts = [found for table in primary if (found := drift(table, alpha))]
    unsteady = list(unsteady_cases(effects, margin))
    return Judgement(
        baseline=baseline,
        margin=margin,
        alpha=alpha,
        effects=tuple(effects),
        noise_floor=tuple(floors),
        drifts=tuple(drifts),
        warnings=tuple(warnings_about(primary, baseline, floors, unsteady)),
        notes=tuple(notes_about(primary, baseline, effects, floors, drifts, unsteady)),
        looks=looks,
    )


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
    tables: Sequence[Table], baseline: str, margin: float, alpha: float, looks: Looks, *, primary: bool
) -> list[Effect]:
    rows = [row for table in tables for row in comparisons(table, baseline)]
    if not rows:
        return []
    lows, highs = np.array([margins_of(row.metric, margin) for row in rows]).T
    shares = np.array([looks.share(max(row.blocks)) for row in rows])
    found = _measure(rows, (lows, highs), alpha, looks)
    decision = decide(
        centre=found.centre,
        p=found.p,
        p_inside=found.p_equivalent,
        margins=(lows, highs),
        alpha=alpha,
        shares=shares,
    )
    verdicts = [
        _verdict(
            row.metric, int(decision.direction[at]), bool(decision.matters[at]), bool(decision.equivalent[at])
        )
        for at, row in enumerate(rows)
    ]
    strays = stray_blocks(rows, margin)
    # the level at which one more comparison of this family would be decided
    level = alpha / max(sum(verdict == "undecided" for verdict in verdicts), 1)
    effects = []
    for at, (row, verdict) in enumerate(zip(rows, verdicts, strict=True)):
        needed = None
        if verdict == "undecided":
            spread = float(found.error[at]) * math.sqrt(len(row.blocks))
            bounds = (float(lows[at]), float(highs[at]))
            needed = blocks_needed(
                float(found.centre[at]), spread, bounds, level * float(shares[at]), len(row.blocks)
            )
        effects.append(
            Effect(
                case=row.case,
                workload=row.workload,
                metric=row.metric.name,
                scale=row.metric.scale,
                primary=primary,
                baseline=row.baseline,
                value=row.value,
                estimate=from_scale(row.metric, float(found.centre[at])),
                low=_bound(row.metric, float(found.low[at])),
                high=_bound(row.metric, float(found.high[at])),
                p=_known(float(found.p[at])),
                p_adjusted=_known(float(decision.p_adjusted[at])),
                p_equivalent=_known(float(decision.p_equivalent[at])),
                verdict=verdict,
                blocks=len(row.blocks),
                blocks_needed=needed,
                points=tuple(
                    (block, from_scale(row.metric, float(point)))
                    for block, point in zip(row.blocks, row.points, strict=True)
                ),
                outliers=strays.get((row.workload, row.case), ()),
                is_small=bool(decision.equivalent[at]),
            )
        )
    return effects


def _measure(
    rows: Sequence[BlockComparison], margins: tuple[Array, Array], alpha: float, looks: Looks
) -> Measured:
    """The figures of every row of one family; rows with the same number of blocks are measured at once."""
    alike: dict[int, list[int]] = {}
    for index, row in enumerate(rows):
        alike.setdefault(len(row.blocks), []).append(index)
    table = np.full((len(fields(Measured)), len(rows)), np.nan)
    for indices in alike.values():
        found = measure(
            np.stack([rows[index].points for index in indices]),
            (margins[0][indices], margins[1][indices]),
            np.array([looks.level(max(rows[index].blocks), alpha) for index in indices]),
            np.array([rows[index].rounding for index in indices]),
        )
        table[:, indices] = [getattr(found, field.name) for field in fields(Measured)]
    return Measured(*table)


def _verdict(metric: Metric, direction: int, matters: bool, equivalent: bool) -> Verdict:
    """The verdict on a comparison: `direction` of a difference that is shown (0: none is), and whether it matters."""
    if direction:
        is_better = direction == metric.better
        if matters:
            return "better" if is_better else "worse"
        return "slightly better" if is_better else "slightly worse"
    return "no difference" if equivalent else "undecided"


def _bound(metric: Metric, value: float) -> float | None:
    return None if math.isnan(value) else from_scale(metric, value)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
