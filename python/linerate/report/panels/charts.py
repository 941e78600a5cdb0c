"""What each chart looks like, as Vega-Lite made with altair.

Colours are names of the page's palette (`svg.PALETTE`), so that one drawing serves light, dark and paper.
Charts carry no title: the page says above each what it shows. Reads are always one colour and writes another,
in every chart. Every point has a tooltip with its values and their units; a point without a value is a gap in its line.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from linerate.report.figures import significant, size
from linerate.report.panels.series import Point
from linerate.report.panels.svg import PALETTE, PATHS

Spec = dict[str, Any]
WIDTH, HEIGHT = 400, 150
SPREAD_LOG = 20
"""From this ratio of the largest to the smallest value on, an axis is logarithmic."""
_LETTER_PX, _SYMBOL_PX = 6, 26  # of a legend
_WIDEST_STRIP_PX = 20.0
_EXCESS = 0.15
"""So much wider than the renderer expects may a browser's letters be."""
_TITLE_PADDING_PX = 10
"""Between the labels and the title of an axis: a browser's letters are wider than those the renderer knows."""
ZERO_PLAIN = "datum.value === 0 ? '0' : datum.label"
"""d3 writes the zero of an axis of thousands as 0k."""
_PLAIN = ",~r"  # d3's way to write a number without an exponent

_RATES: dict[str, Any] = {"tickCount": 5, "format": "~s", "labelExpr": ZERO_PLAIN}
_NUMBERS: dict[str, Any] = {"tickCount": 5, "format": _PLAIN}

_CONFIG: dict[str, Any] = {
    "font": "sans-serif",
    "aria": False,
    "axis": {
        "domain": False,
        "ticks": False,
        "gridColor": PALETTE["grid"],
        "labelColor": PALETTE["muted"],
        "titleColor": PALETTE["muted"],
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "labelPadding": 5,
    },
    "axisX": {"grid": False, "domain": True, "domainColor": PALETTE["grid"]},
    "axisY": {"titlePadding": _TITLE_PADDING_PX},
    "legend": {"labelColor": PALETTE["muted"], "labelFontSize": 11, "padding": 0, "symbolStrokeWidth": 2},
}
"""Of every chart."""

_OP_COLOURS = {"read": "read", "write": "write", "total": "total", "service": "read", "response": "write"}
_QUANTILE_COLOURS = {"p50": "low", "p95": "middle", "p99": "high", "max": "top"}
_CPU_COLOURS = {"sys+u": "total", "sys": "write", "load": "read"}
_NINES = "['0', '90', '99', '99.9', '99.99', '99.999', '99.9999', '99.99999', '99.999999'][datum.value]"


def rate_chart(points: Sequence[Point], field: str, title: str, warmup_end_s: float) -> Spec:
    """`iops` or `mib_s` over time, one line per operation."""
    layers = _over_time(points, field, title, "op", _OP_COLOURS, title)
    return finished(alt.layer(*([_band(warmup_end_s)] if warmup_end_s else []), *layers))


def latency_chart(points: Sequence[Point]) -> Spec:
    """Quantiles of I/O times over time; logarithmic, because the maximum is far from the median."""
    return finished(alt.layer(*_over_time(points, "ms", "ms", "quantile", _QUANTILE_COLOURS, "ms", log=True)))


def cpu_chart(points: Sequence[Point]) -> Spec:
    """CPU use over time in percent of all CPUs."""
    return finished(alt.layer(*_over_time(points, "percent", "% of all CPUs", "part", _CPU_COLOURS, "%")))


def percentile_chart(points: Sequence[Point]) -> Spec:
    """Service time by percentile on a nines axis; dashed where fewer than 100 I/Os were slower."""
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
    last_of: dict[float, dict[str, float]] = {}
    for point in points:
        last_of.setdefault(point["nines"], {})[point["of"]] = point["ms"]
    said = [
        {"nines": nines, "say": _said(f"p{100 * (1 - 10**-nines):.8g}", values, "ms")}
        for nines, values in last_of.items()
    ]
    return finished(alt.layer(solid, dashed, _hits(said, "nines")))


