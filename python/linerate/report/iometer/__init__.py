"""Results as Iometer's result file (CSV, of Iometer 1.1.0), for programs that read Iometer's.

A block for each step: its access specifications, then rows of ALL, MANAGER, WORKER and DISK. A worker is a stream, and
a disk is a volume of it; a configuration of Iometer gives both the names of the file. Times are service times, from
submit to complete, as Iometer takes them; raw times are in ns, and `Processor Speed` is their clock: 10^9 per second.
`rows` has the figures, `columns` their names. docs/iometer.md tells users the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from linerate.report.iometer.columns import COLUMNS
from linerate.report.iometer.rows import StepRows, plain
from linerate.results import RunDirectory, StepRecord
from linerate.results.files import write_result

_IOMETER_VERSION = "1.1.0"
"""The version whose form this is."""
_NOT_ASSIGNED = 0
_LINE = "'size,% of size,% reads,% random,delay,burst,align,reply"


def write_iometer_csv(run: RunDirectory, path: Path) -> None:
    """Write the results of a run as one file; a file that is there is replaced. Raises HostError."""
    text = "\r\n".join(iometer_lines(run)) + "\r\n"
    write_result(path, text.encode())


def iometer_lines(run: RunDirectory) -> Iterator[str]:
    """The lines of the file."""
    manifest = run.manifest
    test = next((step.iometer for step in manifest.steps if step.iometer is not None), None)
    description = test.description if test is not None else manifest.name
    yield "'Test Type,Test Description"
    yield f"{test.test_type if test is not None else 0},{plain(description)}"
    yield "'Version"
    yield f"{_IOMETER_VERSION} (Linerate {manifest.versions.get('linerate', '')})"
    yield from _time_stamp(manifest.started_at)
    for step in manifest.steps:
        yield "'Access specifications"
        for name, lines in _specifications(step).items():
            yield "'Access specification name,default assignment"
            yield f"{plain(name)},{_NOT_ASSIGNED}"
            yield _LINE
            yield from (f"{line}," for line in lines)
        yield "'End access specifications"
        yield "'Results"
        yield "'" + ",".join(COLUMNS)
        for row in StepRows(run, step).rows():
            yield ",".join(row.get(name, "") for name in COLUMNS)
        yield from _time_stamp(step.ended_at or step.started_at)
    yield "'End Test"


def _time_stamp(at: datetime) -> Iterator[str]:
    local = at.astimezone()
    yield "'Time Stamp"
    yield f"{local:%Y-%m-%d %H:%M:%S}:{local.microsecond // 1000:03d}"


def _specifications(step: StepRecord) -> Mapping[str, Sequence[str]]:
    """Lines by name, in Iometer's form; those of another workload say roughly what its streams do."""
    if step.iometer is not None:
        return {worker.specification: worker.lines for worker in step.iometer.workers}
    streams: Sequence[Mapping[str, Any]] = step.spec.get("streams", ())
    label = step.label or step.name
    return {
        label if len(streams) == 1 else f"{label} {stream['name']}": list(_lines(stream))
        for stream in streams
    }


def _lines(stream: Mapping[str, Any]) -> Iterator[str]:
    sizes = stream.get("sizes", {})
    parts = sizes.get("parts") or [((sizes.get("min_bytes", 0) + sizes.get("max_bytes", 0)) // 2, 100.0)]
    read, jump = round(stream.get("read_percent", 100.0)), round(stream.get("random_percent", 100.0))
    for size, share in parts:
        yield f"{size},{round(share)},{read},{jump},0,1,{stream.get('align_bytes') or 0},0"
