"""The text of a file, its encoding, and numbers in it. Errors name the file and the line."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from linerate.errors import UserError, printable
from linerate.workload.text import read_content, text_of

FILE_BYTES_MAX = 256 << 20
LINE_CHARACTERS_MAX = 1 << 20
"""Of a file that is read line by line."""
FIGURE_MAX = 1e18
"""No count, size or time of a run is larger; 64 bits hold it."""
_SHOWN_MAX = 40
_NUMBER = re.compile(r"\d{1,40}(?:\.\d{0,40})?(?:[eE][+-]?\d{1,3})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class SourceText:
    """A file that was read. `sha256` is of its bytes, `text` has lines that end in a newline only."""

    path: Path
    sha256: str
    text: str

    def refuse(self, line: int, what: str, hint: str) -> UserError:
        """The error for what is wrong in a line; line 0 is the file as a whole."""
        place = f"{self.path}:{line}" if line else str(self.path)
        return UserError(f"{place}: {what}", hint)

    def lines(self) -> Iterator[tuple[int, str]]:
        """Numbers, from 1, and lines. Raises UserError for a line that no tool writes."""
        for number, line in enumerate(self.text.split("\n"), start=1):
            if len(line) > LINE_CHARACTERS_MAX:
                raise self.refuse(
                    number,
                    f"a line of {len(line):,} characters",
                    f"a line has at most {LINE_CHARACTERS_MAX:,}",
                )
            yield number, line

    def line_at(self, position: int) -> int:
        """The number of the line of a character."""
        return self.text.count("\n", 0, position) + 1

    def figure(self, line: int, name: str, text: str) -> float:
        """A number that is not negative. Raises UserError for another text."""
        written = text.strip()
        if not _NUMBER.fullmatch(written) or not math.isfinite(value := float(written)):
            what = (
                "is negative"
                if written.startswith("-") and _NUMBER.fullmatch(written[1:])
                else "is no number"
            )
            raise self.refuse(line, f"{name}: {shown(written)} {what}", "give the file as the tool wrote it")
        if value > FIGURE_MAX:
            raise self.refuse(
                line, f"{name}: {shown(written)} is too large", "give the file as the tool wrote it"
            )
        return value

    def whole(self, line: int, name: str, text: str) -> int:
        """A count."""
        value = self.figure(line, name, text)
        if value != int(value):
            raise self.refuse(
                line, f"{name}: {shown(text)} is no whole number", "give the file as the tool wrote it"
            )
        return int(text) if text.strip().isdecimal() else int(value)


def shown(text: str) -> str:
    """A text in an error: short, and in one line."""
    short = text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."
    return repr(short) if short else "an empty text"


def one_line(text: str) -> str:
    """A name or a value from a file, in one line, without what terminals obey and files cannot hold."""
    return printable(" ".join(text.split()))


def read_source(path: Path) -> SourceText:
    """Read a file: UTF-8, UTF-16 with its mark (a redirect of PowerShell), or ANSI.

    Raises UserError if it cannot be read, is no text, or is larger than 256 MiB.
    """
    unreadable = "name a result file that can be read"
    too_large = "import the summary of the tool, not its logs"
    content = read_content(path, FILE_BYTES_MAX, unreadable=unreadable, too_large=too_large)
    text = text_of(path, content)
    if not text.strip():
        raise UserError(f"{path}: the file is empty", "did the tool end before it wrote its results?")
    return SourceText(path, hashlib.sha256(content).hexdigest(), text)
