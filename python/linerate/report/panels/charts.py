"""What each chart looks like, as Vega-Lite made with altair.

Colours are names of the page's palette (`svg.PALETTE`), so that one drawing serves light, dark and paper.
Charts carry no title: the page says above each what it shows. Reads are always one colour and writes another,
in every chart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import altair as alt

from linerate.report.panels.series import Point
from linerate.report.panels.svg import PALETTE, PATHS

Spec = dict[str, Any]
WIDTH, HEIGHT = 400, 150
_LETTER_PX, _SYMBOL_PX = 6, 26  # of a legend
_PLAIN = ",~r"  # d3's way to write a number without an exponent

_OP_COLOURS = {"read": "read", "write": "write", "total": "total", "service": "read", "response": "write"}
_QUANTILE_COLOURS = {"p50": "low", "p95": "middle", "p99": "high", "max": "top"}
_CPU_COLOURS = {"sys+u": "total", "sys": "write", "load": "read"}
_NINES = "['0', '90', '99', '99.9', '99.99', '99.999', '99.9999', '99.99999', '99.999999'][datum.value]"


def rate_chart(points: Sequence[Point], field: str, title: str, warmup_end_s: float) -> Spec:
    """`iops` or `mib_s` over time, one line per operation."""
    lines = _lines(points, field, title, "op", _OP_COLOURS, zero=True)
    return finished(lines if not warmup_end_s else alt.layer(_band(warmup_end_s), lines))


def latency_chart(points: Sequence[Point]) -> Spec:
    """Quantiles of service time over time; logarithmic, because the maximum is far from the median."""
    return finished(_lines(points, "ms", "ms", "quantile", _QUANTILE_COLOURS, log=True))


def cpu_chart(points: Sequence[Point]) -> Spec:
    """CPU use over time in percent of all CPUs."""
    return finished(_lines(points, "percent", "% of all CPUs", "part", _CPU_COLOURS, zero=True))


def percentile_chart(points: Sequence[Point]) -> Spec:
    """Service time by percentile on a nines axis; dashed where fewer than 100 I/Os lie beyond."""
    last = int(max(point["nines"] for point in points)) if points else 0
    base = alt.Chart(_data(points)).encode(
        x=alt.X("nines:Q").title("percentile").axis(values=list(range(last + 1)), labelExpr=_NINES),
        y=alt.Y("ms:Q").title("ms").scale(type="log", nice=False).axis(tickCount=5, format=_PLAIN),
        color=_colour(points, "of", _OP_COLOURS),
    )
    solid = base.transform_filter("datum.reliable").mark_line(strokeWidth=1.6, interpolate="step-after")
    dashed = base.transform_filter("!datum.reliable").mark_line(
        strokeWidth=1.2, strokeDash=[2, 3], opacity=0.7, interpolate="step-after"
    )
    return finished(alt.layer(solid, dashed))


def bars_chart(points: Sequence[Point]) -> Spec:
    """Share of the I/Os by service time."""
    chart = (
        alt.Chart(_data(points))
        .mark_rect()
        .encode(
            x=alt.X("from:Q").title("ms").scale(type="log", nice=False).axis(tickCount=6, format=_PLAIN),
            x2="to:Q",
            y=alt.Y("low:Q").title("% of I/Os").scale(zero=True).axis(tickCount=5),
            y2="high:Q",
            color=_colour(points, "of", _OP_COLOURS, symbol="square"),
        )
    )
    return finished(chart)


def response_chart(points: Sequence[Point]) -> Spec:
    """Response time against I/O rate: one point per step of a curve or sweep, joined in the run's order."""
    base = alt.Chart(_data(points)).encode(
        x=alt.X("iops:Q").title("i/o rate").axis(format="~s"),
        y=alt.Y("ms:Q").title("resp, ms"),
        order=alt.Order("order:Q"),
        detail="name:N",
    )
    line = base.mark_line(color=PALETTE["read"], strokeWidth=1.4)
    dots = base.mark_point(color=PALETTE["read"], filled=True, size=34, opacity=1)
    return finished(alt.layer(line, dots), width=2 * WIDTH + 60, height=HEIGHT + 50)


def paths_chart(
    points: Sequence[Point], field: str, title: str, marks: Sequence[Point], warmup_end_s: float
) -> Spec:
    """`mib_s`, `queue`, `ms` or `again` over time, one line per path; `marks` are faults and their healing."""
    names = sorted({point["path"] for point in points})
    colours = dict(zip(names, PATHS, strict=False))
    shown = [point for point in points if point[field] is not None]
    layers = [_lines(shown, field, title, "path", colours, zero=True)]
    if warmup_end_s:
        layers.insert(0, _band(warmup_end_s))
    if marks:
        layers.append(_marks(marks))
    return finished(alt.layer(*layers) if len(layers) > 1 else layers[0])


