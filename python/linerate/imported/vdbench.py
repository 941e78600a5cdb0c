"""Reads flatfile.html of vdbench (Flat.java and Report.java of 5.04): the averages of each run.

Columns are found by name. MB/sec counts 2^20 bytes and times are in ms. The file has no counts and no interval length:
an interval is as long as the time between two rows, and the counts follow from the rates. Of a mixed load, reads and
writes are told apart where all I/Os have one size.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from linerate.imported.record import MIB, ToolRun, ToolStep, later
from linerate.imported.text import SourceText, read_source, shown
from linerate.results import GivenFigures, GivenStep

_NOT_KNOWN = "n/a"
_NEEDED = ("run", "interval", "rate", "mb/sec", "resp")
_OF_FILES = "mkdir_rate"
"""A column that only file system workloads have."""
_AVERAGE = re.compile(r"avg_(\d{1,9})-(\d{1,9})")
_HEADER = re.compile(r"^[ \t]*tod[ \t].*\bRun[ \t]+Interval[ \t]", re.MULTILINE)
_SUMMARY = re.compile(r"<title>Vdbench [^<\n]*summary\.html")
_CURVE_POINT = re.compile(r"_\(\d+(?:\.\d+)?%\)")
_LOAD = ("xfersize", "threads", "rdpct", "rhpct", "whpct", "seekpct", "lunsize", "reqrate")
_UTC_NAMES = ("UTC", "GMT", "Z")
_DAY_S = 86_400
_HINT = "give flatfile.html as vdbench wrote it"
_JITTER = 0.1
"""Of an interval: vdbench's intervals are whole seconds, its rows come a little later."""


def is_vdbench(text: str) -> bool:
    """Whether a text is a flat file, or a summary beside which there may be one."""
    return _HEADER.search(text) is not None or _SUMMARY.search(text) is not None


def read_vdbench(source: SourceText) -> ToolRun:
    """The averages of a flat file; for a summary, of the flat file next to it. Raises UserError."""
    if _HEADER.search(source.text) is None:
        return read_vdbench(_beside(source))
    steps: list[ToolStep] = []
    notes: list[str] = []
    version = ""
    intervals: list[_Row] = []
    for row in _rows(source):
        if intervals and row.text("run") != intervals[0].text("run"):
            notes.append(_unfinished(intervals))
            intervals = []
        version = row.text("version") or version
        if _AVERAGE.fullmatch(row.text("interval")):
            steps.append(_step(row, intervals))
            intervals = []
        else:
            intervals.append(row)
    if intervals:
        notes.append(_unfinished(intervals))
    if not steps:
        raise source.refuse(0, "no line of averages (avg_2-5): no run of it has ended", _HINT)
    return ToolRun("vdbench", version.removeprefix("vdbench"), steps, notes=tuple(notes))


def _beside(source: SourceText) -> SourceText:
    flat = source.path.with_name("flatfile.html")
    hint = "import flatfile.html of the same folder: its columns have names"
    if not flat.is_file():
        raise source.refuse(0, "a summary of vdbench, without flatfile.html next to it", hint)
    found = read_source(flat)
    if _HEADER.search(found.text) is None:
        raise found.refuse(0, "no line with the names of the columns", _HINT)
    return found


def _unfinished(rows: list[_Row]) -> str:
    return f"line {rows[0].line}: {rows[0].text('run')} has no line of averages and is left out"


@dataclass(frozen=True, slots=True)
class _Row:
    source: SourceText
    line: int
    values: Mapping[str, str]

    def text(self, column: str) -> str:
        """Empty without the column, and for `n/a`."""
        value = self.values.get(column, "")
        return "" if value == _NOT_KNOWN else value

    def figure(self, column: str) -> float | None:
        """None where the file does not tell it."""
        text = self.text(column)
        return self.source.figure(self.line, column, text) if text else None

    def needed(self, column: str) -> float:
        """Raises UserError where the file does not tell it."""
        value = self.figure(column)
        if value is None:
            raise self.source.refuse(self.line, f"{column} has no value", _HINT)
        return value

    def of_day_s(self) -> float | None:
        """Seconds since midnight."""
        found = re.fullmatch(r"(\d\d):(\d\d):(\d\d(?:\.\d{1,9})?)", self.text("tod"))
        return int(found[1]) * 3600 + int(found[2]) * 60 + float(found[3]) if found else None

    def at(self) -> datetime | None:
        """A zone other than UTC is taken for that of this host: its short names are ambiguous."""
        found = re.fullmatch(r"(\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d)-(\S*)", self.text("timestamp"))
        if found is None:
            return None
        try:
            time = datetime.strptime(found[1], "%m/%d/%Y-%H:%M:%S")
            return time.replace(tzinfo=UTC) if found[2] in _UTC_NAMES else time.astimezone()
        except (ValueError, OverflowError, OSError):
            return None


