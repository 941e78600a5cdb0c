"""Which tool wrote a file, told from its content, and the reader for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from linerate.errors import UserError
from linerate.imported.diskspd import is_diskspd, read_diskspd
from linerate.imported.fio import is_fio, read_fio
from linerate.imported.iometer import is_iometer, read_iometer
from linerate.imported.record import ToolRun
from linerate.imported.text import FIGURE_MAX, SourceText, read_source, shown
from linerate.imported.vdbench import is_vdbench, read_vdbench


@dataclass(frozen=True, slots=True)
class ResultFormat:
    """A kind of file: what it is called, whether a text is one, and its reader."""

    title: str
    fits: Callable[[str], bool]
    read: Callable[[SourceText], ToolRun]


KINDS: Mapping[str, ResultFormat] = {
    "fio": ResultFormat("fio's JSON", is_fio, read_fio),
    "vdbench": ResultFormat("vdbench's flatfile.html", is_vdbench, read_vdbench),
    "iometer": ResultFormat("Iometer's CSV", is_iometer, read_iometer),
    "diskspd": ResultFormat("diskspd's XML", is_diskspd, read_diskspd),
}
_NOT_READ = (
    ("Command Line: ", "Input parameters:", "a text result of diskspd", "run diskspd with -Rxml"),
    ("groupid=", "Run status group", "a text result of fio", "run fio with --output-format=json"),
)
"""Two marks of a file that is known and not read, what it is, and the way out."""


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file that was read."""

    source: SourceText
    kind: ResultFormat
    run: ToolRun


def read_file(path: Path, kind: str | None = None) -> ReadFile:
    """Read a result file of another tool; `kind` is one of `KINDS`, or None to tell it from the content.

    Raises UserError, with file and line, if it cannot be read.
    """
    source = read_source(path)
    found = KINDS[kind] if kind is not None else _recognised(source)
    if kind is not None and not found.fits(source.text):
        raise source.refuse(0, f"this is not {found.title}", "leave --as out, or name another file")
    run = found.read(source)
    for step in run.steps:
        total = step.given.total
        if max(total.ios, total.bytes, step.given.seconds) > FIGURE_MAX:
            raise source.refuse(
                0, f"{shown(step.name)}: its counts are too large", "give the file as the tool wrote it"
            )
    return ReadFile(source, found, run)


def _recognised(source: SourceText) -> ResultFormat:
    for kind in KINDS.values():
        if kind.fits(source.text):
            return kind
    for first, second, what, hint in _NOT_READ:
        if first in source.text and second in source.text:
            raise UserError(f"{source.path}: {what}, which is not read", hint)
    known = ", ".join(kind.title for kind in KINDS.values())
    raise UserError(f"{source.path}: not a result file that can be imported", f"these can: {known}")
