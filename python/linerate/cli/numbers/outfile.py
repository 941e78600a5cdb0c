"""Files that the user names for output: an existing one is replaced only with consent."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import typer

from linerate.errors import UserError


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
    if taken and not overwrite:
        _ask(", ".join(map(str, taken)), "exists already", how, asks)


def consent_to_fill(
    directory: Path, overwrite: bool, *, how: str = "add --overwrite", asks: bool = True
) -> None:
    """Return when a folder is empty or not there, or when its files may be replaced as in `consent_to_replace`.

    Raises UserError otherwise, or when it is not a folder.
    """
    if not directory.exists():
        return
    if not directory.is_dir():
        raise UserError(f"{directory} is not a folder", "name another folder")
    if not overwrite and any(directory.iterdir()):
        _ask(str(directory), "the folder is not empty", how, asks)


def _ask(names: str, state: str, how: str, asks: bool) -> None:
    if not (asks and sys.stdin.isatty() and sys.stderr.isatty()):
        raise UserError(f"{names}: {state}", f"{how} to replace, or name another place")
    if not typer.confirm(f"{names}: {state}. Replace?", err=True):
        raise UserError(f"{names}: not replaced", "name another place")


def write_file(path: Path, data: bytes) -> None:
    """Write a file as a whole, with the folders above it. Raises HostError when that fails."""
    # Results start threads. A process with threads cannot enter a lab, and verbs of labs ask for consent here.
    from linerate.results.files import write_result

    write_result(path, data)