def sets_chart(points: Sequence[Point], field: str, title: str, warmup_end_s: float) -> Spec:
    """`iops`, `queue`, `ms`, `parity` or `done` over time, one line per RAID set."""
    names = sorted({point["set"] for point in points})
    shown = [point for point in points if point[field] is not None]
    lines = _lines(shown, field, title, "set", dict(zip(names, PATHS, strict=False)), zero=True)
    return finished(alt.layer(_band(warmup_end_s), lines) if warmup_end_s else lines)


def _marks(marks: Sequence[Point]) -> alt.Chart:
    """An upright line at each `t`: dashed where something broke, dotted where it healed."""
    kinds = ["fault", "healed"]
    rules: alt.Chart = (
        alt.Chart(_data(marks))
        .mark_rule(strokeWidth=1.3)
        .encode(
            x=alt.X("t:Q"),
            stroke=alt.Stroke("kind:N")
            .scale(domain=kinds, range=[PALETTE["void"], PALETTE["valid"]])
            .legend(None),
            strokeDash=alt.StrokeDash("kind:N").scale(domain=kinds, range=[[4, 2], [1, 2]]).legend(None),
        )
    )
    return rules


def _lines(
    points: Sequence[Point],
    field: str,
    title: str,
    by: str,
    colours: dict[str, str],
    *,
    log: bool = False,
    zero: bool = False,
) -> alt.Chart:
    scale = alt.Scale(type="log", nice=False) if log else alt.Scale(zero=zero)
    chart: alt.Chart = (
        alt.Chart(_data([{key: point[key] for key in ("t", by, field)} for point in points]))
        .mark_line(strokeWidth=1.4)
        .encode(
            x=alt.X("t:Q").title("s").scale(nice=False).axis(tickCount=8, format=_PLAIN),
            y=alt.Y(f"{field}:Q")
            .title(title)
            .scale(scale)
            .axis(tickCount=5, format="~s" if field == "iops" else _PLAIN),
            color=_colour(points, by, colours),
        )
    )
    return chart


def _colour(
    points: Sequence[Point], field: str, colours: dict[str, str], symbol: str = "stroke"
) -> alt.Color:
    present = {point[field] for point in points}
    names = [name for name in colours if name in present]
    legend = alt.Legend(title=None, orient="top", direction="horizontal", symbolType=symbol, offset=4)
    if (width_px := sum(_LETTER_PX * len(name) + _SYMBOL_PX for name in names)) > WIDTH:
        legend.columns = math.ceil(len(names) / math.ceil(width_px / WIDTH))
    return (
        alt.Color(f"{field}:N")
        .scale(domain=names, range=[PALETTE[colours[name]] for name in names])
        .legend(legend if len(names) > 1 else None)
    )


def _band(end_s: float) -> alt.Chart:
    """Greys the warm-up, which no figure includes."""
    band: alt.Chart = (
        alt.Chart(_data([{"from": 0, "to": end_s}]))
        .mark_rect(color=PALETTE["band"], opacity=1)
        .encode(x=alt.X("from:Q"), x2="to:Q")
    )
    return band


def _data(points: Sequence[Point]) -> Any:
    return alt.Data(values=list(points))  # type: ignore[no-untyped-call]


def finished(
    chart: alt.Chart | alt.LayerChart | alt.FacetChart, width: int = WIDTH, height: int = HEIGHT
) -> Spec:
    """A chart as data: the page's quiet axes and legend, no title, no background."""
    axis = {
        "domain": False,
        "ticks": False,
        "gridColor": PALETTE["grid"],
        "labelColor": PALETTE["muted"],
        "titleColor": PALETTE["muted"],
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "labelPadding": 5,
    }
    legend = {"labelColor": PALETTE["muted"], "labelFontSize": 11, "padding": 0, "symbolStrokeWidth": 2}
    spec: Spec = (
        chart.properties(width=width, height=height, background="transparent")
        .configure(font="sans-serif", aria=False)
        .configure_view(stroke=None)
        .configure_axis(**axis)
        .configure_axisX(grid=False, domain=True, domainColor=PALETTE["grid"])
        .configure_legend(**legend)
        .to_dict(validate=False)  # the tests validate each kind of chart; here it would double the time
    )
    return spec
