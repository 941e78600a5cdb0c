"""How report lines are laid out: banner, the two header lines, and the row under them."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from linerate.results import StepRecord

if TYPE_CHECKING:
    from linerate.report.vdbench.rows import ReportRow

_LABEL_WIDTH = 12

# (first header line, second header line, width, decimals, attribute of ReportRow); one blank before each column.
_COLUMNS = (
    ("i/o", "rate", 10, 2, "rate"),
    ("MB/sec", "1024**2", 8, 2, "mib_s"),
    ("bytes", "i/o", 7, 0, "bytes_per_io"),
    ("read", "pct", 6, 2, "read_percent"),
    ("resp", "time", 8, 3, "resp"),
    ("read", "resp", 8, 3, "read_resp"),
    ("write", "resp", 8, 3, "write_resp"),
    ("resp", "max", 8, 3, "resp_max"),
    ("resp", "stddev", 8, 3, "resp_stddev"),
    ("queue", "depth", 6, 1, "queue_depth"),
)
_CPU_COLUMNS = (("cpu%", "sys+u", 5, 1, "cpu_used"), ("cpu%", "sys", 5, 1, "cpu_system"))


@dataclass(frozen=True, slots=True)
class ReportLink:
    """A line that leads to another report."""

    text: str
    file: str
    name: str

    @property
    def markup(self) -> str:
        """The line as HTML."""
        target = html.escape(self.file.replace("%", "%25"))
        return f'{html.escape(self.text)}<A HREF="{target}">{html.escape(self.name)}</A>'


@dataclass(frozen=True, slots=True)
class RunStart:
    """The line that announces a step, which the index of the runs leads to. number: of the step, from 1."""

    text: str
    number: int

    @property
    def markup(self) -> str:
        """The line as HTML."""
        return f'<a name="_{self.number}"></a><i><b>{html.escape(self.text)}</b></i>'


def run_index(records: Sequence[StepRecord]) -> Iterator[ReportLink]:
    """A link to each step in the same report."""
    for number, record in enumerate(records, start=1):
        loops = f" {record.for_loops}" if record.for_loops else ""
        head = "Link to Run Definitions:" if number == 1 else ""
        yield ReportLink(f"{head:<33}", f"#_{number}", f"{record.name}{loops}")


def later(start: datetime, seconds: float) -> datetime:
    """The moment `seconds` after `start`."""
    return start + timedelta(seconds=seconds)


def clock(at: datetime) -> str:
    """Time of day with milliseconds, as it opens every line."""
    return f"{at:%H:%M:%S}.{at.microsecond // 1000:03d}"


def banner(record: StepRecord) -> str:
    """The line that announces a step."""
    spec = record.spec
    warmup = f" warmup={spec['warmup_s']:g}" if spec.get("warmup_s") else ""
    return (
        f"{clock(record.started_at)} Starting RD={record.name}; I/O rate: {requested_rate(record)}; "
        f"elapsed={spec.get('elapsed_s', 0):g}{warmup}; For loops: {record.for_loops or 'None'}"
    )


def requested_rate(record: StepRecord) -> str:
    """The rate asked for: the words of the workload file if it had any, else what the spec says."""
    if record.requested_rate:
        return record.requested_rate
    arrival = record.spec.get("arrival", {})
    if arrival.get("kind") == "open":
        return f"{arrival.get('rate_iops', 0):g}"
    controlled = record.spec.get("shares", "uncontrolled") != "uncontrolled"
    return "Controlled MAX" if controlled else "Uncontrolled MAX"


def header(day: datetime, *, cpu: bool) -> tuple[str, str]:
    """The two header lines above the rows of a step."""
    columns = _COLUMNS + (_CPU_COLUMNS if cpu else ())
    names = "".join(f" {first:>{width}}" for first, _, width, _, _ in columns)
    units = "".join(f" {second:>{width}}" for _, second, width, _, _ in columns)
    return (
        f"{f'{day:%b %d, %Y}':<12} {'interval':>{_LABEL_WIDTH}}{names}",
        f"{'':<12} {'':>{_LABEL_WIDTH}}{units}",
    )


def line(row: ReportRow, *, cpu: bool) -> str:
    """One row. Every column keeps a blank before it, however wide its figure."""
    columns = _COLUMNS + (_CPU_COLUMNS if cpu else ())
    figures = "".join(
        f" {_figure(getattr(row, name), decimals):>{width}}" for _, _, width, decimals, name in columns
    )
    return f"{clock(row.at)} {row.label:>{_LABEL_WIDTH}}{figures}"


def table_header(kind: str, width: int) -> tuple[str, str]:
    """The two header lines of a table of parts, whose names have a width."""
    names = "".join(f" {first:>{size}}" for first, _, size, _, _ in _COLUMNS)
    units = "".join(f" {second:>{size}}" for _, second, size, _, _ in _COLUMNS)
    return f"{'':<{width}}{names}", f"{kind:<{width}}{units}"


def table_line(name: str, row: ReportRow, width: int) -> str:
    """One part of such a table."""
    return f"{name:<{width}}" + "".join(
        f" {_figure(getattr(row, key), decimals):>{size}}" for _, _, size, decimals, key in _COLUMNS
    )


def _figure(value: float, decimals: int) -> str:
    return "NaN" if value != value else f"{value:.{decimals}f}"
