"""The chart of one line of a history: points, levels, and upright lines where something changed."""

from __future__ import annotations

from datetime import UTC, datetime

import altair as alt

from linerate.history import EnvironmentChange, HistoryLine
from linerate.report.panels.charts import ZERO_PLAIN, Spec, finished
from linerate.report.panels.series import Point
from linerate.report.panels.svg import PALETTE

POINTS_MAX = 2_000
_WIDTH, _HEIGHT = 400, 130


def history_chart(line: HistoryLine, environment: tuple[EnvironmentChange, ...]) -> Spec:
    """The latest points of a line over time, the median of each level, and the changes.

    Dotted uprights are changes of the environment, dashed ones are changes of level.
    """
    skipped = max(len(line.points) - POINTS_MAX, 0)
    begin = line.points[skipped].at
    points: list[Point] = [{"t": _iso(point.at), "v": point.value} for point in line.points[skipped:]]
    marks: list[Point] = [
        {"t": _iso(time), "kind": "environment"}
        for time in dict.fromkeys(change.at for change in environment)
        if time >= begin
    ]
    marks += [{"t": _iso(line.points[change.index].at), "kind": "level"} for change in line.level_changes]
    base = alt.Chart(_data(points)).encode(x=_x(), y=_y(line))
    layers = [
        *([_marks(marks)] if marks else []),
        base.mark_line(color=PALETTE["low"], strokeWidth=1),
        base.mark_point(color=PALETTE["read"], filled=True, size=18, opacity=1),
        *([_levels(line)] if line.level_changes else []),
    ]
    return finished(alt.layer(*layers), width=_WIDTH, height=_HEIGHT)


def _levels(line: HistoryLine) -> alt.Chart:
    changes = line.level_changes
    bounds = [0, *(change.index for change in changes), len(line.points)]
    medians = [changes[0].before, *(change.after for change in changes)]
    spans = [
        {"t": _iso(line.points[begin].at), "end": _iso(line.points[end - 1].at), "v": median}
        for begin, end, median in zip(bounds, bounds[1:], medians, strict=False)
    ]
    chart: alt.Chart = (
        alt.Chart(_data(spans))
        .mark_rule(color=PALETTE["ink"], strokeWidth=1.6)
        .encode(x=_x(), x2="end:T", y=_y(line))
    )
    return chart


def _marks(marks: list[Point]) -> alt.Chart:
    kinds = ["level", "environment"]
    colours = [PALETTE["void"], PALETTE["muted"]]
    chart: alt.Chart = (
        alt.Chart(_data(marks))
        .mark_rule(strokeWidth=1.2)
        .encode(
            x=_x(),
            stroke=alt.Stroke("kind:N").scale(domain=kinds, range=colours).legend(None),
            strokeDash=alt.StrokeDash("kind:N").scale(domain=kinds, range=[[4, 2], [1, 3]]).legend(None),
        )
    )
    return chart


def _x() -> alt.X:
    axis = alt.Axis(tickCount=5, labelOverlap=True, labelFlush=True)
    return alt.X("t:T", title="UTC", scale=alt.Scale(type="utc"), axis=axis)


def _y(line: HistoryLine) -> alt.Y:
    if line.metric == "iops":
        axis = alt.Axis(tickCount=4, format="~s", labelExpr=ZERO_PLAIN)
    else:
        axis = alt.Axis(tickCount=4, format=",~r")
    return alt.Y("v:Q", title=line.unit or line.label, scale=alt.Scale(zero=False), axis=axis)


def _data(points: list[Point]) -> alt.Data:
    data: alt.Data = alt.Data(values=points)  # type: ignore[no-untyped-call]
    return data


def _iso(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
