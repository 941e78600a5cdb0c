"""Access specifications: named mixes of I/Os, and those without names of versions before 1998.05.21."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from linerate.workload.iometer.configuration import AccessLine, AccessSpecification
from linerate.workload.iometer.lexer import IcfEntry, IcfSection
from linerate.workload.iometer.tables import LINES, SPECIFICATION
from linerate.workload.iometer.values import named, whole
from linerate.workload.problems import Problems, SourceLocation, shorten
from linerate.workload.spec import IO_BYTES_MAX

IDLE = "idle"
"""Iometer's own specification without I/O."""
_LINES_MAX = 100
_DELAY_MS_MAX = 1 << 31
_OLD_DEFAULTS = {"align": "0", "reply": "0"}


class Specifications:
    """Those of a file by their names, in any case as in Iometer. `unnamed`: those of an old version, in order."""

    def __init__(self) -> None:
        self._by_name: dict[str, AccessSpecification] = {}
        self.unnamed: list[AccessSpecification] = []

    def __getitem__(self, name: str) -> AccessSpecification | None:
        return self._by_name.get(name.lower())

    def add(self, specification: AccessSpecification, problems: Problems) -> None:
        """A later one of the same name replaces an earlier one, as in Iometer."""
        earlier = self._by_name.get(specification.name.lower())
        if earlier is not None:
            what = f"{shorten(specification.name)}: replaces that of line {earlier.place.line}, as in Iometer"
            problems.notice(specification.place, what)
        self._by_name[specification.name.lower()] = specification

    @property
    def names(self) -> Sequence[str]:
        """All of them, as written."""
        return [specification.name for specification in self._by_name.values()]


def read_specifications(section: IcfSection | None, problems: Problems) -> Specifications:
    """The specifications of a file; what is wrong is noted in `problems`."""
    found = Specifications()
    name: tuple[SourceLocation, str] | None = None
    for entry in section.entries if section else ():
        if entry.row.name == SPECIFICATION:
            if name is not None:
                problems.error(*_without_lines(*name))
            name = _name(entry, problems)
        elif entry.row.name == LINES and name is not None:
            found.add(AccessSpecification(*name, _lines(entry, name[1], problems)), problems)
            name = None
        elif entry.row.name == LINES:
            for specification in _old(entry, found, problems):
                found.add(specification, problems)
                found.unnamed.append(specification)
    if name is not None:
        problems.error(*_without_lines(*name))
    return found


def _without_lines(place: SourceLocation, name: str) -> tuple[SourceLocation, str, str]:
    return place, f"{shorten(name)}: no lines", "write a line below 'size,% of size,..."


def _name(entry: IcfEntry, problems: Problems) -> tuple[SourceLocation, str]:
    """Up to the first comma. The default assignment behind it does not matter: the manager list assigns."""
    name = entry.value.partition(",")[0].strip()
    if not name:
        problems.error(entry.value_place, f"{entry.text}: no name", "write name,NONE")
    return entry.value_place, name


def _lines(entry: IcfEntry, name: str, problems: Problems) -> tuple[AccessLine, ...]:
    """The lines of a specification, without those of 0 %."""
    if len(entry.values) > _LINES_MAX:
        what = f"{shorten(name)}: {len(entry.values):,} lines; at most {_LINES_MAX}"
        problems.error(entry.place, what, "remove some")
        return ()
    before = len(problems.errors)
    read = [_line(entry, place, text, problems) for place, text in entry.values]
    lines = [line for line in read if line is not None]
    total = sum(line.share_percent for line in lines)
    if total != 100 and len(problems.errors) == before:
        what = f"{shorten(name)}: the percentages add up to {total}, not 100"
        problems.error(entry.place, what, "correct `% of size`; Iometer refuses the file too")
    return tuple(line for line in lines if line.share_percent)


def _line(entry: IcfEntry, place: SourceLocation, text: str, problems: Problems) -> AccessLine | None:
    values = named(entry, place, text, problems)
    if values is None:
        return None
    missing = [name for name in entry.row.fields if name.lower() not in {**values, **_OLD_DEFAULTS}]
    if missing:
        what = f"'{shorten(entry.label)}: {missing[0]} is missing"
        problems.error(entry.place, what, f"write '{entry.row.text}")
        return None
    values = {**_OLD_DEFAULTS, **values}

    def number(name: str, most: int, least: int = 0) -> int:
        return whole(values[name], f"{shorten(text)}: {name}", place, problems, least=least, most=most)

    share_percent = number("% of size", 100)
    return AccessLine(
        place=place,
        text=text.removesuffix(","),
        size_bytes=number("size", IO_BYTES_MAX, min(share_percent, 1)),  # a line of 0 % has no I/O
        share_percent=share_percent,
        read_percent=number("% reads", 100),
        random_percent=number("% random", 100),
        delay_ms=number("delay", _DELAY_MS_MAX),
        burst=number("burst", 1 << 31),
        align_bytes=number("align", 1 << 40),
        reply_bytes=number("reply", IO_BYTES_MAX),
    )


def _old(entry: IcfEntry, known: Specifications, problems: Problems) -> Iterator[AccessSpecification]:
    """Lines of old versions have blanks between the values and no names: each 100 % are a specification."""
    lines: list[AccessLine] = []
    for place, text in entry.values:
        line = _line(entry, place, ",".join(text.replace(",", " ").split()), problems)
        if line is None:
            return
        lines.append(line)
        total = sum(line.share_percent for line in lines)
        if total > 100:
            problems.error(
                place, f"{shorten(text)}: the percentages add up to {total}, not 100", "correct them"
            )
            return
        if total == 100:
            kept = tuple(line for line in lines if line.share_percent)
            yield AccessSpecification(lines[0].place, _old_name(kept, known), kept)
            lines = []
    if lines:
        total = sum(line.share_percent for line in lines)
        what = f"the percentages of the last lines add up to {total}, not 100"
        problems.error(lines[0].place, what, "correct them")


def _old_name(lines: Sequence[AccessLine], known: Specifications) -> str:
    """What Iometer calls it: `2 KiB random 67% reads`; `Untitled 1` if it has several lines."""
    first = lines[0]
    size = {512: "512 B", 1 << 20: "1 MiB"}.get(first.size_bytes, f"{first.size_bytes // 1024} KiB")
    places = {0: " sequential", 100: " random"}.get(first.random_percent, f" {first.random_percent}% random")
    reads = {0: " writes", 100: " reads"}.get(first.read_percent, f" {first.read_percent}% reads")
    base = f"{size}{places}{reads}" if len(lines) == 1 else "Untitled"
    number = 2 if len(lines) == 1 else 1
    name = base if len(lines) == 1 else f"{base} 1"
    while known[name] is not None:
        name = f"{base} {number}"
        number += 1
    return name
