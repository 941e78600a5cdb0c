"""The columns of the interval tables, and the way between them and `IntervalSample` values.

`intervals` has one row per (step, interval, stream, volume, op): what was done. `usage` has one row per
(step, interval): what it cost. `paths` has one per (step, interval, volume, path), of volumes with several paths:
which way it went. `arrays` has one per (step, interval, array, part, name), for arrays whose disks were watched:
what lay behind. While a run is being written all live in one spool file of JSON lines, one line per interval, so
that a killed run loses at most the interval it was in; closing the run turns the spool into Parquet.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from linerate.results.sample import ArrayRow, CounterRow, IntervalSample, PathRow, Usage

_ROWS_PER_FRAME = 100_000
_TYPES: dict[str, pl.DataType] = {
    "str": pl.String(),
    "Op": pl.String(),
    "ArrayPart": pl.String(),
    "bool": pl.Boolean(),
    "int": pl.Int64(),
    "float": pl.Float64(),
}


def _columns_of(kind: type) -> dict[str, pl.DataType]:
    return {item.name: _TYPES[str(item.type)] for item in fields(kind)}


_KEY: dict[str, pl.DataType] = {
    "step": pl.String(),
    "interval": pl.Int64(),
    "start_s": pl.Float64(),
    "end_s": pl.Float64(),
    "warmup": pl.Boolean(),
}
ROW_COLUMNS = _columns_of(CounterRow)
USAGE_COLUMNS = _columns_of(Usage)
PATH_COLUMNS = _columns_of(PathRow)
ARRAY_COLUMNS = _columns_of(ArrayRow)
PATH_SUMS = (
    "read_ios",
    "write_ios",
    "read_bytes",
    "write_bytes",
    "service_sum_ns",
    "requeued",
    "retransmits",
)
"""Columns of paths that intervals may be added up by."""
INTERVALS_SCHEMA: dict[str, pl.DataType] = {**_KEY, **ROW_COLUMNS}
USAGE_SCHEMA: dict[str, pl.DataType] = {**_KEY, **USAGE_COLUMNS}
PATHS_SCHEMA: dict[str, pl.DataType] = {**_KEY, **PATH_COLUMNS}
ARRAYS_SCHEMA: dict[str, pl.DataType] = {**_KEY, **ARRAY_COLUMNS}


class Tables(NamedTuple):
    """The interval tables of a run."""

    intervals: pl.DataFrame
    usage: pl.DataFrame
    paths: pl.DataFrame
    arrays: pl.DataFrame


def spool_line(step: str, interval: IntervalSample) -> str:
    """One interval as one line of JSON:

    the rows as columns, so that names are not repeated a thousand times.
    """
    line = {
        "step": step,
        "interval": interval.index,
        "start_s": interval.start_s,
        "end_s": interval.end_s,
        "warmup": interval.warmup,
        "rows": _as_columns(interval.rows, ROW_COLUMNS),
        "usage": dict(zip(USAGE_COLUMNS, astuple(interval.usage), strict=True)),
    }
    if interval.paths:
        line["paths"] = _as_columns(interval.paths, PATH_COLUMNS)
    if interval.arrays:
        line["arrays"] = _as_columns(interval.arrays, ARRAY_COLUMNS)
    return json.dumps(line, separators=(",", ":"))


def _as_columns(
    rows: Sequence[CounterRow | PathRow | ArrayRow], names: Iterable[str]
) -> dict[str, Sequence[Any]]:
    columns: Sequence[Sequence[Any]] = list(zip(*(astuple(row) for row in rows), strict=True))
    return dict(zip(names, columns, strict=True)) if columns else dict.fromkeys(names, ())


def complete_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The JSON objects of a file of lines, without a last line that a killed process left torn."""
    if not path.exists():
        return
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if not line.endswith("\n"):
                return
            try:
                yield json.loads(line)
            except json.JSONDecodeError:
                return  # a crash of the whole host may leave blocks of zeros behind the last good line


class _Table:
    """A table that grows line by line."""

    def __init__(self, schema: Mapping[str, pl.DataType]) -> None:
        self._schema = dict(schema)
        self._frames = [pl.DataFrame(schema=self._schema)]
        self._rows: dict[str, list[Any]] = {name: [] for name in schema}

    def add(self, line: Mapping[str, Any], columns: Mapping[str, Sequence[Any]]) -> None:
        """Rows as columns, behind the key of their line."""
        count = len(next(iter(columns.values())))
        for name in self._schema:
            self._rows[name].extend([line[name]] * count if name in _KEY else columns[name])
        if len(self._rows["step"]) >= _ROWS_PER_FRAME:  # Python lists cost ten times a frame's memory
            self._flush()

    def frame(self) -> pl.DataFrame:
        """All of it."""
        self._flush()
        return pl.concat(self._frames)

    def _flush(self) -> None:
        self._frames.append(pl.DataFrame(self._rows, schema=self._schema))
        self._rows = {name: [] for name in self._schema}


def read_spool(path: Path) -> Tables:
    """The tables of a spool file."""
    intervals, usage = _Table(INTERVALS_SCHEMA), _Table(USAGE_SCHEMA)
    paths, arrays = _Table(PATHS_SCHEMA), _Table(ARRAYS_SCHEMA)
    for line in complete_lines(path):
        intervals.add(line, line["rows"])
        usage.add(line, {name: (value,) for name, value in line["usage"].items()})
        if "paths" in line:
            paths.add(line, line["paths"])
        if "arrays" in line:
            arrays.add(line, line["arrays"])
    return Tables(intervals.frame(), usage.frame(), paths.frame(), arrays.frame())
