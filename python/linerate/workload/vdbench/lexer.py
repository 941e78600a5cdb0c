"""From the text of vdbench parameter files to a flat stream of `keyword=value`.

Strict reading follows vdbench, surprises included:

- `$name` and `!name` are replaced first, even in comments; then lines are trimmed;
- a line that starts with `/`, `#` or `*` is a comment, one that starts with `eof` ends its file;
- text after the first blank outside quotes is a comment, and a line that then ends with a comma goes
on in the
  next line: `wd=wd1, sd=sd1` is `wd=wd1,` glued to the line below it;
- double quotes hide blank, comma, `=` and `-`; a TAB is no blank.

Lenient reading keeps what people meant: text after a blank that is more parameters stays, a TAB is a blank.
Each such place is a notice that says what vdbench would have made of it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from linerate.errors import UserError
from linerate.workload.problems import Problems, SourceLocation, shorten
from linerate.workload.text import read_content, text_of

_HIDDEN = {" ": "\ue000", ",": "\ue001", "=": "\ue002", "-": "\ue003", "\t": "\ue004"}
_HIDE = str.maketrans(_HIDDEN)
_UNHIDE = str.maketrans({hidden: shown for shown, hidden in _HIDDEN.items()})
_TRIMMED = "".join(map(chr, range(33)))
_KEYWORD = re.compile(r"([a-zA-Z_]{2,})[ \t]*=")
_NEXT = re.compile(r",([A-Za-z]\w+)=")
_PATHS = ("lun", "anchor")
_FILE_BYTES_MAX = 16 << 20
_LINE_CHARACTERS_MAX = 1 << 20
"""Of a line, also of one that goes on in the next ones."""
_HINT = "give the path of a vdbench parameter file"
_LEFT_OVER = re.compile(r"=([$!](?!host\b)\w+)")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One `keyword=value`; the keyword in lower case as typed, quoted characters of the value still
    hidden."""

    place: SourceLocation
    keyword: str
    value: str

    @property
    def text(self) -> str:
        """As it is in the file, without quotes."""
        return f"{self.keyword}={unhide(self.value)}"


@dataclass(frozen=True, slots=True)
class Line:
    """A line that is neither comment nor include, substituted and trimmed."""

    place: SourceLocation
    text: str


def hide_quoted(text: str) -> str:
    """Takes double quotes off and hides what they protect; an open quote reaches to the end of the line."""
    parts = text.split('"')
    return "".join(part.translate(_HIDE) if index % 2 else part for index, part in enumerate(parts))


def unhide(text: str) -> str:
    """The plain text of a value."""
    return text.translate(_UNHIDE)


def read_lines(
    paths: Sequence[Path], substitutions: Mapping[str, str], problems: Problems, *, lenient: bool
) -> list[Line]:
    """The lines of all files in order, with includes in place. A substitution that nothing uses is an
    error."""
    reader = _LineReader(substitutions, problems, lenient)
    lines = [line for path in paths for line in reader.read(path, str(path), None)]
    for name in substitutions:
        if name not in reader.used:
            where = SourceLocation(", ".join(map(str, paths)), 0)
            problems.error(
                where, f"{name}={substitutions[name]} was given, but no ${name} or !{name} is there"
            )
    return lines


