"""Files that the user names for output: an existing one is replaced only with consent."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import typer

from linerate.errors import HostError, UserError
from linerate.results.files import write_atomically


def consent_to_replace(
    paths: Iterable[Path], overwrite: bool, *, how: str = "add --overwrite", asks: bool = True
) -> None:
    """Return when every path is free, or may be replaced by `--overwrite` or by a yes on the terminal.

    how: what a user adds to the command line to replace them. asks: the terminal may be asked. Raises UserError
    otherwise. Nothing is written or removed here.
    """
    taken = [path for path in paths if path.exists()]
    for path in taken:
        if not path.is_file():
            raise UserError(f"{path} is not a file", "name another file")
    if not taken or overwrite:
        return
    names = ", ".join(map(str, taken))
    if not (asks and sys.stdin.isatty() and sys.stderr.isatty()):
        raise UserError(f"{names}: exists already", f"{how} to replace, or name another place")
    if not typer.confirm(f"{names}: exists already. Replace?", err=True):
        raise UserError(f"{names}: not replaced", "name another place")


def write_file(path: Path, data: bytes) -> None:
    """Write a file as a whole, with the folders above it. Raises HostError when that fails."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, data)
    except OSError as error:
        raise HostError(f"{path}: {error.strerror}", "make room, or name another place") from error
