"""The columns of the interval table, in vdbench's words and order; the live table and the plain lines share them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from linerate.cli.view.events import (
    Figures,
    Happened,
    LatencyRecord,
    PathFigures,
    RunStarted,
    StepStarted,
    VolumesFound,
)
from linerate.plural import plural
from linerate.quantity import duration_text
from linerate.volumes import columns, on_host, size_text

BLANK = "-"


@dataclass(frozen=True, slots=True)
class Column:
    """A figure: two header words, width, and how to write it."""

    top: str
    bottom: str
    width: int
    cell: Callable[[Figures], str]
    narrow: bool = True
    """Shown even on a terminal of 80 columns."""
    paced: bool = False
    """Shown only for a load that has a rate to keep."""
    split: bool = False
    """Of reads or writes alone: on a narrow terminal it gives way to the columns of a load that has a rate to keep."""


def _ms(value: float | None) -> str:
    if value is None:
        return BLANK
    return f"{value:.3f}" if value < 1000 else f"{value:.0f}"


def _percent(value: float | None) -> str:
    return BLANK if value is None else f"{value:.1f}"


def _mean(part: LatencyRecord | None) -> str:
    return BLANK if part is None or part.ios == 0 else _ms(part.mean_ms)


def _bytes_per_io(figures: Figures) -> str:
    return str(figures.total.bytes // figures.total.ios) if figures.total.ios else "0"


def _read_percent(figures: Figures) -> str:
    reads = figures.read.ios if figures.read else 0
    return f"{reads / figures.total.ios * 100:.1f}" if figures.total.ios else BLANK


COLUMNS = (
    Column("i/o", "rate", 10, lambda f: f"{f.total.iops:.1f}"),
    Column("MB/sec", "1024**2", 9, lambda f: f"{f.total.mib_s:.2f}"),
    Column("bytes", "i/o", 8, _bytes_per_io, narrow=False),
    Column("read", "pct", 6, _read_percent, narrow=False),
    Column("resp", "time ms", 8, lambda f: _ms(f.total.mean_ms)),
    Column("read", "resp ms", 8, lambda f: _mean(f.read), split=True),
    Column("write", "resp ms", 8, lambda f: _mean(f.write), split=True),
    Column("resp", "p99 ms", 8, lambda f: _ms(f.total.p99_ms)),
    Column("resp", "max ms", 8, lambda f: _ms(f.total.max_ms), narrow=False),
    Column("stddev", "resp ms", 8, lambda f: _ms(f.total.stddev_ms), narrow=False),
    Column("with", "wait ms", 8, lambda f: _ms(f.total.response_mean_ms), paced=True),
    Column("wait", "p99 ms", 8, lambda f: _ms(f.total.response_p99_ms), paced=True),
    Column("queue", "depth", 6, lambda f: f"{f.queue_depth:.1f}"),
    Column("cpu%", "sys+u", 6, lambda f: _percent(f.cpu_percent)),
    Column("cpu%", "sys", 6, lambda f: _percent(f.cpu_system_percent), narrow=False),
    Column("re-", "trans", 6, lambda f: str(f.retransmits)),
)


def columns_of(*, paced: bool, wide: bool = True) -> tuple[Column, ...]:
    """The columns for a load with or without a rate to keep; on a narrow terminal, fewer.

    Times are in milliseconds. `resp` is the service time; `with wait` is the response time, from the intended start.
    """
    return tuple(
        one
        for one in COLUMNS
        if (wide or (one.narrow and not (paced and one.split))) and (paced or not one.paced)
    )


PATHS_SHOWN = 8
PATH_HEADINGS = ("path", "state", "i/o rate", "MB/sec", "resp ms", "max ms", "queue", "requeued", "retrans")
PATH_NARROW = (0, 1, 2, 4, 5, 7, 8)
"""The columns of paths that a terminal of 80 columns has room for."""


def path_cells(paths: Sequence[PathFigures]) -> list[tuple[str, ...]]:
    """A row for each path, under `PATH_HEADINGS`; of many the first ones, and how many more there are."""
    rows: list[tuple[str, ...]] = [
        (
            path.path,
            path.state,
            f"{path.iops:.1f}",
            f"{path.mib_s:.2f}",
            _ms(path.mean_ms),
            _ms(path.max_ms),
            f"{path.queue_depth:.1f}",
            str(path.requeued),
            str(path.retransmits),
        )
        for path in paths[:PATHS_SHOWN]
    ]
    if len(paths) > PATHS_SHOWN:
        rows.append((f"and {len(paths) - PATHS_SHOWN} more", *[""] * (len(PATH_HEADINGS) - 1)))
    return rows


def path_lines(paths: Sequence[PathFigures]) -> list[str]:
    """The same as plain lines, headings first."""
    rows = [PATH_HEADINGS, *path_cells(paths)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(PATH_HEADINGS))]
    return [
        "  ".join(
            text.ljust(width) if column < 2 else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def started_line(event: RunStarted) -> str:
    """What begins, how long it takes and where its results go."""
    steps = plural(event.steps, "step")
    return f"{event.name}: {steps}, takes {duration_text(event.planned_s)}; run directory {event.directory}"


def loaded_text(event: StepStarted) -> str:
    """How many volumes a step loads, and with which driver."""
    return f"{plural(event.volumes, 'volume')}, {event.driver}"


def volume_lines(event: VolumesFound) -> list[str]:
    """The volumes that the run writes to, and their contents."""
    rows = (
        (on_host(one.host, one.volume), one.target, size_text(one.size_bytes), one.found)
        for one in event.volumes
    )
    return ["writes to", *columns(rows)]


def place(event: Happened) -> str:
    """Of what, where: kind, volume and path."""
    return " ".join(part for part in (event.kind, event.volume, event.path) if part)