class _LineReader:
    """Substitution, comments, `eof` and `include=`."""

    def __init__(self, substitutions: Mapping[str, str], problems: Problems, lenient: bool) -> None:
        self._substitutions = sorted(substitutions.items(), key=lambda item: -len(item[0]))
        self._problems = problems
        self._lenient = lenient
        self.used: set[str] = set()

    def read(self, path: Path, shown: str, includer: SourceLocation | None) -> list[Line]:
        lines: list[Line] = []
        for number, raw in enumerate(_read_text(path, includer).split("\n"), start=1):
            place = SourceLocation(shown, number)
            text = self._substitute(raw).strip(_TRIMMED)
            if text.startswith("eof"):
                break
            comment = not text or text[0] in "/#*"
            if not (comment and self._lenient):
                self._check_left_over(place, text)
            if comment:
                continue
            _check_length(place, text)
            if text.startswith("include="):
                lines += self._include(path, place, text, nested=includer is not None)
            else:
                lines.append(Line(place, text))
        return lines

    def _substitute(self, line: str) -> str:
        for name, value in self._substitutions:
            for mark in ("$", "!"):
                if mark + name in line:
                    self.used.add(name)
                    line = line.replace(mark + name, value)
        return line

    def _check_left_over(self, place: SourceLocation, text: str) -> None:
        if match := _LEFT_OVER.search(text):
            name = match.group(1)[1:]
            self._problems.error(place, f"{match.group(1)} has no value", f"give one: {name}=VALUE")

    def _include(self, path: Path, place: SourceLocation, text: str, *, nested: bool) -> list[Line]:
        parts = text.split("=")
        if len(parts) != 2 or not parts[1]:
            self._problems.error(place, text, "write include=FILE")
            return []
        if nested:
            self._problems.error(
                place, f"{text}: an included file cannot include another", "include both in one"
            )
            return []
        name = parts[1].strip('"') if self._lenient else parts[1]
        beside = path.parent / name if "/" not in name else Path(name)
        candidates = dict.fromkeys((beside, Path(name)))
        found = next((place for place in candidates if place.is_file()), None)
        if found is None:
            looked_for = " and ".join(str(candidate.absolute()) for candidate in candidates)
            self._problems.error(place, f"{text}: no such file", f"there is no {looked_for}")
            return []
        return self.read(found, str(found), place)


def _check_length(place: SourceLocation, text: str) -> None:
    if len(text) > _LINE_CHARACTERS_MAX:
        what = f"{place}: a line of {len(text):,} characters; at most {_LINE_CHARACTERS_MAX:,} are read"
        raise UserError(what, "split the line")


def _read_text(path: Path, includer: SourceLocation | None) -> str:
    shown = f"{includer}: {path}" if includer else str(path)
    return text_of(shown, read_content(path, _FILE_BYTES_MAX, shown=shown, unreadable=_HINT, too_large=_HINT))


def parameters(
    lines: Sequence[Line], is_keyword: Callable[[str], bool], problems: Problems, *, lenient: bool
) -> list[Parameter]:
    """The parameters of the lines. `is_keyword` says whether a word can start a parameter (lenient reading
    only)."""
    cut = _LenientCut(is_keyword, problems) if lenient else _strict_cut
    for line in lines:
        _tell_of_cut_path(line, is_keyword, problems)
    found: list[Parameter] = []
    index = 0
    while index < len(lines):
        text, starts, places = cut(lines[index]), [0], [lines[index].place]
        index += 1
        while text.endswith(",") and index < len(lines):
            starts.append(len(text))
            places.append(lines[index].place)
            text += cut(lines[index])
            _check_length(lines[index].place, text)
            index += 1
        for start, piece in _split(text):
            place = places[bisect_right(starts, start) - 1]
            if parameter := _parameter(place, piece, problems):
                found.append(parameter)
    return found


def has_lenient_patterns(lines: Sequence[Line], is_keyword: Callable[[str], bool]) -> bool:
    """Whether a line has what strict reading would drop though it is plainly meant: `a=1, b=2`, `a=1 , b=2`,
    `(1, 2)`."""
    scratch = Problems()
    cut = _LenientCut(is_keyword, scratch)
    return any(cut.is_plain(line) for line in lines)


def _tell_of_cut_path(line: Line, is_keyword: Callable[[str], bool], problems: Problems) -> None:
    """A path ends at a blank, and then names another file: told where parameters seem to follow its rest."""
    kept, _, comment = hide_quoted(line.text).partition(" ")
    key, rest = kept.rpartition(",")[2].partition("=")[0].lower(), comment.partition(",")[0]
    if key in _PATHS and "=" not in rest and any(is_keyword(word.lower()) for word in _NEXT.findall(comment)):
        problems.notice(
            line.place,
            f"{key}= ends at the blank, and {shorten(unhide(comment))!r} is a comment, as in vdbench; "
            "write a path with blanks in double quotes",
        )


