"""Reports of file system workloads: rates and times of each operation, in vdbench's columns.

`rate` and `resp` are of the operations that were asked for; opens and closes of reads and writes have columns of
their own. Times in ms, MB of 2^20 bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from linerate.analysis.summary import MIB, NS_PER_MS
from linerate.report.vdbench.layout import clock
from linerate.report.vdbench.rows import ReportRow, StepRows
from linerate.results import RunDirectory, StepRecord

_OPERATIONS = (
    *("mkdir", "rmdir", "create", "open", "close", "delete"),
    *("getattr", "setattr", "access", "copy", "move"),
)
_RATE_MAX = 9_999_988
_NOT_KNOWN = "n/a"
_FLAT_WIDTH = 12
_HEAD_WIDTHS = (13, 24, 24, 12)


@dataclass(frozen=True, slots=True)
class Figures:
    """One operation in an interval: how many in a second, mean time, bytes in a second."""

    rate: float = 0.0
    resp_ms: float = 0.0
    mib_s: float = 0.0


@dataclass(frozen=True, slots=True)
class OperationRow:
    """One line: `asked` is all operations that were asked for."""

    row: ReportRow
    asked: Figures
    by_operation: Mapping[str, Figures]

    def of(self, operation: str) -> Figures:
        """Zeros if there was none."""
        return self.by_operation.get(operation, Figures())

    @property
    def read_percent(self) -> float:
        """Of reads and writes."""
        read, write = self.of("read").rate, self.of("write").rate
        return 100 * read / (read + write) if read + write else 0.0

    @property
    def xfer_bytes(self) -> float:
        """Mean size of reads and writes."""
        rate = self.of("read").rate + self.of("write").rate
        return self.mib_s * MIB / rate if rate else 0.0

    @property
    def mib_s(self) -> float:
        """Of reads and writes."""
        return self.of("read").mib_s + self.of("write").mib_s


def is_of_files(record: StepRecord) -> bool:
    """Whether a step is a file system workload."""
    return bool(record.spec.get("files"))


def operation_rows(
    run: RunDirectory, record: StepRecord, rows: StepRows, volume: str | None = None
) -> Iterator[OperationRow]:
    """The lines of a step, the average last; of one structure, or of all."""
    usage = run.usage.filter(pl.col("step") == record.key).sort("interval")
    counted = run.intervals.filter(pl.col("step") == record.key)
    if volume is not None:
        counted = counted.filter(pl.col("volume") == volume)
    seconds = dict(zip(usage["interval"], usage["end_s"] - usage["start_s"], strict=True))
    for row, (interval, length) in zip(rows.intervals, seconds.items(), strict=True):
        yield _line(record, row, counted.filter(pl.col("interval") == interval), length)
    if rows.total is not None:
        measured = usage.filter(~pl.col("warmup"))
        length = float((measured["end_s"] - measured["start_s"]).sum())
        yield _line(record, rows.total, counted.filter(~pl.col("warmup")), length)


def _line(record: StepRecord, row: ReportRow, counted: pl.DataFrame, seconds: float) -> OperationRow:
    files = record.spec["files"]
    sums: dict[str, list[float]] = {}
    asked = [0.0, 0.0, 0.0]
    of_stream = {stream["name"]: stream for stream in files["streams"]}
    for name, ios, size, time_ns in counted.select("stream", "ios", "bytes", "service_sum_ns").iter_rows():
        stream = of_stream[name]
        work = files["workloads"][stream["workload"]]
        kinds = [sums.setdefault(stream["operation"], [0.0, 0.0, 0.0])]
        is_asked = stream["operation"] == work["operation"] or (
            work["read_percent"] is not None and stream["operation"] in ("read", "write")
        )
        for sum_ in (*kinds, *([asked] if is_asked else [])):
            for index, value in enumerate((ios, size, time_ns)):
                sum_[index] += value
    return OperationRow(
        row, _figures(asked, seconds), {op: _figures(one, seconds) for op, one in sums.items()}
    )


def _figures(sums: list[float], seconds: float) -> Figures:
    ios, size, time_ns = sums
    if not ios or not seconds:
        return Figures()
    return Figures(ios / seconds, time_ns / ios / NS_PER_MS, size / seconds / MIB)


def flat_lines(run: RunDirectory, steps: Iterable[tuple[StepRecord, StepRows]]) -> Iterator[str]:
    """flatfile.html: the header, then every interval and average of every step."""
    yield "* rate, resp: operations that were asked for, per second, and their mean time in ms"
    yield "* NAME_rate, NAME_resp: the same of one operation; MB of 2**20 bytes; reqrate 9999988 = max"
    yield "*"
    names = ["reqrate", "rate", "resp", "MB/sec", "Read_rate", "Read_resp", "Write_rate", "Write_resp"]
    names += ["MB_read", "MB_write", "Xfersize"]
    names += [f"{op.capitalize()}_{kind}" for op in _OPERATIONS for kind in ("rate", "resp")]
    names += ["compratio", "dedupratio", "cpu_used", "cpu_user", "cpu_kernel", "cpu_wait", "cpu_idle"]
    yield _joined(("tod", "timestamp", "Run", "Interval"), names)
    for record, rows in steps:
        for line in operation_rows(run, record, rows):
            yield _joined(_head(line.row.at, record, line.row.label), _flat_values(line, record))


def _head(at: datetime, record: StepRecord, label: str) -> tuple[str, str, str, str]:
    run = "_".join(record.name.split()) or _NOT_KNOWN
    return clock(at), f"{at:%m/%d/%Y-%H:%M:%S-%Z}", run, label


def _flat_values(line: OperationRow, record: StepRecord) -> list[str]:
    files = record.spec["files"]
    rate, dedup = files.get("rate"), files.get("dedup")
    ratios = (files.get("compression_ratio"), dedup["ratio"] if dedup else None)
    read, write, row = line.of("read"), line.of("write"), line.row
    figures = [
        line.asked.rate,
        line.asked.resp_ms,
        line.mib_s,
        read.rate,
        read.resp_ms,
        write.rate,
        write.resp_ms,
    ]
    figures += [read.mib_s, write.mib_s, line.xfer_bytes]
    for operation in _OPERATIONS:
        figures += [line.of(operation).rate, line.of(operation).resp_ms]
    cpu = (row.cpu_used, row.cpu_user, row.cpu_system, row.cpu_wait, row.cpu_idle)
    return [
        f"{rate['per_s']:g}" if rate else str(_RATE_MAX),
        *(f"{figure:.4f}" for figure in figures),
        *(_NOT_KNOWN if ratio is None else f"{ratio:g}" for ratio in ratios),
        *(_NOT_KNOWN if one != one else f"{one:.1f}" for one in cpu),
    ]


def _joined(head: Iterable[str], values: Iterable[str]) -> str:
    """Columns at fixed places; a value too wide for its column moves the rest, and always keeps its blank."""
    first = "".join(f" {text:>{width}}" for text, width in zip(head, _HEAD_WIDTHS, strict=True))
    return first + "".join(f" {text:>{_FLAT_WIDTH}}" for text in values)


# (first header line, second header line, width, decimals) of the columns before those of operations.
_COLUMNS = (
    ("Reqstd", "rate", 9, 1),
    ("Ops", "resp", 8, 3),
    ("cpu%", "total", 5, 1),
    ("cpu%", "sys", 5, 1),
    ("read", "pct", 5, 1),
    ("read", "rate", 9, 1),
    ("read", "resp", 8, 3),
    ("write", "rate", 9, 1),
    ("write", "resp", 8, 3),
    ("mb/sec", "read", 8, 2),
    ("mb/sec", "write", 8, 2),
    ("mb/sec", "total", 8, 2),
    ("xfer", "size", 8, 0),
)


_ALL_COLUMNS = (
    *_COLUMNS,
    *((op, kind, 8, digits) for op in _OPERATIONS for kind, digits in (("rate", 1), ("resp", 3))),
)


def summary_lines(day: datetime, lines: Iterable[OperationRow]) -> Iterator[str]:
    """summary.html: two header lines, then every interval and the average."""
    first, second = short_header()
    yield f"{f'{day:%b %d, %Y}':<12} {'interval':>12}{first}"
    yield " " * 25 + second
    for line in lines:
        yield f"{clock(line.row.at)} {line.row.label:>12}{short_line(line)}"


def short_header() -> tuple[str, str]:
    """The two header lines of the figures alone."""
    first = "".join(f" {one:>{width}}" for one, _, width, _ in _ALL_COLUMNS)
    return first, "".join(f" {two:>{width}}" for _, two, width, _ in _ALL_COLUMNS)


def short_line(line: OperationRow) -> str:
    """The figures of a line alone."""
    read, write, row = line.of("read"), line.of("write"), line.row
    figures = [line.asked.rate, line.asked.resp_ms, row.cpu_used, row.cpu_system, line.read_percent]
    figures += [read.rate, read.resp_ms, write.rate, write.resp_ms]
    figures += [read.mib_s, write.mib_s, line.mib_s, line.xfer_bytes]
    for operation in _OPERATIONS:
        figures += [line.of(operation).rate, line.of(operation).resp_ms]
    return "".join(
        f" {figure:>{width}.{decimals}f}"
        for figure, (_, _, width, decimals) in zip(figures, _ALL_COLUMNS, strict=True)
    )
