"""From the text of a fio job file to sections of `keyword=value`.

The rules are fio's (3.33), which differ from those of an INI parser in five ways: a keyword may stand without a
value, section names may repeat, `[global]` may come again and then adds to the defaults, `include` reads a file in
place, and `${NAME}` and `$ncpus`, `$pagesize`, `$mb_memory` are replaced. Besides:

- `#` and `;` begin a comment anywhere in a line, also inside a value;
- there is no quoting and no continuation of lines;
- a line has at most 8192 bytes;
- an included file has no section of its own; it may include others.

Where fio would read something that was hardly meant, the reader does not: it strips the blanks around a value (fio
keeps those before it), and refuses a section without its bracket and a variable without a value.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from linerate.errors import UserError
from linerate.workload.problems import Problems, SourceLocation, shorten
from linerate.workload.text import read_content, text_of

LINE_BYTES_MAX = 8192
"""fio's limit."""
_FILE_BYTES_MAX = 64 << 20
_LINES_MAX = 50_000
"""Lines that are no comment, of all files together."""
_ALL_LINES_MAX = 1_000_000
_BLANKS = " \t\r\f\v"
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_NAME_MAX = 200
_HINT = "write [name] for a job, and keyword=value lines below it"


@dataclass(frozen=True, slots=True)
class JobOption:
    """One line of a section; `value` is None where the keyword is alone."""

    place: SourceLocation
    keyword: str
    value: str | None

    @property
    def text(self) -> str:
        """As in the file, without blanks and comment."""
        return shorten(self.keyword if self.value is None else f"{self.keyword}={self.value}")


@dataclass(slots=True)
class JobSection:
    """A section: `[global]`, or a job by its name."""

    place: SourceLocation
    name: str
    is_global: bool
    options: list[JobOption] = field(default_factory=list)


def read_sections(path: Path, substitutions: Mapping[str, str], problems: Problems) -> list[JobSection]:
    """The sections of a job file in order, with includes in place and variables replaced.

    `substitutions` win over variables of the environment; one that no line uses is an error. Raises UserError for a
    file that cannot be read as text; all else is noted in `problems`.
    """
    reader = _Reader(substitutions, problems)
    reader.read(path, str(path), ())
    where = SourceLocation(str(path), 0)
    for name, value in substitutions.items():
        if name not in reader.used:
            problems.error(where, f"{name}={shorten(value)} was given, but no ${{{name}}} is there")
    return reader.sections


def _text_of(path: Path, shown: str) -> str:
    """The file's text. Raises UserError for what is no text."""
    unreadable, too_large = "give the path of a fio job file", "give a fio job file"
    content = read_content(path, _FILE_BYTES_MAX, shown=shown, unreadable=unreadable, too_large=too_large)
    return text_of(shown, content)


class _Reader:
    def __init__(self, substitutions: Mapping[str, str], problems: Problems) -> None:
        self._substitutions = substitutions
        self._problems = problems
        self._lines = 0
        self.used: set[str] = set()
        self.sections: list[JobSection] = []

    def read(self, path: Path, shown: str, chain: tuple[tuple[int, int], ...]) -> None:
        """Adds the file's lines; `chain` holds the files that include it, by device and inode."""
        text = _text_of(path, shown)
        if text.count("\n") > _ALL_LINES_MAX:
            raise UserError(f"{shown}: more than {_ALL_LINES_MAX:,} lines", "split the file")
        found = path.stat()
        chain = (*chain, (found.st_dev, found.st_ino))
        for number, raw in enumerate(text.split("\n"), start=1):
            if not raw:
                continue
            place = SourceLocation(shown, number)
            if len(raw) > LINE_BYTES_MAX:
                what = f"a line of {len(raw):,} characters; fio reads at most {LINE_BYTES_MAX}"
                self._problems.error(place, what, "split the line")
                continue
            line = re.split("[#;]", raw, maxsplit=1)[0].strip(_BLANKS)
            if not line:
                continue
            self._lines += 1
            if self._lines > _LINES_MAX:
                raise UserError(f"{place}: more than {_LINES_MAX:,} lines", "split the file")
            if line.startswith("["):
                self._section(place, line, included=len(chain) > 1)
            else:
                self._line(path, place, line, chain)

    def _section(self, place: SourceLocation, line: str, *, included: bool) -> None:
        name, bracket, rest = line[1:].partition("]")
        if not bracket or rest.strip() or not 0 < len(name) <= _NAME_MAX or not name.isprintable():
            what = f"{shorten(line)}: not the name of a section"
            self._problems.error(place, what, f"write [name], with at most {_NAME_MAX} characters")
        elif included:
            what = f"{shorten(line)}: an included file has no sections of its own"
            self._problems.error(place, what, "put the section into the file that includes it")
            return
        is_global = name.startswith("global")
        if is_global and name != "global":
            what = f"[{shorten(name)}] is read as [global], as fio does: the name begins with global"
            self._problems.notice(place, what)
        self.sections.append(JobSection(place, name, is_global))

    def _line(self, path: Path, place: SourceLocation, line: str, chain: tuple[tuple[int, int], ...]) -> None:
        if not self.sections:
            self._problems.error(place, f"{shorten(line)}: outside of a section", _HINT)
            return
        if re.match(r"include[\s=]", line) or line == "include":
            self._include(path, place, line[len("include") :].lstrip(_BLANKS + "=").strip(_BLANKS), chain)
            return
        keyword, equals, value = line.partition("=")
        stripped = value.strip(_BLANKS)
        keyword = keyword.rstrip(_BLANKS)
        if not keyword or re.search(r"[^\w-]", keyword):
            self._problems.error(place, f"{shorten(line)}: not keyword=value", _HINT)
            return
        if equals and not stripped:
            self._problems.error(place, f"{shorten(line)}: no value", f"write {keyword}=VALUE")
            return
        filled = self._filled(place, stripped) if equals else None
        self.sections[-1].options.append(JobOption(place, keyword, filled))

    def _include(
        self, path: Path, place: SourceLocation, name: str, chain: tuple[tuple[int, int], ...]
    ) -> None:
        """The current folder first, then beside the including file, as in fio."""
        beside = path.parent / name
        found = next((one for one in (Path(name), beside) if name and one.is_file()), None)
        if found is None:
            what = f"include {shorten(name)}: no such file"
            self._problems.error(place, what, f"looked for {name} and {beside.absolute()}" if name else "")
            return
        identity = (found.stat().st_dev, found.stat().st_ino)
        if identity in chain:
            self._problems.error(place, f"include {shorten(name)}: the file includes itself", "end the loop")
            return
        self.read(found, str(found), chain)

    def _filled(self, place: SourceLocation, value: str) -> str:
        """The value with `${NAME}` replaced and the three words that stand for facts of the host."""

        def fill(match: re.Match[str]) -> str:
            name = match.group(1)
            given = self._substitutions.get(name, os.environ.get(name))
            if given is None:
                self._problems.error(
                    place,
                    f"${{{shorten(name)}}} has no value",
                    f"set it in the environment, or give {name}=VALUE after the file",
                )
                return ""
            self.used.add(name)
            return given

        return _host_facts(_VARIABLE.sub(fill, value))


def _host_facts(value: str) -> str:
    if "$" not in value:
        return value
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    facts = {
        "$pagesize": page_bytes,
        "$ncpus": os.cpu_count() or 1,
        "$mb_memory": os.sysconf("SC_PHYS_PAGES") * page_bytes >> 20,
    }
    for word, number in facts.items():
        value = value.replace(word, str(number))
    return value