def _strict_cut(line: Line) -> str:
    return hide_quoted(line.text).partition(" ")[0]


class _LenientCut:
    """Cuts a line's comment off, but keeps what looks like parameters behind a blank."""

    def __init__(self, is_keyword: Callable[[str], bool], problems: Problems) -> None:
        self._is_keyword = is_keyword
        self._problems = problems

    def is_plain(self, line: Line) -> bool:
        """Whether the first thing after the first blank goes on with the parameters beyond doubt."""
        head, blank, tail = hide_quoted(line.text).replace("\t", " ").partition(" ")
        return bool(blank) and self._join(head, tail.lstrip(), after_comma_only=True) is not None

    def __call__(self, line: Line) -> str:
        text = hide_quoted(line.text)
        if "\t" in text:
            text = text.replace("\t", " ")
            if self._join(*_at_blank(text)) is not None:
                self._problems.notice(
                    line.place, "a TAB was read as a blank; vdbench would take it as part of a word"
                )
        head, blank, tail = text.partition(" ")
        kept = head
        while blank:
            joined = self._join(kept, tail.lstrip())
            if joined is None:
                break
            kept, blank, tail = joined.partition(" ")
        if kept != head:
            self._note(line.place, head, kept)
        return kept

    def _join(self, head: str, tail: str, *, after_comma_only: bool = False) -> str | None:
        """Head and tail glued, if the tail goes on with the head's parameters."""
        if not tail:
            return None
        if head.count("(") > head.count(")"):
            return head + tail
        if tail[0] == "," and "=" in head:
            return head + tail
        word = _KEYWORD.match(tail)
        if word and self._is_keyword(word.group(1).lower()):
            tail = word.group(1) + "=" + tail[word.end() :].lstrip()
            if head.endswith(","):
                return head + tail
            return None if after_comma_only or "=" not in head else f"{head},{tail}"
        if tail[0] == "=" and self._is_keyword(head.rpartition(",")[2].lower()):
            return head + "=" + tail[1:].lstrip()
        return head + tail if head.endswith("=") and not after_comma_only else None

    def _note(self, place: SourceLocation, head: str, grown: str) -> None:
        added = shorten(unhide(grown[len(head) :].lstrip(",").rstrip(",")))
        if head.endswith(","):
            effect = "would drop it and go on in the next line"
        elif head.count("(") > head.count(")"):
            effect = "would end the list there"
        else:
            effect = "would take it as a comment"
        self._problems.notice(place, f"kept {added!r} after a blank; vdbench {effect}")


def _at_blank(text: str) -> tuple[str, str]:
    head, _, tail = text.partition(" ")
    return head, tail.lstrip()


def _split(text: str) -> list[tuple[int, str]]:
    """The pieces between the commas outside parentheses, each with its start."""
    pieces: list[tuple[int, str]] = []
    depth = start = 0
    for index, char in enumerate(text):
        if char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
        elif char == "," and depth <= 0:
            pieces.append((start, text[start:index]))
            start = index + 1
    if start < len(text):
        pieces.append((start, text[start:]))
    return pieces


def _parameter(place: SourceLocation, piece: str, problems: Problems) -> Parameter | None:
    shown = shorten(unhide(piece))
    keyword, equals, value = piece.partition("=")
    if piece.count("(") != piece.count(")"):
        problems.error(place, f"{shown}: a parenthesis is missing", "write keyword=(value,value)")
    elif not equals or not keyword:
        problems.error(
            place, f"{shown!r}: expected keyword=value", "a comment needs a blank, # or * before it"
        )
    elif not value:
        problems.error(place, f"{shown}: no value", "write keyword=value")
    elif len(keyword) < 2:
        problems.error(place, f"{shown}: a keyword has at least two letters")
    else:
        return Parameter(place, keyword.lower(), value)
    return None
