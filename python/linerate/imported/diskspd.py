"""Reads diskspd's XML results (`-Rxml`; XmlResultParser.cpp of 2.2): one step per time span.

Rates follow from counts and TestTimeSeconds, as diskspd computes them. Times are in ms; without -L there are none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from linerate.errors import UserError
from linerate.imported.record import ToolRun, ToolStep, figures, later
from linerate.imported.text import SourceText, shown
from linerate.results import GivenFigures, GivenStep
from linerate.workload.diskspd.elements import Element, read_elements

_RESULTS = re.compile(
    r"\s*(?:<\?xml[^>]*>\s*)?(?:<!--(?:(?!-->).)*-->\s*)*(?:<!DOCTYPE[^<]*(?:<![^<]*)*)?<Results\b", re.DOTALL
)
_DEPTH_MAX = 32
_ELEMENTS_MAX = 2_000_000
_HINT = "give the file as diskspd -Rxml wrote it, of one command"
_SIDES = (("Read", "read"), ("Write", "write"))
_LOAD = (
    *("BlockSize", "RequestCount", "WriteRatio", "Random", "StrideSize", "RandomRatio", "ThreadsPerFile"),
    *("Throughput", "InterlockedSequential", "DisableAllCache", "DisableOSCache", "WriteThrough"),
)
"""Elements of a target in the profile that make the load."""


def is_diskspd(text: str) -> bool:
    """Whether a text is a result in XML."""
    return _RESULTS.match(text) is not None


def read_diskspd(source: SourceText) -> ToolRun:
    """The time spans of a file in order. Raises UserError."""
    root = _parsed(source)
    if root.name != "Results":
        raise source.refuse(root.line, f"{shown(root.name)} instead of Results", _HINT)
    profile = root.find("Profile", "TimeSpans")
    asked = list(profile.all("TimeSpan")) if profile is not None else []
    began = _time(root.value("System", "RunTime"))
    steps, notes = [], []
    for number, span in enumerate(root.all("TimeSpan"), start=1):
        if span.find("TestTimeSeconds") is None:
            notes.append(f"line {span.line}: time span {number} has no results and is left out")
            continue
        load = asked[number - 1] if number <= len(asked) else None
        given = _Span(source, span).step(load)
        ended = later(began, given.seconds)
        steps.append(ToolStep(f"time span {number}", given, began, ended))
        began = ended
    if not steps:
        raise source.refuse(root.line, "no time span with results", _HINT)
    host = root.value("System", "ComputerName")
    return ToolRun("diskspd", root.value("System", "Tool", "Version"), steps, host, tuple(notes))


def _parsed(source: SourceText) -> Element:
    def refuse(line: int, what: str) -> UserError:
        return source.refuse(line, what, _HINT)

    return read_elements(source.text, refuse, depth_max=_DEPTH_MAX, elements_max=_ELEMENTS_MAX)


def _time(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, "%Y/%m/%d %H:%M:%S UTC").replace(tzinfo=UTC)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class _Span:
    source: SourceText
    span: Element

    def step(self, asked: Element | None) -> GivenStep:
        seconds = self._figure(self.span, "TestTimeSeconds")
        targets = [target for thread in self.span.all("Thread") for target in thread.all("Target")]
        if seconds is None or not targets:
            raise self.source.refuse(
                self.span.line, "a time span without its time, or without a target", _HINT
            )
        counts = {
            name: sum(self._count(target, name) for target in targets)
            for name in ("IOCount", "BytesCount", "ReadCount", "ReadBytes", "WriteCount", "WriteBytes")
        }
        sides = {
            side: self._side(name, counts[f"{name}Count"], counts[f"{name}Bytes"], seconds)
            for name, side in _SIDES
        }
        load = _load(asked) if asked is not None else {}
        load.setdefault("Path", ", ".join(dict.fromkeys(target.value("Path") for target in targets)))
        return GivenStep(
            seconds=seconds,
            total=self._figures("Total", counts["IOCount"], counts["BytesCount"], seconds),
            read=sides["read"],
            write=sides["write"],
            cpu_busy_percent=self._figure(self.span, "CpuUtilization", "Average", "UsagePercent"),
            cpu_system_percent=self._figure(self.span, "CpuUtilization", "Average", "KernelPercent"),
            load=load,
        )

    def _side(self, name: str, ios: int, size: int, seconds: float) -> GivenFigures | None:
        return self._figures(name, ios, size, seconds) if ios else None

    def _figures(self, name: str, ios: int, size: int, seconds: float) -> GivenFigures:
        latency = self.span.find("Latency")
        if latency is None:
            return figures(ios, size, seconds)
        buckets = {
            bucket.value("Percentile"): value
            for bucket in latency.all("Bucket")
            if (value := self._figure(bucket, f"{name}Milliseconds")) is not None
        }
        percentiles = {
            f"{percent:.9g}": value
            for text, value in buckets.items()
            if 0 < (percent := self.source.figure(latency.line, "Percentile", text)) < 100
        }
        return figures(
            ios,
            size,
            seconds,
            mean_ms=self._figure(latency, f"Average{name}Milliseconds"),
            stddev_ms=self._figure(latency, f"{name.removeprefix('Total')}LatencyStdev"),
            max_ms=buckets.get("100"),
            percentiles_ms=percentiles,
        )

    def _figure(self, element: Element, *names: str) -> float | None:
        found = element.find(*names)
        return None if found is None else self.source.figure(found.line, names[-1], found.text)

    def _count(self, target: Element, name: str) -> int:
        found = target.find(name)
        if found is None:
            raise self.source.refuse(target.line, f"a target without {name}", _HINT)
        return self.source.whole(found.line, name, found.text)


def _load(asked: Element) -> dict[str, str]:
    """What the profile asks of the targets; targets that differ have all their values."""
    targets = [target for group in asked.all("Targets") for target in group.all("Target")]
    values = {
        name: list(dict.fromkeys(text for target in targets if (text := target.value(name))))
        for name in _LOAD
    }
    paths = [target.value("Path") for target in targets if target.value("Path")]
    found = {name: ", ".join(texts) for name, texts in values.items() if texts}
    if threads := asked.value("ThreadCount"):
        found["ThreadCount"] = threads
    return found | ({"Path": ", ".join(paths)} if paths else {})
