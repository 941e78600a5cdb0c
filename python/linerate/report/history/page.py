"""The page of a history: one HTML file that loads nothing from elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from linerate.history import EnvironmentChange, History, HistoryLine, LevelChange
from linerate.report import figures
from linerate.report.history import words
from linerate.report.history.chart import POINTS_MAX, history_chart
from linerate.report.page.build import Budget, Figure
from linerate.report.panels.template import style, template

_PACKAGE = "linerate.report.history"
_FILTERS = {
    "day": words.day,
    "date": words.date,
    "relative": words.percent,
    "significant": figures.significant,
    "metric": words.metric,
    "together": words.environment_change,
}
_CHART_BYTES = 1_200_000
_ROWS_MAX = 400


@dataclass(frozen=True, slots=True)
class HistoryPart:
    """One workload as the template shows it; a figure is None when the page is full."""

    workload: str
    rows: list[tuple[HistoryLine, Figure | None]]


def render_history(history: History) -> str:
    """The page as text."""
    parts: dict[str, HistoryPart] = {}
    budget = Budget(_CHART_BYTES)
    for line in history.lines:
        part = parts.setdefault(line.identity, HistoryPart(line.workload, []))
        part.rows.append((line, _figure(history, line, budget)))
    return template(_PACKAGE, "history.html.j2", *_FILTERS.items()).render(
        history=history,
        parts=list(parts.values()),
        levels=_levels(history),
        level_change=words.level_change,
        direction=words.direction,
        certainty=words.certainty(history),
        rows_max=_ROWS_MAX,
        points=len({point.path for line in history.lines for point in line.points}),
        style=Markup(style()),
    )


def _figure(history: History, line: HistoryLine, budget: Budget) -> Figure | None:
    seen = tuple(found for found in history.environment if line.workload in found.workloads)
    note = f"{words.percent(line.change_percent)} from first to last"
    if len(line.points) > POINTS_MAX:
        note += f"; the latest {POINTS_MAX} points"
    if len(line.points) < 2:
        return None
    return budget.figure(words.metric(line), history_chart(line, seen), note)


def _levels(history: History) -> list[tuple[HistoryLine, LevelChange, tuple[EnvironmentChange, ...]]]:
    return [
        (line, change, history.changes_near(line, change))
        for line in history.lines
        for change in line.level_changes
    ]