def _rows(source: SourceText) -> Iterator[_Row]:
    names: list[str] = []
    for number, line in source.lines():
        words = line.split()
        if not words or line.startswith(("*", "<")):
            continue
        if words[0] == "tod":
            names = [word.lower() for word in words]
            _check_columns(source, number, names)
        elif not names:
            raise source.refuse(number, f"{shown(line)} before the names of the columns", _HINT)
        elif len(words) != len(names):
            what = f"{len(words)} values for {len(names)} columns: the line is cut off or damaged"
            raise source.refuse(number, what, _HINT)
        else:
            yield _Row(source, number, dict(zip(names, words, strict=True)))


def _check_columns(source: SourceText, line: int, names: list[str]) -> None:
    if _OF_FILES in names:
        raise source.refuse(
            line,
            "the flat file of a file system workload (FSD, FWD), which is not read",
            "import runs of storage definitions (SD, WD)",
        )
    if missing := [name for name in _NEEDED if name not in names]:
        raise source.refuse(line, f"no column {', '.join(missing)}", _HINT)


def _step(row: _Row, intervals: list[_Row]) -> ToolStep:
    length_s = _interval_s(row, intervals)
    first, last = _bounds(row)
    seconds = (last - first + 1) * length_s
    rate, mib_s = row.needed("rate"), row.needed("mb/sec")
    total = GivenFigures(
        ios=round(rate * seconds),
        bytes=round(mib_s * MIB * seconds),
        iops=rate,
        mib_s=mib_s,
        mean_ms=row.needed("resp"),
        stddev_ms=row.figure("resp_std"),
        max_ms=row.figure("resp_max"),
    )
    read_percent = row.figure("read%")
    if read_percent is not None and read_percent > 100:
        raise row.source.refuse(row.line, f"read%: {read_percent:g} is more than 100", _HINT)
    user, kernel = row.figure("cpu_user"), row.figure("cpu_kernel")
    # Not cpu_used: vdbench 5.04.06 writes cpu_user there.
    busy = user + kernel if user is not None and kernel is not None else None
    name = row.text("run")
    began = next((at for interval in intervals if (at := interval.at()) is not None), None)
    return ToolStep(
        name=name,
        given=GivenStep(
            seconds=seconds,
            total=total,
            read=_side(row, total, seconds, read_percent, "read_resp"),
            write=_side(
                row, total, seconds, None if read_percent is None else 100 - read_percent, "write_resp"
            ),
            read_percent=read_percent,
            cpu_busy_percent=busy,
            cpu_system_percent=kernel,
            load=_load(row, name),
        ),
        started_at=later(began, -length_s),
        ended_at=row.at(),
    )


def _bounds(row: _Row) -> tuple[int, int]:
    found = _AVERAGE.fullmatch(row.text("interval"))
    first, last = (int(found[1]), int(found[2])) if found else (1, 0)
    if first > last:
        raise row.source.refuse(row.line, f"{row.text('interval')} has no interval", _HINT)
    return first, last


def _interval_s(row: _Row, intervals: list[_Row]) -> float:
    """From the times of the rows; a day may end between them."""
    known = [(number, at) for number, one in enumerate(intervals) if (at := one.of_day_s()) is not None]
    if len(known) < 2:
        raise row.source.refuse(
            row.line, "the length of an interval is not known: it takes two lines of intervals", _HINT
        )
    (first, begin_s), (last, end_s) = known[0], known[-1]
    between_s = sum((after - before) % _DAY_S for (_, before), (_, after) in itertools.pairwise(known))
    length_s = between_s / (last - first)
    whole = round(length_s)
    if whole and abs(length_s - whole) <= _JITTER * whole:
        return float(whole)
    if not length_s:
        raise row.source.refuse(
            row.line, f"all intervals end at {begin_s:g} s and {end_s:g} s of the day", _HINT
        )
    return round(length_s, 3)


def _side(
    row: _Row, total: GivenFigures, seconds: float, percent: float | None, time: str
) -> GivenFigures | None:
    """Reads or writes. None if there are none, and if their sizes are not known."""
    if not percent:
        return None
    if percent == 100:
        return total
    size = row.text("xfersize")
    if not re.fullmatch(r"\d{1,12}(?:\.0*)?", size):
        return None
    rate = total.iops * percent / 100
    return GivenFigures(
        ios=round(rate * seconds),
        bytes=round(rate * seconds * float(size)),
        iops=rate,
        mib_s=rate * float(size) / MIB,
        mean_ms=row.figure(time),
    )


def _load(row: _Row, name: str) -> dict[str, str]:
    """The rate of a point of a curve follows from the maximum of the same run."""
    left_out = {"reqrate"} if _CURVE_POINT.search(name) else set()
    return {column: text for column in _LOAD if column not in left_out and (text := row.text(column))}
