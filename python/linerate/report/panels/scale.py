"""What searches for the largest load have to show: the response curve, the loads, headroom, and the laws.

A page shows one search, or those of several cases side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from markupsafe import Markup

from linerate.report import figures
from linerate.report.panels import charts
from linerate.report.panels.series import Point
from linerate.report.panels.svg import draw
from linerate.scale import Axis, Capacity, Procedure, Threshold, headroom
from linerate.scale.curve import by_load
from linerate.scale.laws import laws_of
from linerate.scale.laws.words import laws_lines
from linerate.scale.reached import load_text
from linerate.scale.words import answer, doubt_lines, kept_text, span, way_down_text

_POINTS_MIN = 2


@dataclass(frozen=True, slots=True)
class SearchShown:
    """A search to be shown."""

    title: str
    axis: Axis
    threshold: Threshold
    procedure: Procedure


@dataclass(frozen=True, slots=True)
class LoadRow:
    """A load of the way up, as text; times and rates are means of its runs."""

    load: str
    iops: str
    time_ms: str
    p99_ms: str
    runs: int
    state: str
    """kept, missed, or too close to tell."""


@dataclass(frozen=True, slots=True)
class HeadroomRow:
    """A share of the rate at the largest load, as text, with 95 % intervals."""

    share: str
    iops: str
    mean_ms: str
    p99_ms: str
    runs: int
    state: str


@dataclass(frozen=True, slots=True)
class SearchPart:
    """One search, ready to be shown."""

    title: str
    answer: str
    loads: tuple[LoadRow, ...]
    kept: str
    """The largest load that surely keeps the threshold, with its unit; empty if there is none."""
    headroom: tuple[HeadroomRow, ...]
    way_down: str
    laws: tuple[str, ...]
    doubts: tuple[str, ...]
    """What makes single runs less certain."""


@dataclass(frozen=True, slots=True)
class ScalePanel:
    """Searches along one axis with one threshold."""

    axis: Axis
    threshold: Threshold
    chart: Markup | None
    """Response time against rate, a line per search; None with fewer than two loads."""
    parts: tuple[SearchPart, ...]


def scale_panel(shown: Sequence[SearchShown]) -> ScalePanel:
    """The panel of one or several searches with the same axis and threshold."""
    first = shown[0]
    points = [point for one in shown for point in _points(one)]
    enough = len(points) >= _POINTS_MIN
    chart = (
        Markup(draw(charts.response_chart(points, first.threshold.limit_ms, always=True))) if enough else None
    )
    return ScalePanel(first.axis, first.threshold, chart, tuple(map(_part, shown)))


def _part(shown: SearchShown) -> SearchPart:
    procedure = shown.procedure
    found, runs = procedure.capacity(), procedure.runs
    return SearchPart(
        title=shown.title,
        answer=answer(shown.axis, shown.threshold, procedure.limits, found),
        loads=tuple(_load_rows(shown, found)),
        kept="" if found.kept is None else load_text(shown.axis, found.kept),
        headroom=tuple(
            HeadroomRow(
                f"{row.share_percent} %",
                figures.rate(row.iops),
                span(row.mean_ms),
                span(row.p99_ms),
                row.runs,
                kept_text(row),
            )
            for row in headroom(runs, procedure.limits)
        ),
        way_down=way_down_text(shown.axis, shown.threshold, runs),
        laws=tuple(laws_lines(shown.axis, laws_of(shown.axis, runs))),
        doubts=tuple(doubt_lines(runs)),
    )


def _load_rows(shown: SearchShown, found: Capacity) -> Iterator[LoadRow]:
    for load, runs in by_load(shown.procedure.runs).items():
        tails = [run.p99_ms for run in runs if run.p99_ms is not None]
        yield LoadRow(
            f"{load:,}",
            figures.rate(fmean(run.iops for run in runs)),
            figures.ms(fmean(run.response_ms for run in runs)),
            figures.ms(fmean(tails)) if tails else figures.NOTHING,
            len(runs),
            _state(load, found),
        )


def _state(load: int, found: Capacity) -> str:
    if found.kept is not None and load <= found.kept:
        return "kept"
    return "missed" if found.missed is not None and load >= found.missed else "too close to tell"


def _points(shown: SearchShown) -> Iterator[Point]:
    """One per load: its mean rate and time; the largest load that keeps the threshold has the ring of a knee."""
    kept = shown.procedure.capacity().kept
    loads = by_load(shown.procedure.runs)
    labelled = _labelled(list(loads), kept)
    for number, (load, runs) in enumerate(loads.items()):
        iops, time_ms = fmean(run.iops for run in runs), fmean(run.response_ms for run in runs)
        yield {
            "of": shown.title,
            "label": f"{load:,}" if load in labelled else "",
            "order": number,
            "iops": round(iops, 1),
            "ms": round(time_ms, 4),
            "knee": load == kept,
            "say": f"{shown.title}, {load_text(shown.axis, load)}\n{figures.rate(iops)} I/Os per s, "
            f"{shown.threshold.metric} {figures.ms(time_ms)} ms",
        }


def _labelled(loads: Sequence[int], kept: int | None) -> set[int]:
    """The largest load, and others that are at least half as large again: labels near each other hide each other."""
    chosen = {kept} if kept is not None else set()
    for load in (*loads[-1:], *loads):
        if all(load >= 1.5 * other or other >= 1.5 * load for other in chosen):
            chosen.add(load)
    return chosen
