"""Reads Iometer's result file (ManagerList.cpp of 1.1.0; also 2006): the row ALL of each block of results.

Columns are found by name. MB/s come from the byte counts, because versions name their MB columns differently. Times are
in ms. The latency bins are too wide for percentiles and are not read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from linerate.imported.record import MIB, ToolRun, ToolStep
from linerate.imported.text import SourceText
from linerate.results import GivenFigures, GivenStep

_RESULTS = re.compile(r"^'(?:Test Type,Test Description|Target Type,Target Name)", re.MULTILINE)
_NEEDED = ("IOps", "Bytes Read", "Bytes Written", "Read I/Os", "Write I/Os")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?::(\d{1,3}))?")
_HINT = "give the result file as Iometer wrote it"
_IN_COMMON = ("Queue Depth", "# Managers", "# Workers", "# Disks")


def is_iometer(text: str) -> bool:
    """Whether a text is a result file."""
    return _RESULTS.search(text) is not None


@dataclass(slots=True)
class _State:
    """What the lines so far have said."""

    heading: str = ""
    columns: list[str] = field(default_factory=list)
    name: str = ""
    specifications: dict[str, list[str]] = field(default_factory=dict)
    version: str = ""
    time: datetime | None = None
    hosts: set[str] = field(default_factory=set)
    open_steps: list[ToolStep] = field(default_factory=list)
    steps: list[ToolStep] = field(default_factory=list)


def read_iometer(source: SourceText) -> ToolRun:
    """The steps of a file in order. Raises UserError."""
    state = _State()
    for number, line in source.lines():
        if line.startswith("'"):
            _heading(state, line)
        elif line.strip():
            _value(source, number, line, state)
    if state.open_steps:
        state.steps += state.open_steps
    if not state.steps:
        raise source.refuse(0, "no row ALL: no test of it has ended", _HINT)
    return ToolRun("Iometer", state.version, state.steps, state.hosts.pop() if len(state.hosts) == 1 else "")


def _heading(state: _State, line: str) -> None:
    state.heading = line[1:].strip()
    if state.heading.startswith("Target Type,"):
        state.columns = line[1:].split(",")
        state.heading = "rows"
    elif state.heading == "Access specifications":
        state.specifications = {}


def _value(source: SourceText, number: int, line: str, state: _State) -> None:
    if state.heading == "rows":
        _row(source, number, line, state)
    elif state.heading == "Version":
        state.version = line.strip()
    elif state.heading == "Time Stamp":
        state.time = _time(line)
        state.steps += [_ended(step, state.time) for step in state.open_steps]
        state.open_steps = []
    elif state.heading.startswith("Access specification name"):
        state.name = line.split(",")[0]
        state.specifications[state.name] = []
    elif state.heading.startswith("size,% of size"):
        state.specifications.setdefault(state.name, []).append(line.strip().rstrip(","))


def _ended(step: ToolStep, at: datetime | None) -> ToolStep:
    return ToolStep(step.name, step.given, step.started_at, at)


def _time(line: str) -> datetime | None:
    """The file has the time of its host, without a zone: it is taken for that of this host."""
    found = _TIME.fullmatch(line.strip())
    if found is None:
        return None
    try:
        time = datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S")
        return time.replace(microsecond=1000 * int(found[2] or 0)).astimezone()
    except (ValueError, OverflowError, OSError):
        return None


def _row(source: SourceText, number: int, line: str, state: _State) -> None:
    if missing := [name for name in _NEEDED if name not in state.columns]:
        raise source.refuse(number, f"no column {', '.join(missing)}", _HINT)
    values = line.split(",")
    if values[0] == "MANAGER" and len(values) > 1:
        state.hosts.add(values[1].strip())
    if values[0] != "ALL":
        return
    if len(values) < len(state.columns):
        what = f"{len(values)} values for {len(state.columns)} columns: the row is cut off"
        raise source.refuse(number, what, _HINT)
    row = _All(source, number, dict(zip(state.columns, values, strict=False)))
    name = row.text("Access Specification Name")
    lines = state.specifications.get(name) or [one for of in state.specifications.values() for one in of]
    title = name or " + ".join(state.specifications) or "all"
    state.open_steps.append(ToolStep(title, row.step(lines), started_at=state.time))


@dataclass(frozen=True, slots=True)
class _All:
    """The row of a whole step."""

    source: SourceText
    line: int
    values: Mapping[str, str]

    def text(self, column: str) -> str:
        return self.values.get(column, "").strip()

    def figure(self, column: str) -> float | None:
        text = self.text(column)
        return self.source.figure(self.line, column, text) if text else None

    def count(self, column: str) -> int | None:
        text = self.text(column)
        return self.source.whole(self.line, column, text) if text else None

    def step(self, lines: Sequence[str]) -> GivenStep:
        counts = {name: self.source.whole(self.line, name, self.text(name)) for name in _NEEDED[1:]}
        ios = counts["Read I/Os"] + counts["Write I/Os"]
        iops = self.source.figure(self.line, "IOps", self.text("IOps"))
        if ios and not iops:
            raise self.source.refuse(self.line, f"{ios} I/Os at a rate of 0", _HINT)
        seconds = ios / iops if ios else 0.0
        sides = {
            name: self._side(name, counts[f"{name} I/Os"], counts[size], seconds)
            for name, size in (("Read", "Bytes Read"), ("Write", "Bytes Written"))
        }
        total = self._figures("", ios, counts["Bytes Read"] + counts["Bytes Written"], iops, seconds)
        depth, disks = self._common("Queue Depth"), self._common("# Disks")
        load = {"access specification": "; ".join(lines), **{name: self.text(name) for name in _IN_COMMON}}
        return GivenStep(
            seconds=seconds,
            total=total,
            read=sides["Read"],
            write=sides["Write"],
            outstanding=depth * disks if depth and disks else None,
            cpu_busy_percent=self.figure("% CPU Utilization"),
            cpu_system_percent=self.figure("% Privileged Time"),
            load={name: text for name, text in load.items() if text},
        )

    def _common(self, column: str) -> int | None:
        """None for -1, which is what Iometer writes where targets differ."""
        return None if self.text(column) in ("-1", "") else self.count(column)

    def _side(self, name: str, ios: int, size: int, seconds: float) -> GivenFigures | None:
        iops = self.figure(f"{name} IOps")
        if not ios:
            return None
        return self._figures(f"{name} ", ios, size, ios / seconds if iops is None else iops, seconds)

    def _figures(self, name: str, ios: int, size: int, iops: float, seconds: float) -> GivenFigures:
        return GivenFigures(
            ios=ios,
            bytes=size,
            iops=iops,
            mib_s=size / seconds / MIB if seconds else 0.0,
            mean_ms=self.figure(f"Average {name}Response Time") if ios else None,
            max_ms=self.figure(f"Maximum {name}Response Time") if ios else None,
            errors=self.count(f"{name}Errors"),
        )
