"""From an XML profile of diskspd (-X) to commands: each time span is one, its elements read as their options.

Elements and their options are data; docs/diskspd.md is made from them. Targets of a time span that have other options
than the first one are groups of their own in its run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from linerate.errors import UserError
from linerate.workload.diskspd.elements import Element, read_elements
from linerate.workload.diskspd.lexer import CommandLine, read_bytes
from linerate.workload.problems import Problems, SourceLocation, shorten
from linerate.workload.text import text_of, text_of_head

_DEPTH_MAX = 16
_ELEMENTS_MAX = 100_000
_TRUE, _FALSE = ("true", "1"), ("false", "0")
_PROFILE = re.compile(r"\s*(<\?xml[^>]*>\s*)?(<!--(?:(?!-->).)*-->\s*)*<Profile\b", re.DOTALL)

ElementForm = Literal["number", "flag", "none", "parts", "weight", "refused"]


@dataclass(frozen=True, slots=True)
class ProfileElement:
    """What an element is read as. number: the option with the number behind it, 0 being as without the element.
    flag: the option if it is true. parts: its children count. weight: that of a target in a shared queue. option: as
    behind the `-`."""

    parent: str
    name: str
    form: ElementForm
    option: str = ""


def _rows(parent: str, form: ElementForm, **options: str) -> tuple[ProfileElement, ...]:
    return tuple(ProfileElement(parent, name, form, option) for name, option in options.items())


def _none(parent: str, *names: str) -> tuple[ProfileElement, ...]:
    return tuple(ProfileElement(parent, name, "none") for name in names)


ELEMENTS: tuple[ProfileElement, ...] = (
    *_rows("Profile", "parts", TimeSpans=""),
    *_none("Profile", "Verbose", "VerboseStats", "Progress", "ResultFormat", "ETW", "PrecreateFiles"),
    *_rows("TimeSpan", "parts", Targets=""),
    *_rows("TimeSpan", "number", Duration="d", Warmup="W", Cooldown="C", RandSeed="z"),
    *_rows("TimeSpan", "number", ThreadCount="F", RequestCount="O"),
    *_rows("TimeSpan", "flag", RandomWriteData="Zr"),
    *_none("TimeSpan", "DisableAffinity", "GroupAffinity", "Affinity", "CompletionRoutines"),
    *_none("TimeSpan", "MeasureLatency", "CalculateIopsStdDev", "IoBucketDuration"),
    *_rows("Target", "parts", Path="", WriteBufferContent="Z", StrideSize="s", InterlockedSequential="si"),
    *_rows("Target", "number", BlockSize="b", BaseFileOffset="B", RequestCount="o", Random="r", RandomRatio="rs"),
    *_rows("Target", "number", BurstSize="i", ThinkTime="j", Throughput="g", ThreadsPerFile="t", FileSize="c"),
    *_rows("Target", "number", MaxFileSize="f", WriteRatio="w", ThreadStride="T"),
    *_rows("Target", "flag", DisableAllCache="Sh", DisableOSCache="Su", DisableLocalCache="Sr"),
    *_rows("Target", "flag", WriteThrough="Sw", MemoryMappedIo="Sm", ParallelAsyncIO="p"),
    *_none("Target", "SequentialScan", "RandomAccess", "TemporaryFile", "UseLargePages", "IOPriority"),
    *_rows("Target", "weight", Weight=""),
    *_rows("Target", "parts", Distribution="rd"),
    *_rows("Target", "refused", FlushType="N", ThreadTargets="O"),
)  # fmt: skip
_BY_NAME = {(row.parent, row.name): row for row in ELEMENTS}
_KEPT_AT_ZERO = ("d", "W")
"""Options whose default is not 0."""


def is_profile(head: bytes) -> bool:
    """Whether the beginning of a file is that of a profile."""
    return _PROFILE.match(text_of_head(head)) is not None


def read_profile(path: Path, problems: Problems) -> Iterator[CommandLine]:
    """The time spans of a profile in order. Raises UserError for what is no XML."""
    root = _parsed(path)
    reader = _Reader(str(path), problems)
    reader.check(root)
    for spans in root.children:
        for span in spans.children if spans.name == "TimeSpans" else ():
            if (command := reader.command(span)) is not None:
                yield command


def _parsed(path: Path) -> Element:
    def refuse(line: int, what: str) -> UserError:
        return UserError(f"{path}:{line}: {what}", "write a profile as diskspd -Rpxml does")

    text = text_of(path, read_bytes(path))
    return read_elements(text, refuse, depth_max=_DEPTH_MAX, elements_max=_ELEMENTS_MAX)


class _Reader:
    def __init__(self, path: str, problems: Problems) -> None:
        self._path = path
        self._problems = problems

    def check(self, node: Element) -> None:
        """Notes each child of a profile, a time span or a target that is not known or not supported."""
        for child in node.children:
            row = _BY_NAME.get((node.name, child.name))
            if row is None:
                self._error(child, f"{node.name} has no element {shorten(child.name)}", "correct it")
            elif row.form == "refused":
                self._error(child, f"{child.name} (-{row.option}) is not supported", "leave it out")
            elif row.form == "flag" and child.text.strip().lower() not in (*_TRUE, *_FALSE):
                self._error(child, f"{child.name} {shorten(child.text)}", "write true or false")
        for child in node.children:
            for part in child.children if child.name in ("TimeSpans", "Targets") else ():
                if part.name == child.name.removesuffix("s"):
                    self.check(part)
                else:
                    self._error(part, f"{child.name} has no element {shorten(part.name)}", "correct it")

    def command(self, span: Element) -> CommandLine | None:
        """The time span as a command; None after a problem was noted."""
        found = [target for child in span.children if child.name == "Targets" for target in child.children]
        paths = [target.value("Path") for target in found]
        for path in paths:
            if path.startswith("*") and not re.fullmatch(r"\*0*[1-9]\d{0,8}", path):
                self._error(span, f"{shorten(path)}: no template, which diskspd refuses", "write *1, *2, ..")
        if not found or not all(paths):
            self._error(span, "a time span without targets, or a target without a path", "write Path")
            return None
        groups: dict[tuple[str, ...], list[Element]] = {}
        for target in found:
            groups.setdefault(tuple(self._options(target)), []).append(target)
        first, *others = [self._group(span, options, targets) for options, targets in groups.items()]
        return replace(first, others=tuple(others))

    def _group(self, span: Element, options: Sequence[str], targets: Sequence[Element]) -> CommandLine:
        """Targets of a time span that have the same options."""
        words = (*self._options(span), *options, *(target.value("Path") for target in targets))
        weights = tuple(self._weight(target) for target in targets)
        place = SourceLocation(self._path, span.line)
        return CommandLine(place, "diskspd", words, weights if len(set(weights)) > 1 else ())

    def _weight(self, target: Element) -> int:
        text = target.value("Weight") or "1"
        if re.fullmatch(r"\d{1,9}", text):
            return int(text)
        self._error(target, f"Weight {shorten(text)}", "write digits")
        return 1

    def _options(self, node: Element) -> Iterator[str]:
        for child in node.children:
            row = _BY_NAME.get((node.name, child.name))
            text = child.text.strip()
            if row is None:
                continue
            if row.form == "flag" and text.lower() in _TRUE:
                yield f"-{row.option}"
            elif row.form == "number" and (text.strip("0") or (text and row.option in _KEPT_AT_ZERO)):
                unit = "i" if row.option == "g" and child.attributes.get("unit") == "IOPS" else ""
                is_default = row.option == "t" and text == "1"
                yield from () if is_default else (f"-{row.option}{text}{unit}",)
        if node.name == "Target":
            yield from self._order(node)
            yield from self._places(node)
            yield from self._data(node)

    def _order(self, target: Element) -> Iterator[str]:
        stride = target.value("StrideSize")
        if target.value("InterlockedSequential").lower() in _TRUE:
            yield f"-si{stride}"
        elif stride:
            yield f"-s{stride}"

    def _places(self, target: Element) -> Iterator[str]:
        """The distribution as `-rd`. What is left to the rest of the target is not written there."""
        kinds = {"Percent": "pct", "Absolute": "abs"}
        for number, distribution in enumerate(target.all("Distribution")):
            if number:
                self._error(distribution, "Distribution twice, which diskspd refuses", "write it once")
                break
            kind = distribution.children[0] if len(distribution.children) == 1 else Element("", 0)
            ranges = [one for one in kind.children if one.name == "Range"]
            parts = [(one.attributes.get("IO", ""), one.text.strip()) for one in ranges]
            if kind.name not in kinds or not parts or len(ranges) < len(kind.children):
                what = "Distribution needs one element Percent or Absolute, with elements Range"
                self._error(distribution, what, "write it as diskspd -Rpxml does")
                continue
            shares = sum(int(share) for share, _ in parts if share.isdecimal())
            if kind.name == "Absolute" and parts[-1][1].strip("0") == "" and shares == 100:
                parts.pop()
            if parts:
                yield f"-rd{kinds[kind.name]}" + ":".join(f"{share}/{length}" for share, length in parts)

    def _data(self, target: Element) -> Iterator[str]:
        pattern = target.value("WriteBufferContent", "Pattern")
        source = ("WriteBufferContent", "RandomDataSource")
        if pattern == "zero":
            yield "-Z"
        elif pattern == "random":
            file = target.value(*source, "FilePath")
            yield f"-Z{target.value(*source, 'SizeInBytes')}" + (f",{file}" if file else "")
        elif pattern not in ("", "sequential"):
            self._error(target, f"Pattern {shorten(pattern)}", "write sequential, zero or random")

    def _error(self, node: Element, what: str, accepted: str) -> None:
        self._problems.error(SourceLocation(self._path, node.line), what, accepted)
