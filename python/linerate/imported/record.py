"""What a reader makes of a file: the steps of another tool, before they are written as a run directory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from linerate.results import GivenFigures, GivenStep

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class ToolStep:
    """One step of the tool's run. `failed` is the reason why it did not end well; empty if it did.

    Times are None where the file does not tell them.
    """

    name: str
    given: GivenStep
    started_at: datetime | None = None
    ended_at: datetime | None = None
    failed: str = ""


@dataclass(frozen=True, slots=True)
class ToolRun:
    """The content of one file. `host` is the name of the load host, empty where it is not told.

    `notes` say what the file has and what was left out.
    """

    tool: str
    version: str
    steps: Sequence[ToolStep]
    host: str = ""
    notes: tuple[str, ...] = ()


def figures(
    ios: int,
    size: int,
    seconds: float,
    *,
    mean_ms: float | None = None,
    stddev_ms: float | None = None,
    max_ms: float | None = None,
    errors: int | None = None,
    percentiles_ms: dict[str, float] | None = None,
) -> GivenFigures:
    """Figures of counted I/Os: `size` bytes in `seconds`. The rates follow from the counts."""
    return GivenFigures(
        ios=ios,
        bytes=size,
        iops=ios / seconds if seconds else 0.0,
        mib_s=size / seconds / MIB if seconds else 0.0,
        mean_ms=mean_ms,
        stddev_ms=stddev_ms,
        max_ms=max_ms,
        errors=errors,
        percentiles_ms=percentiles_ms or {},
    )


def later(at: datetime | None, seconds: float) -> datetime | None:
    """A time after another. None without it, and beyond the calendar."""
    try:
        return None if at is None else at + timedelta(seconds=seconds)
    except OverflowError:
        return None


def weighted_mean(parts: Sequence[tuple[int, float | None]]) -> float | None:
    """The mean over (count, mean) of parts. None if a part with a count has no mean, or if nothing was counted."""
    counted = [(count, mean) for count, mean in parts if count]
    total = sum(count for count, _ in counted)
    means = [count * mean for count, mean in counted if mean is not None]
    return sum(means) / total if total and len(means) == len(counted) else None


def largest(parts: Sequence[float | None]) -> float | None:
    """The largest value. None without parts, and if one of them is not known."""
    known = [part for part in parts if part is not None]
    return max(known) if known and len(known) == len(parts) else None
