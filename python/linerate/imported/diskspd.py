"""Reads diskspd's XML results (`-Rxml`; XmlResultParser.cpp of 2.2): one step per time span.

Rates follow from counts and TestTimeSeconds, as diskspd computes them. Times are in ms; without -L there are none.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from xml.parsers import expat

from linerate.errors import UserError
from linerate.imported.record import ToolRun, ToolStep, figures, later
from linerate.imported.text import SourceText, shown
from linerate.results import GivenFigures, GivenStep

_RESULTS = re.compile(
    r"\s*(?:<\?xml[^>]*>\s*)?(?:<!--(?:(?!-->).)*-->\s*)*(?:<!DOCTYPE[^<]*(?:<![^<]*)*)?<Results\b", re.DOTALL
)
_DEPTH_MAX = 32
_NODES_MAX = 2_000_000
_TEXT_CHARACTERS_MAX = 32_768
_HINT = "give the file as diskspd -Rxml wrote it, of one command"
_SIDES = (("Read", "read"), ("Write", "write"))
_LOAD = (
    *("BlockSize", "RequestCount", "WriteRatio", "Random", "StrideSize", "RandomRatio", "ThreadsPerFile"),
    *("Throughput", "InterlockedSequential", "DisableAllCache", "DisableOSCache", "WriteThrough"),
)
"""Elements of a target in the profile that make the load."""


@dataclass(slots=True)
class _Element:
    name: str
    line: int
    text: str = ""
    children: list[_Element] = field(default_factory=list)

    def all(self, name: str) -> Iterator[_Element]:
        return (child for child in self.children if child.name == name)

    def find(self, *names: str) -> _Element | None:
        """The first one at the end of a path of names."""
        if not names:
            return self
        found = next(self.all(names[0]), None)
        return found.find(*names[1:]) if found is not None else None

    def value(self, *names: str) -> str:
        """Empty without the element."""
        found = self.find(*names)
        return found.text.strip() if found is not None else ""


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


def _parsed(source: SourceText) -> _Element:
    top = _Element("", 0)
    open_elements = [top]
    count = itertools.count(1)
    parser = expat.ParserCreate(encoding="utf-8")

    def refuse(what: str) -> UserError:
        return source.refuse(parser.CurrentLineNumber, what, _HINT)

    def declares(name: str, *_: object) -> None:
        raise refuse(f"a document type ({shown(name)}): diskspd writes none, and entities are not read")

    def begin(name: str, _attributes: dict[str, str]) -> None:
        if len(open_elements) > _DEPTH_MAX or next(count) > _NODES_MAX:
            raise refuse(f"{shown(name)}: too deep, or more than {_NODES_MAX:,} elements")
        element = _Element(name, parser.CurrentLineNumber)
        open_elements[-1].children.append(element)
        open_elements.append(element)

    def end(_name: str) -> None:
        open_elements.pop()

    def more(text: str) -> None:
        element = open_elements[-1]
        element.text += text
        if len(element.text) > _TEXT_CHARACTERS_MAX:
            raise refuse(f"{shown(element.name)}: more than {_TEXT_CHARACTERS_MAX:,} characters")

    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = declares
    parser.StartElementHandler, parser.EndElementHandler = begin, end
    parser.CharacterDataHandler = more
    try:
        parser.Parse(source.text.encode("utf-8", "replace"), True)
    except expat.ExpatError as error:
        raise refuse(f"no XML: {expat.ErrorString(error.code)}") from error
    return top.children[0]


def _time(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, "%Y/%m/%d %H:%M:%S UTC").replace(tzinfo=UTC)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class _Span:
    source: SourceText
    span: _Element

    def step(self, asked: _Element | None) -> GivenStep:
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

    def _figure(self, element: _Element, *names: str) -> float | None:
        found = element.find(*names)
        return None if found is None else self.source.figure(found.line, names[-1], found.text)

    def _count(self, target: _Element, name: str) -> int:
        found = target.find(name)
        if found is None:
            raise self.source.refuse(target.line, f"a target without {name}", _HINT)
        return self.source.whole(found.line, name, found.text)


def _load(asked: _Element) -> dict[str, str]:
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
