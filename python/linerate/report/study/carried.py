"""What the paths of each case carried, as one picture per workload: a stacked bar per case, a colour per path."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from linerate.analysis.paths import PathFigures
from linerate.report import figures
from linerate.report.panels.svg import PATHS
from linerate.report.study.bars import nice_step
from linerate.report.study.model import StudyPage
from linerate.report.study.paths import LayoutPart

_INSET = 4.0
"""Percent of the width that each end of the axis keeps for its label."""
_TICKS = 4
_REST = "rest"


@dataclass(frozen=True, slots=True)
class CarriedRow:
    """One case: its throughput in MB/s, and its bar."""

    title: str
    total: str
    bar: Markup


@dataclass(frozen=True, slots=True)
class CarriedChart:
    """One workload: an axis in MB/s from zero, a bar per case."""

    title: str
    axis: Markup
    rows: tuple[CarriedRow, ...]


@dataclass(frozen=True, slots=True)
class Carried:
    """The charts of all workloads, with the colour (a class of the style sheet) of each path."""

    charts: tuple[CarriedChart, ...]
    legend: tuple[tuple[str, str], ...]


def carried(page: StudyPage) -> Carried | None:
    """The picture; None for a study without paths."""
    if not any(part.layout.mib_s > 0 for part in page.layouts):
        return None
    colours = _colours(page.layouts)
    legend = [(name, colour) for name, colour in colours.items() if colour != _REST]
    others = sum(colour == _REST for colour in colours.values())
    if others:
        legend.append((f"{others} more paths", _REST))
    return Carried(tuple(_charts(page, colours)), tuple(legend))


def _colours(layouts: Sequence[LayoutPart]) -> dict[str, str]:
    """Path -> its class. Where there are more paths than colours, those that carried least share one."""
    moved: dict[str, float] = {}
    for part in layouts:
        for path in part.layout.paths:
            moved[path.name] = moved.get(path.name, 0.0) + path.mib_s
    kept = sorted(moved, key=lambda name: (-moved[name], name))
    kept = kept if len(kept) <= len(PATHS) else kept[: len(PATHS) - 1]
    own = dict(zip(sorted(kept), PATHS, strict=False))
    return {name: own.get(name, _REST) for name in sorted(moved)}


def _charts(page: StudyPage, colours: Mapping[str, str]) -> Iterator[CarriedChart]:
    for workload in page.workloads:
        parts = [part for part in page.layouts if part.workload == workload.name]
        top = max((part.layout.mib_s for part in parts), default=0.0)
        if top <= 0:
            continue
        step = nice_step(top / _TICKS)
        high = step * math.ceil(top / step - 1e-9)
        rows = tuple(
            CarriedRow(
                page.title_of(part.case),
                figures.mib_s(part.layout.mib_s),
                _bar(part.layout.paths, high, step, colours),
            )
            for part in parts
        )
        yield CarriedChart(workload.title, _axis(high, step), rows)


def _place(value: float, high: float) -> float:
    """The position of a rate, in percent of the drawing's width."""
    return _INSET + (100 - 2 * _INSET) * value / high


def _ticks(high: float, step: float) -> list[float]:
    return [round(number * step, 6) for number in range(round(high / step) + 1)]


def _axis(high: float, step: float) -> Markup:
    labels = [
        f'<text x="{_place(tick, high):.2f}%" y="13"{" class=odd" if number % 2 else ""}>{tick:g}</text>'
        for number, tick in enumerate(_ticks(high, step))
    ]
    return Markup(f'<svg class="axis" height="18" aria-hidden="true">{"".join(labels)}</svg>')


def _bar(paths: Sequence[PathFigures], high: float, step: float, colours: Mapping[str, str]) -> Markup:
    rules = [
        f'<line class="tick" x1="{x:.2f}%" x2="{x:.2f}%" y2="100%"/>'
        for x in (_place(tick, high) for tick in _ticks(high, step))
    ]
    pieces, start = [], 0.0
    for path in sorted(paths, key=lambda path: path.name):
        if path.mib_s <= 0:
            continue
        left, right = _place(start, high), _place(start + path.mib_s, high)
        pieces.append(
            f'<rect class="{colours[path.name]}" x="{left:.2f}%" y="-6" width="{right - left:.2f}%" height="12">'
            f"<title>{_tooltip(path)}</title></rect>"
        )
        start += path.mib_s
    return Markup(f'<svg class="row">{"".join(rules)}<svg y="50%">{"".join(pieces)}</svg></svg>')


def _tooltip(path: PathFigures) -> str:
    state = f", {path.state}" if path.state else ""
    return (
        f"{escape(path.name)}: {figures.mib_s(path.mib_s)} MB/s, {path.share_percent:.0f} % of the bytes, "
        f"{figures.ms(path.service_ms)} ms per I/O{escape(state)}"
    )
