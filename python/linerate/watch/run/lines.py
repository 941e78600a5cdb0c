"""The intervals of a run directory in one form: from its spool while it is written, from its tables when it is closed.

An interval is a `Line` with the service times of the latency log that belong to it.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from linerate.results import LatencyHistogram, RunDirectory
from linerate.results.columns import ROW_COLUMNS, USAGE_COLUMNS
from linerate.results.files import LATENCY, SPOOL
from linerate.results.histogram import decode
from linerate.results.hlog import LogLine, parse_line
from linerate.watch.growing import GrowingFile

TIME_SLACK_S = 0.0015
"""The latency log rounds times to a millisecond."""

Columns = Mapping[str, Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Line:
    """One interval. Tables are columns of equal length, with the names of `linerate.results.columns`."""

    step: str
    start_s: float
    end_s: float
    warmup: bool
    rows: Columns
    usage: Mapping[str, float]
    paths: Columns = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """Length of the interval."""
        return self.end_s - self.start_s


class Intervals:
    """The intervals of a run directory, each one once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._spool = GrowingFile(path / SPOOL)
        self._from_tables = False

    def new(self) -> Iterator[Line]:
        """Those that were completed since the last call. Raises LinerateError for tables that cannot be read."""
        if self._from_tables:
            return
        for text in self._spool.lines():
            try:
                yield _of_spool(json.loads(text))
            except ValueError:
                return  # a crash of the host left zeros behind the last good line
        if not self._spool.is_open:
            self._from_tables = True
            yield from _of_tables(RunDirectory.open(self._path))

    def close(self) -> None:
        """Closes the spool."""
        self._spool.close()


class Latencies:
    """The distributions of whole streams in the latency log, taken interval by interval."""

    def __init__(self, path: Path) -> None:
        self._log = GrowingFile(path / LATENCY)
        self._waiting: deque[LogLine] = deque()

    def read(self) -> None:
        """Reads what was appended. The log is ahead of the spool: a line is there before its interval is."""
        for text in self._log.lines():
            line = parse_line(text)
            if line is not None and not line.tag.volume:
                self._waiting.append(line)

    def take(self, step: str, start_s: float) -> dict[str, list[LatencyHistogram]]:
        """Kind -> the distributions of the interval that begins at `start_s` of the run. Earlier ones are dropped."""
        found: dict[str, list[LatencyHistogram]] = {}
        while self._waiting and self._waiting[0].start_s <= start_s + TIME_SLACK_S:
            line = self._waiting.popleft()
            if line.tag.step == step and line.start_s >= start_s - TIME_SLACK_S:
                found.setdefault(line.tag.kind, []).append(decode(line.data))
        return found

    def close(self) -> None:
        """Closes the log."""
        self._log.close()


def _of_spool(line: Mapping[str, Any]) -> Line:
    return Line(
        line["step"],
        line["start_s"],
        line["end_s"],
        line["warmup"],
        line["rows"],
        line["usage"],
        line.get("paths", {}),
    )


_KEY = ("step", "interval")


def _of_tables(run: RunDirectory) -> Iterator[Line]:
    """The intervals of a closed run, in the order of its steps."""
    rows = run.intervals.partition_by(_KEY, as_dict=True)
    paths = run.paths.partition_by(_KEY, as_dict=True)
    usage = run.usage.partition_by("step", as_dict=True)
    for step in run.manifest.steps:
        table = usage.get((step.key,))
        for one in table.sort("interval").iter_rows(named=True) if table is not None else ():
            key = (step.key, one["interval"])
            yield Line(
                step.key,
                one["start_s"],
                one["end_s"],
                one["warmup"],
                _columns(rows.get(key)) or dict.fromkeys(ROW_COLUMNS, ()),
                {name: one[name] or 0 for name in USAGE_COLUMNS},
                _columns(paths.get(key)),
            )


def _columns(table: pl.DataFrame | None) -> Columns:
    return {} if table is None else table.to_dict(as_series=False)
