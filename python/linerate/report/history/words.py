"""How a history is written: days, values, changes of level and of the environment."""

from __future__ import annotations

from datetime import UTC, datetime

from linerate.history import EnvironmentChange, History, HistoryLine, LevelChange, points_needed
from linerate.report import figures


def day(time: datetime) -> str:
    """The day and minute in UTC."""
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M}"


def date(time: datetime) -> str:
    """The day in UTC."""
    return f"{time.astimezone(UTC):%Y-%m-%d}"


def percent(change: float | None) -> str:
    """A relative change with its sign."""
    return figures.NOTHING if change is None else f"{change:+.1f} %"


def metric(line: HistoryLine) -> str:
    """The metric with its unit, where the label does not have it."""
    return line.label if line.label == "MB/sec" else f"{line.label} {line.unit}".strip()


def direction(line: HistoryLine, change: LevelChange) -> str:
    """Whether a change of level is good; empty for a metric that is neither."""
    if not line.better:
        return ""
    return "better" if (change.after > change.before) == (line.better > 0) else "worse"


def level_change(line: HistoryLine, change: LevelChange) -> str:
    """One change of level: how much, from when on, how sure."""
    said = f"{percent(change.change_percent)} ({figures.significant(change.before)} -> "
    said += f"{figures.significant(change.after)} {line.unit}".rstrip() + ")"
    point = line.points[change.index]
    return f"{said}, from {day(point.at)} on ({point.path}); confidence {_confidence(change)} %"


def environment_change(change: EnvironmentChange) -> str:
    """What changed, from what to what."""
    return f"{change.label}: {change.before} -> {change.after}"


def certainty(history: History) -> str:
    """How many lines are too short to show a change, and how many show one by chance."""
    needed = points_needed(history.confidence_percent / 100)
    short = sum(len(line.points) < needed for line in history.lines)
    alpha = 1 - history.confidence_percent / 100
    said = f"without any change, about 1 line in {1 / alpha:.0f} shows one"
    if short:
        said += (
            f"; {short} of {len(history.lines)} lines have fewer than {needed} points, too few to show one"
        )
    return said


def _confidence(change: LevelChange) -> str:
    """Enough nines to tell, and never 100."""
    return f"{change.confidence_percent:.2f}".rstrip("0").rstrip(".")