def bars_chart(points: Sequence[Point]) -> Spec:
    """Share of the I/Os by service time."""
    said = [
        {
            **point,
            "say": f"{point['from']:g} to {point['to']:g} ms\n{point['of']}: "
            f"{significant(point['high'] - point['low'])} % of the I/Os",
        }
        for point in points
    ]
    chart = (
        alt.Chart(_data(said))
        .mark_rect(aria=True)
        .encode(
            description="say:N",
            x=alt.X("from:Q").title("ms").scale(type="log", nice=False).axis(tickCount=6, format=_PLAIN),
            x2="to:Q",
            y=alt.Y("low:Q").title("% of I/Os").scale(zero=True).axis(tickCount=5),
            y2="high:Q",
            color=_colour(points, "of", _OP_COLOURS, symbol="square"),
        )
    )
    return finished(chart)


def response_chart(points: Sequence[Point], threshold_ms: float, *, always: bool = False) -> Spec:
    """Response time against I/O rate, one line per group (`of`) of points, joined in their order.

    Every point has a `label` and words (`say`); those with `knee` have a ring. The threshold is drawn where the lines
    come near it, or `always`, then with its words at the left. Axes are logarithmic where one group would squash the
    others.
    """
    names = list(dict.fromkeys(point["of"] for point in points))
    colours = dict(zip(names, PATHS, strict=False))
    rates, times = [point["iops"] for point in points], [point["ms"] for point in points]
    base = alt.Chart(_data(points)).encode(
        x=alt.X("iops:Q")
        .title("i/o rate, IOPS")
        .scale(_spread_scale(rates))
        .axis(format="~s", labelExpr=ZERO_PLAIN, tickCount=8),
        y=alt.Y("ms:Q")
        .title("response time, ms")
        .scale(_spread_scale(times))
        .axis(format=_PLAIN, tickCount=6),
        color=_colour(points, "of", colours),
        detail="of:N",
    )
    layers = [
        base.mark_line(strokeWidth=1.4).encode(order=alt.Order("order:Q")),
        base.transform_filter("datum.knee").mark_point(filled=False, size=190, strokeWidth=1.6),
        base.transform_filter("datum.label").mark_text(dy=-11, fontSize=10).encode(text="label:N"),
        base.mark_point(filled=True, size=44, opacity=1, aria=True).encode(description="say:N"),
    ]
    if always or (max(times) >= threshold_ms / 2 and min(times) < threshold_ms):
        layers = [*_threshold(threshold_ms, left=always), *layers]
    return finished(alt.layer(*layers), height=HEIGHT + 50)


def size_chart(points: Sequence[Point], field: str, title: str) -> Spec:
    """`iops`, `mib_s` or `cpu` against the size of an I/O, one line per group (`of`); every point has words (`say`)."""
    names = list(dict.fromkeys(point["of"] for point in points))
    sizes = sorted({point["size_bytes"] for point in points})
    labels = json.dumps({str(of): size(of) for of in sizes})
    base = alt.Chart(_data(points)).encode(
        x=alt.X("size_bytes:Q")
        .title("size of an I/O")
        .scale(type="log", base=2, nice=False, padding=14)
        .axis(values=sizes, labelExpr=f"{labels}[datum.value]", labelAngle=-45),
        y=alt.Y(f"{field}:Q")
        .title(title)
        .scale(_spread_scale([point[field] for point in points]))
        .axis(**_RATES if field == "iops" else _NUMBERS),
        color=_colour(points, "of", dict(zip(names, PATHS, strict=False))),
        detail="of:N",
    )
    lines = base.mark_line(strokeWidth=1.4).encode(order=alt.Order("size_bytes:Q"))
    spots = base.mark_point(filled=True, size=44, opacity=1, aria=True).encode(description="say:N")
    return finished(alt.layer(lines, spots))


def _spread_scale(values: Sequence[float]) -> alt.Scale:
    """Linear from zero, or logarithmic where the largest value is far above the smallest."""
    if min(values) > 0 and max(values) > SPREAD_LOG * min(values):
        return alt.Scale(type="log", nice=False, padding=14)
    return alt.Scale(zero=True)


