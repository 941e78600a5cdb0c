"""The columns of the interval tables, and the lines of JSON that they come from.

`intervals` has one row per (step, interval, stream, volume, op): what was done. `usage` has one row per
(step, interval): what it cost. `paths` has one per (step, interval, volume, path), of volumes with several paths:
which way it went. `arrays` has one per (step, interval, array, part, name), for arrays whose disks were watched:
what lay behind. While a run is being written all live in one spool file of JSON lines, one line per interval, so
that a killed run loses at most the interval it was in; closing the run turns the spool into Parquet.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

from linerate.results.sample import ArrayRow, CounterRow, IntervalSample, PathRow, Usage


def _columns_of(kind: type) -> dict[str, str]:
    return {item.name: str(item.type) for item in fields(kind)}


KEY = {"step": "str", "interval": "int", "start_s": "float", "end_s": "float", "warmup": "bool"}
"""Columns of every table, with the names of their types; so are those below."""
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
