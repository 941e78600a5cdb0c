"""The columns of the two interval tables, and the way between them and `Interval` values.

`intervals` has one row per (step, interval, stream, volume, op): what was done. `usage` has one row per
(step, interval): what it cost. While a run is being written both live in one spool file of JSON lines, one
line per interval, so that a killed run loses at most the interval it was in; closing the run turns the spool
into Parquet.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

import polars as pl

from linerate.results.sample import Interval, Row, Usage

_ROWS_PER_FRAME = 100_000
_TYPES: dict[str, pl.DataType] = {
    "str": pl.String(),
    "Op": pl.String(),
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
ROW_COLUMNS = _columns_of(Row)
USAGE_COLUMNS = _columns_of(Usage)
INTERVALS_SCHEMA: dict[str, pl.DataType] = {**_KEY, **ROW_COLUMNS}
USAGE_SCHEMA: dict[str, pl.DataType] = {**_KEY, **USAGE_COLUMNS}


def spool_line(step: str, interval: Interval) -> str:
    """One interval as one line of JSON:

    the rows as columns, so that names are not repeated a thousand times.
    """
    columns = list(zip(*(astuple(row) for row in interval.rows), strict=True)) or [()] * len(ROW_COLUMNS)
    return json.dumps(
        {
            "step": step,
            "interval": interval.index,
            "start_s": interval.start_s,
            "end_s": interval.end_s,
            "warmup": interval.warmup,
            "rows": dict(zip(ROW_COLUMNS, columns, strict=True)),
            "usage": dict(zip(USAGE_COLUMNS, astuple(interval.usage), strict=True)),
        },
        separators=(",", ":"),
    )


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


def read_spool(path: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The `intervals` and `usage` tables of a spool file."""
    frames: list[pl.DataFrame] = [pl.DataFrame(schema=INTERVALS_SCHEMA)]
    rows: dict[str, list[Any]] = {name: [] for name in INTERVALS_SCHEMA}
    usage: dict[str, list[Any]] = {name: [] for name in USAGE_SCHEMA}
    for line in complete_lines(path):
        count = len(line["rows"]["ios"])
        for name in _KEY:
            rows[name].extend([line[name]] * count)
            usage[name].append(line[name])
        for name in ROW_COLUMNS:
            rows[name].extend(line["rows"][name])
        for name in USAGE_COLUMNS:
            usage[name].append(line["usage"][name])
        if len(rows["ios"]) >= _ROWS_PER_FRAME:  # Python lists cost ten times a frame's memory
            frames.append(pl.DataFrame(rows, schema=INTERVALS_SCHEMA))
            rows = {name: [] for name in INTERVALS_SCHEMA}
    frames.append(pl.DataFrame(rows, schema=INTERVALS_SCHEMA))
    return pl.concat(frames), pl.DataFrame(usage, schema=USAGE_SCHEMA)