def _threshold(ms: float, *, left: bool) -> list[alt.Chart]:
    data = alt.Chart(_data([{"ms": ms, "words": f"{ms:g} ms"}]))
    rule = data.mark_rule(strokeDash=[5, 3], stroke=PALETTE["void"]).encode(y="ms:Q")
    words = data.mark_text(
        align="left" if left else "right",
        dy=12 if left else -6,  # above the line at the left is the legend
        fontSize=10,
        fill=PALETTE["void"],
    ).encode(y="ms:Q", x=alt.value(0 if left else WIDTH), text="words:N")
    return [rule, words]


def paths_chart(
    points: Sequence[Point], field: str, title: str, marks: Sequence[Point], warmup_end_s: float
) -> Spec:
    """`mib_s`, `queue`, `ms` or `again` over time, one line per path; `marks` are faults and their healing."""
    names = sorted({point["path"] for point in points})
    colours = dict(zip(names, PATHS, strict=False))
    layers = _over_time(points, field, title, "path", colours, title)
    if warmup_end_s:
        layers.insert(0, _band(warmup_end_s))
    if marks:
        layers.insert(-1, _marks(marks))
    return finished(alt.layer(*layers))


def sets_chart(points: Sequence[Point], field: str, title: str, warmup_end_s: float) -> Spec:
    """`iops`, `queue`, `ms`, `parity` or `done` over time, one line per RAID set."""
    names = sorted({point["set"] for point in points})
    layers = _over_time(points, field, title, "set", dict(zip(names, PATHS, strict=False)), title)
    return finished(alt.layer(*([_band(warmup_end_s)] if warmup_end_s else []), *layers))


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


def _over_time(
    points: Sequence[Point],
    field: str,
    title: str,
    by: str,
    colours: dict[str, str],
    unit: str,
    *,
    log: bool = False,
) -> list[alt.Chart]:
    """One line per value of `by`, and the tooltips of all lines at each instant `t`."""
    scale = alt.Scale(type="log", nice=False) if log else alt.Scale(zero=True)
    lines = (
        alt.Chart(_data([{key: point[key] for key in ("t", by, field)} for point in points]))
        .mark_line(strokeWidth=1.4)
        .encode(
            x=alt.X("t:Q").title("s").scale(nice=False).axis(tickCount=8, format=_PLAIN),
            y=alt.Y(f"{field}:Q").title(title).scale(scale).axis(**_RATES if field == "iops" else _NUMBERS),
            color=_colour(points, by, colours),
        )
    )
    values: dict[float, dict[str, float | None]] = {}
    for point in points:
        values.setdefault(point["t"], {})[point[by]] = point[field]
    return [lines, _hits([{"t": t, "say": _said(f"{t:g} s", of, unit)} for t, of in values.items()], "t")]


def _said(where: str, values: Mapping[str, float | None], unit: str) -> str:
    """A tooltip: where on the axis, then each line's value there."""
    lines = [
        f"{name}: {'no I/O' if value is None else f'{significant(value)} {unit}'}"
        for name, value in values.items()
    ]
    return "\n".join([where, *lines])


def _hits(said: Sequence[Point], field: str) -> alt.Chart:
    """An invisible upright strip around each place on the x axis, which has its words (`say`) as tooltip."""
    # The renderer makes room for half of a strip's width on all four sides, and so the chart smaller.
    width_px = min(max(round(WIDTH / max(len(said), 1), 1), 2.0), _WIDEST_STRIP_PX)
    strips: alt.Chart = (
        alt.Chart(_data(said))
        .mark_rule(strokeWidth=width_px, aria=True)
        .encode(x=alt.X(f"{field}:Q"), description="say:N")
    )
    return strips


def _colour(
    points: Sequence[Point], field: str, colours: dict[str, str], symbol: str = "stroke"
) -> alt.Color:
    present = {point[field] for point in points}
    names = [name for name in colours if name in present]
    legend = alt.Legend(title=None, orient="top", direction="horizontal", symbolType=symbol, offset=4)
    legend.columnPadding = 10 + math.ceil(_EXCESS * _LETTER_PX * max(map(len, names), default=0))
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
    # The tests validate each kind of chart; here it would double the time.
    spec: Spec = chart.to_dict(validate=False)
    # Altair would copy the whole chart for each of these.
    spec |= {"width": width, "height": height, "background": "transparent"}
    spec["config"] = {**_CONFIG, "view": {**spec["config"]["view"], "stroke": None}}
    return spec
