"""The panels of paths and faults: gathered for one step, written alike in the reports of runs and of studies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from linerate.analysis.paths import FaultOutcome, PathLayout, explain, fault_outcomes, layout_of
from linerate.report import figures
from linerate.report.panels import charts, series
from linerate.report.panels.svg import PATHS
from linerate.results import RunDirectory

_POINTS_MAX = 160
_CHARTS = (
    ("mib_s", "MB/sec by path", "MB/s"),
    ("queue", "I/Os in flight by path", "mean queue"),
    ("ms", "resp by path", "ms"),
    ("again", "TCP retransmits by path", "segments"),
)


class Failback(Protocol):
    """Knows what the return of paths cost."""

    @property
    def failback_ios(self) -> float | None:
        """I/Os not done."""

    @property
    def failback_s(self) -> float | None:
        """For how long."""


@dataclass(frozen=True, slots=True)
class PathsPanel:
    """The paths of one step; `charts` are titles, notes and specs, still to be drawn."""

    layout: PathLayout | None
    said: str
    faults: tuple[FaultOutcome, ...]
    charts: tuple[tuple[str, charts.Spec, str], ...] = ()


def paths_panel(run: RunDirectory, step: str, points_max: int, *, brief: bool) -> PathsPanel | None:
    """The panel of a step; None when it has neither paths nor faults."""
    layout, faults = layout_of(run, step), fault_outcomes(run, step)
    if layout is None and not faults:
        return None
    return PathsPanel(
        layout=layout,
        said=explain(layout) if layout else "",
        faults=faults,
        charts=_charts(run, step, faults, min(points_max, _POINTS_MAX), brief=brief),
    )


def filters() -> dict[str, Callable[..., Any]]:
    """What the template's macros need beyond the figures' own filters."""
    return {
        "rate": figures.rate,
        "mib_s": figures.mib_s,
        "ms": figures.ms,
        "percent": figures.percent,
        "count": figures.count,
        "seconds": seconds,
        "failback": failback,
    }


def seconds(value: float | None) -> str:
    """An instant or a length of time, to the millisecond where that is much."""
    if value is None:
        return figures.NOTHING
    return f"{value:.3f}" if value < 10 else f"{value:.1f}"


def failback(fault: Failback) -> str:
    """What a path's return cost, in words."""
    if fault.failback_ios is None or fault.failback_s is None:
        return figures.NOTHING
    if not fault.failback_s:
        return "none seen"
    return f"{figures.count(fault.failback_ios)} I/Os in {fault.failback_s:.3g} s"


def _charts(
    run: RunDirectory, step: str, faults: tuple[FaultOutcome, ...], points_max: int, *, brief: bool
) -> tuple[tuple[str, charts.Spec, str], ...]:
    points = series.paths_over_time(run, step, points_max, len(PATHS))
    if not any(point["mib_s"] for point in points):
        return ()
    marks = [
        {"t": round(at_s, 3), "kind": kind}
        for fault in faults
        for kind, at_s in (("fault", fault.at_s), ("healed", fault.healed_s))
        if at_s is not None
    ]
    note = "dashed: fault, dotted: healed" if marks else ""
    warmup_end_s = series.warmup_end_s(run, step)
    return tuple(
        (title, charts.paths_chart(points, field, unit, marks, warmup_end_s), note)
        for field, title, unit in (_CHARTS[:1] if brief else _CHARTS)
        if any(point[field] for point in points)
    )
