"""The chart of a workload's results by block: what moves every case together is the laboratory, not a setting."""

from __future__ import annotations

from statistics import fmean

import altair as alt

from linerate.report.panels.charts import WIDTH, Spec, finished
from linerate.report.panels.series import Point
from linerate.report.panels.svg import PALETTE
from linerate.report.study.model import StudyPage, WorkloadPart

_HEIGHT = 110
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
    return finished(
        alt.layer(
            _line(others).mark_line(color=PALETTE["low"], strokeWidth=1, opacity=0.7),
            _line(baseline).mark_line(color=PALETTE["ink"], strokeWidth=1.8, point=_DOTS),
        ),
        width=2 * WIDTH + 60,
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
