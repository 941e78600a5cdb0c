"""From the text of an Iometer configuration to its sections: labels with the values below them.

The rules are those of Iometer 1.1.0, which reads files of all versions since 1998: sections come in any order, labels
have any case, and a line that begins with `'` behind a label without values is its comment, for instance the names of
the columns below `'Run Time`. Where Iometer would read something that was hardly meant, the reader does not: it
refuses a section that comes twice (Iometer takes the first), a section without its end, and lines outside of sections.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from linerate.errors import UserError
from linerate.workload.iometer.tables import (
    LABELS,
    IcfLabel,
    IcfPart,
    ended_part,
    find_label,
    names_of,
    part_of,
)
from linerate.workload.problems import Problems, SourceLocation, shorten
from linerate.workload.text import read_content, text_of

LINE_CHARACTERS_MAX = 1024
_FILE_BYTES_MAX = 16 << 20
_LINES_MAX = 200_000
_VERSION = re.compile(r"\s*Version\s+(\d{1,4})\.(\d{1,4})\.(\d{1,4})\b", re.IGNORECASE)
_NO_END_BEFORE = (1999, 2, 17)
"""Test setups of earlier versions may lack their end."""
_HINT = "save the configuration in Iometer again"


@dataclass(slots=True)
class IcfEntry:
    """A label and the lines below it, without blanks around them. `names`: those of the label, lower case."""

    place: SourceLocation
    row: IcfLabel
    label: str
    names: tuple[str, ...]
    values: list[tuple[SourceLocation, str]] = field(default_factory=list)

    @property
    def value(self) -> str:
        """The first line below it; empty: there is none."""
        return self.values[0][1] if self.values else ""

    @property
    def value_place(self) -> SourceLocation:
        """The line of the first value; that of the label if there is none."""
        return self.values[0][0] if self.values else self.place

    @property
    def text(self) -> str:
        """Label and first value, for messages."""
        return f"'{shorten(self.label)}: {shorten(self.value)}" if self.values else f"'{shorten(self.label)}"


@dataclass(slots=True)
class IcfSection:
    """A section of the file."""

    place: SourceLocation
    part: IcfPart
    entries: list[IcfEntry] = field(default_factory=list)
    has_end: bool = False


def read_icf(path: Path, problems: Problems) -> Mapping[IcfPart, IcfSection]:
    """The sections of a configuration.

    Raises UserError for a file that cannot be read as text or is no configuration; all else is noted in `problems`.
    """
    reader = _Reader(str(path), problems)
    reader.read(_text_of(path))
    return reader.sections


def _text_of(path: Path) -> str:
    """The file's text; Iometer writes ANSI. Raises UserError."""
    unreadable = "give the path of a configuration of Iometer"
    too_large = "give a configuration of Iometer (.icf)"
    return text_of(path, read_content(path, _FILE_BYTES_MAX, unreadable=unreadable, too_large=too_large))


class _Reader:
    def __init__(self, shown: str, problems: Problems) -> None:
        self._shown = shown
        self._problems = problems
        self._section: IcfSection | None = None
        self._version = (0, 0, 0)
        self._skips = False
        """In a section that came before."""
        self.sections: dict[IcfPart, IcfSection] = {}

    def read(self, text: str) -> None:
        """Adds all lines."""
        lines = self._lines(text)
        first = next(lines, None)
        version = _VERSION.match(first[1]) if first else None
        if first is None or version is None:
            place = first[0] if first else SourceLocation(self._shown, 0)
            raise UserError(
                f"{place}: no version in the first line",
                "a configuration of Iometer begins with its version, for example Version 1.1.0",
            )
        self._version = (int(version[1]), int(version[2]), int(version[3]))
        place = first[0]
        for place, line in lines:
            if line.startswith("'"):
                self._label(place, line[1:].strip())
            elif not _VERSION.match(line):
                self._value(place, line)
        self._close(place, at_end=True)

    def _lines(self, text: str) -> Iterator[tuple[SourceLocation, str]]:
        """Lines that are not empty, without blanks around them."""
        for number, raw in enumerate(text.split("\n"), start=1):
            place = SourceLocation(self._shown, number)
            if number > _LINES_MAX:
                raise UserError(f"{place}: more than {_LINES_MAX:,} lines", "split the file")
            if len(raw) > LINE_CHARACTERS_MAX:
                what = f"{place}: a line of {len(raw):,} characters; at most {LINE_CHARACTERS_MAX:,} are read"
                raise UserError(what, _HINT)
            if line := raw.strip():
                yield place, line

    def _label(self, place: SourceLocation, label: str) -> None:
        if (part := part_of(label)) is not None:
            self._close(place)
            self._open(place, part)
        elif (ended := ended_part(label)) is not None:
            self._end(place, label, ended)
        elif self._skips:
            return
        elif self._section is None:
            self._problems.error(place, f"'{shorten(label)}: outside of a section", _HINT)
        else:
            self._entry(place, label, self._section)

    def _open(self, place: SourceLocation, part: IcfPart) -> None:
        known = self.sections.get(part)
        self._skips = known is not None
        if known is not None:
            what = (
                f"a second '{part.value}; the first is in line {known.place.line}, and Iometer reads no other"
            )
            self._problems.error(place, what, "remove one of them")
        self._section = IcfSection(place, part)
        self.sections.setdefault(part, self._section)

    def _end(self, place: SourceLocation, label: str, part: IcfPart) -> None:
        if self._section is None or self._section.part is not part:
            self._problems.error(place, f"'{shorten(label)}: no such section is open", _HINT)
            return
        self._section.has_end = True
        self._section, self._skips = None, False

    def _close(self, place: SourceLocation, *, at_end: bool = False) -> None:
        """A section that is left without its end. Before 1999.02.17 a test setup had none."""
        section, self._section, self._skips = self._section, None, False
        if section is None:
            return
        old = self._version[0] > 1900 and self._version < _NO_END_BEFORE
        if section.part is IcfPart.SETUP and old and not at_end:
            section.has_end = True
            return
        where = "the file ends" if at_end else "another section begins"
        what = f"{where} inside of '{section.part.value} (line {section.place.line}): 'END is missing"
        self._problems.error(place, what, f"the file was cut off: {_HINT}" if at_end else _HINT)

    def _entry(self, place: SourceLocation, label: str, section: IcfSection) -> None:
        row = find_label(label)
        last = section.entries[-1] if section.entries else None
        if row is not None and row.part is section.part:
            section.entries.append(IcfEntry(place, row, label, names_of(label)))
        elif last is None or last.values or last.row.bare:
            if section.part is IcfPart.DISPLAY:
                return
            what = f"'{shorten(label)}: not known in '{section.part.value}"
            self._problems.error(place, what, _nearest(label, section.part))

    def _value(self, place: SourceLocation, line: str) -> None:
        section = self._section
        if self._skips or (section is not None and section.part is IcfPart.DISPLAY):
            return
        if section is None or not section.entries or section.entries[-1].row.bare:
            self._problems.error(place, f"{shorten(line)}: no label above it", _HINT)
            return
        section.entries[-1].values.append((place, line))


def _nearest(label: str, part: IcfPart) -> str:
    known = {row.name.lower(): row.text for row in LABELS if row.part is part}
    close = difflib.get_close_matches(label[:100].lower(), list(known), n=1, cutoff=0.7)
    return f"did you mean '{known[close[0]]}?" if close else "docs/iometer.md lists the labels"
