"""The chart of a workload's results by block. If all lines move together, the machine drifted; no setting did it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import fmean

import altair as alt

from linerate.report.panels.charts import WIDTH, Spec, finished
from linerate.report.panels.series import Point
from linerate.report.panels.svg import PALETTE
from linerate.report.study.model import StudyPage, WorkloadPart

_WIDTH, _HEIGHT = 2 * WIDTH + 60, 110
_NAMED_MAX = 6
_STRIP_MAX = 40
"""Pixels: a wider strip at the first or last block would widen the whole drawing."""
_POINTS_MAX = 4_000


def drift_chart(page: StudyPage, part: WorkloadPart) -> Spec | None:
    """One line per case over the blocks, in percent of the case's own mean, the baseline in front of all others.

    None without values, or with more than a chart can show.
    """
    values: dict[str, dict[int, list[float]]] = {}
    for seen in page.observations:
        if seen.workload == part.name and part.metric.name in seen.values:
            by_block = values.setdefault(seen.case, {})
            by_block.setdefault(seen.block, []).append(seen.values[part.metric.name])
    points: list[Point] = []
    for case, by_block in values.items():
        middle = fmean(value for block in by_block.values() for value in block)
        points += [
            {"block": block, "off": round(100 * (fmean(own) / middle - 1), 3), "case": case}
            for block, own in sorted(by_block.items())
            if middle > 0
        ]
    if not points or len(points) > _POINTS_MAX:
        return None
    baseline = [point for point in points if point["case"] == page.judgement.baseline]
    others = [point for point in points if point["case"] != page.judgement.baseline]
    floor = page.judgement.floor(part.name, part.metric.name)
    scatter = floor.spread if floor is not None and floor.scale == "ratio" else None
    return finished(
        alt.layer(
            *([_band(scatter)] if scatter else []),
            _line(others).mark_line(color=PALETTE["low"], strokeWidth=1, opacity=0.7),
            _line(baseline).mark_line(color=PALETTE["ink"], strokeWidth=1.8, point=_DOTS),
            _hits(page, points),
        ),
        width=_WIDTH,
        height=_HEIGHT,
    )


_DOTS = alt.OverlayMarkDef(color=PALETTE["ink"], filled=True, size=24, opacity=1)


def _line(points: list[Point]) -> alt.Chart:
    chart: alt.Chart = alt.Chart(alt.Data(values=points)).encode(  # type: ignore[no-untyped-call]
        x=alt.X("block:O").title("block").axis(labelAngle=0, labelOverlap=True),
        y=alt.Y("off:Q").title("% off its mean").axis(tickCount=4, format="+~r"),
        detail="case:N",
    )
    return chart


def _band(scatter: float) -> alt.Chart:
    """How far one run of the baseline is from the other one of its block."""
    band: alt.Chart = (
        alt.Chart(alt.Data(values=[{"low": -scatter, "high": scatter}]))  # type: ignore[no-untyped-call]
        .mark_rect(color=PALETTE["band"], opacity=1)
        .encode(y=alt.Y("low:Q"), y2="high:Q")
    )
    return band


def _hits(page: StudyPage, points: list[Point]) -> alt.Chart:
    """An invisible strip at each block, whose tooltip has the baseline and the cases that are farthest off."""
    by_block: dict[int, dict[str, float]] = {}
    for point in points:
        by_block.setdefault(point["block"], {})[point["case"]] = point["off"]
    said = [
        {"block": block, "say": "\n".join([f"block {block}", *_named(page, off)])}
        for block, off in by_block.items()
    ]
    strips: alt.Chart = (
        alt.Chart(alt.Data(values=said))  # type: ignore[no-untyped-call]
        .mark_rule(strokeWidth=min(_WIDTH / max(len(said), 1), _STRIP_MAX), aria=True)
        .encode(x=alt.X("block:O"), description="say:N")
    )
    return strips


def _named(page: StudyPage, off: Mapping[str, float]) -> Iterator[str]:
    baseline = page.judgement.baseline
    others = sorted((case for case in off if case != baseline), key=lambda case: -abs(off[case]))
    for case in (*((baseline,) if baseline in off else ()), *others[:_NAMED_MAX]):
        yield f"{page.title_of(case)}: {off[case]:+.1f} % off its mean"
    if len(others) > _NAMED_MAX:
        yield f"{len(others) - _NAMED_MAX} more cases are nearer to theirs"
