"""Finds the line of a key or of an entry of a list in a TOML file: tomllib says what a file holds, but not where."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field

Key = tuple[str | int, ...]

_BARE_OR_QUOTED = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_KEY = re.compile(rf"\s*({_BARE_OR_QUOTED}(?:\s*\.\s*{_BARE_OR_QUOTED})*)\s*=")
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_BARE_OR_QUOTED}(?:\s*\.\s*{_BARE_OR_QUOTED})*)\s*\]")
_PART = re.compile(_BARE_OR_QUOTED)
_TOKEN = re.compile(r'''"""|\'\'\'|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[\[\]{},#]|[^\s\[\]{},#"']+''')


def key_lines(text: str) -> dict[Key, int]:
    """Line (from 1) of every table header, of every key outside inline tables and of every entry of their lists.

    They are found by full path, in which an entry of a list has its index: ("stream", 0, "size"). A table without a
    header of its own has the line of its first key.
    """
    scanner = _Scanner()
    for number, line in enumerate(text.split("\n"), start=1):
        scanner.line(number, line)
    return scanner.lines


def line_of(lines: dict[Key, int], key: Key) -> int:
    """The line of a key, or of the nearest table around it; 0 if there is none."""
    for length in range(len(key), 0, -1):
        if key[:length] in lines:
            return lines[key[:length]]
    return 0


@dataclass(slots=True)
class _Open:
    """A bracket or brace that is not yet closed."""

    path: Key | None
    """That of the list; none for an inline table and what is in it."""
    entry: int = 0


@dataclass(slots=True)
class _Scanner:
    lines: dict[Key, int] = field(default_factory=dict)
    table: Key = ()
    counts: dict[Key, int] = field(default_factory=dict)
    opened: list[_Open] = field(default_factory=list)
    """Brackets and braces open at the end of the last line, the innermost last."""
    quote: str = ""
    """The multi-line string that is open at the end of the last line."""

    def line(self, number: int, text: str) -> None:
        if self.opened or self.quote:
            self._value(number, text, None)
            return
        if header := _HEADER.match(text):
            self._header(number, header.group(1) == "[[", _parts(header.group(2)))
        elif key := _KEY.match(text):
            path = self.table + _parts(key.group(1))
            self._note(path, number)
            self._value(number, text[key.end() :], path)

    def _note(self, path: Key, number: int) -> None:
        for length in range(1, len(path) + 1):
            self.lines.setdefault(path[:length], number)

    def _header(self, number: int, is_array: bool, parts: tuple[str, ...]) -> None:
        path: Key = ()
        for index, part in enumerate(parts):
            path += (part,)
            if is_array and index == len(parts) - 1:
                self.counts[path] = self.counts.get(path, -1) + 1
            if path in self.counts:
                path += (self.counts[path],)
        self.table = path
        self._note(path, number)

    def _value(self, number: int, text: str, path: Key | None) -> None:
        """Reads on in a value, which is that of the key `path` if it begins here."""
        position = 0
        while position < len(text):
            if self.quote:
                end = text.find(self.quote, position)
                if end < 0:
                    return
                position, self.quote = end + 3, ""
                continue
            found = _TOKEN.search(text, position)
            if found is None or found.group() == "#":
                return
            position, token = found.end(), found.group()
            if token == ",":
                if self.opened:
                    self.opened[-1].entry += 1
            elif token in "]}":
                del self.opened[-1:]
            else:
                self._begins(number, token, path)

    def _begins(self, number: int, token: str, path: Key | None) -> None:
        if self.opened:
            within = self.opened[-1]
            path = None if within.path is None else (*within.path, within.entry)
        if path is not None:
            self._note(path, number)
        if token in "[{":
            self.opened.append(_Open(path if token == "[" else None))
        elif token in ('"""', "'''"):
            self.quote = token


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(_unquoted(part) for part in _PART.findall(dotted))


def _unquoted(part: str) -> str:
    if part[0] not in "\"'":
        return part
    try:
        return str(tomllib.loads(f"k = {part}")["k"])
    except tomllib.TOMLDecodeError:
        return part[1:-1]
