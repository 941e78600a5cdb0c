"""Finds the line of a key in a TOML file: tomllib says what a file holds, but not where."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field

Key = tuple[str | int, ...]

_BARE_OR_QUOTED = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_KEY = re.compile(rf"\s*({_BARE_OR_QUOTED}(?:\s*\.\s*{_BARE_OR_QUOTED})*)\s*=")
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_BARE_OR_QUOTED}(?:\s*\.\s*{_BARE_OR_QUOTED})*)\s*\]")
_PART = re.compile(_BARE_OR_QUOTED)
_TOKEN = re.compile(r'''"""|\'\'\'|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[\[\]{}#]''')


def key_lines(text: str) -> dict[Key, int]:
    """Line (from 1) of every table header and every key outside inline tables, by full path.

    An element of an array of tables has its index in the path: ("stream", 0, "size").
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
class _Scanner:
    lines: dict[Key, int] = field(default_factory=dict)
    table: Key = ()
    counts: dict[Key, int] = field(default_factory=dict)
    depth: int = 0
    """Brackets and braces open at the end of the last line."""
    quote: str = ""
    """The multi-line string that is open at the end of the last line."""

    def line(self, number: int, text: str) -> None:
        if self.depth or self.quote:
            self._value(text)
            return
        if header := _HEADER.match(text):
            self._header(number, header.group(1) == "[[", _parts(header.group(2)))
        elif key := _KEY.match(text):
            self.lines.setdefault(self.table + _parts(key.group(1)), number)
            self._value(text[key.end() :])

    def _header(self, number: int, is_array: bool, parts: tuple[str, ...]) -> None:
        path: Key = ()
        for index, part in enumerate(parts):
            path += (part,)
            last = index == len(parts) - 1
            if last and is_array:
                self.counts[path] = self.counts.get(path, -1) + 1
                self.lines.setdefault(path, number)
            if path in self.counts:
                path += (self.counts[path],)
        self.table = path
        self.lines.setdefault(path, number)

    def _value(self, text: str) -> None:
        position = 0
        while position < len(text):
            if self.quote:
                end = text.find(self.quote, position)
                if end < 0:
                    return
                position, self.quote = end + 3, ""
                continue
            token = _TOKEN.search(text, position)
            if token is None or token.group() == "#":
                return
            position = token.end()
            if token.group() in ('"""', "'''"):
                self.quote = token.group()
            elif token.group() in "[{":
                self.depth += 1
            elif token.group() in "]}":
                self.depth = max(0, self.depth - 1)


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(_unquoted(part) for part in _PART.findall(dotted))


def _unquoted(part: str) -> str:
    if part[0] not in "\"'":
        return part
    try:
        return str(tomllib.loads(f"k = {part}")["k"])
    except tomllib.TOMLDecodeError:
        return part[1:-1]
