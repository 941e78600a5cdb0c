"""A history as plain lines and as one JSON-ready object."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from linerate.errors import printable
from linerate.history import History
from linerate.report import figures
from linerate.report.history import words
from linerate.report.tables import aligned

COLUMNS = ("workload", "metric", "points", "first", "last", "change")
FOOTNOTE = "times of day in UTC, MB = 2^20 bytes; a point is one run, or the median of one study"
_SETTINGS_SHOWN = 20
_NEAR_SHOWN = 3


def history_lines(history: History) -> list[str]:
    """One line per workload and metric, then changes of level, of the environment, and what was left out."""
    rows: list[tuple[str, ...]] = [COLUMNS]
    for line in history.lines:
        rows.append(
            (
                line.workload,
                line.metric,
                str(len(line.points)),
                figures.significant(line.points[0].value),
                figures.significant(line.points[-1].value),
                words.percent(line.change_percent),
            )
        )
    lines = [*aligned([[printable(cell) for cell in row] for row in rows]), FOOTNOTE]
    lines += ["", f"changes of level at {history.confidence_percent:g} % confidence:"]
    lines += _level_changes(history) or ["  none"]
    lines.append(f"  note: {words.certainty(history)}")
    if history.environment:
        lines += ["", "changes of the environment:"]
        for found in history.environment[:_SETTINGS_SHOWN]:
            said = words.environment_change(found)
            lines.append(printable(f"  {words.day(found.at)}  {found.kind:<8}  {said}  ({found.path})"))
        if more := len(history.environment) - _SETTINGS_SHOWN:
            lines += [f"  and {more} more: see --json or --report"] if more > 0 else []
    if history.left_out:
        lines += ["", "left out:"]
        lines += [printable(f"  {path}: {reason}") for path, reason in history.left_out]
    return lines


def history_object(history: History) -> dict[str, Any]:
    """Everything as JSON-ready data; times are ISO 8601."""
    found = asdict(history)
    for line, source in zip(found["lines"], history.lines, strict=True):
        line["change_percent"] = source.change_percent
        for point in line["points"]:
            point["at"] = point["at"].isoformat()
        for change, level in zip(line["level_changes"], source.level_changes, strict=True):
            change["change_percent"] = level.change_percent
            change["confidence_percent"] = level.confidence_percent
            change["at"] = source.points[level.index].at.isoformat()
            change["path"] = source.points[level.index].path
    for change in found["environment"]:
        change["at"] = change["at"].isoformat()
    found["left_out"] = [{"path": path, "reason": reason} for path, reason in history.left_out]
    return found


def _level_changes(history: History) -> list[str]:
    lines = []
    for line in history.lines:
        for change in line.level_changes:
            word = words.direction(line, change) or "changed"
            said = words.level_change(line, change)
            lines.append(printable(f"  {word:<7}  {line.workload}  {line.metric}: {said}"))
            near = history.changes_near(line, change)
            lines += [
                printable(
                    f"           near it: {words.environment_change(found)}, from {words.day(found.at)} on"
                )
                for found in near[:_NEAR_SHOWN]
            ]
            if len(near) > _NEAR_SHOWN:
                lines.append(f"           and {len(near) - _NEAR_SHOWN} more changes of the environment")
    return lines
