"""Finds the run and study directories of a folder and reads those that changed since the last call."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from linerate.errors import LinerateError, UserError
from linerate.history.index import load_index, save_index
from linerate.history.model import Recorded
from linerate.history.record import STUDY_FILE, read_run, read_study, signature_of
from linerate.results import files

_UNREADABLE = (OSError, ValueError, LookupError, TypeError, ArithmeticError, pl.exceptions.PolarsError)
"""What readers raise on files of any content."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """What a folder holds, by path; `read` directories were not in the index. `saved`: the index is up to date."""

    entries: tuple[Recorded, ...]
    read: int
    saved: bool


def gather(folder: Path) -> Gathered:
    """Everything below a folder. A directory that cannot be read is an entry with the reason.

    Raises UserError when the folder is none, or is itself a run or a study.
    """
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder", "give the folder that holds your runs")
    if _is_study(folder) or _is_run(folder):
        raise UserError(f"{folder} is a single result", "give the folder above it")
    known = load_index(folder)
    entries: list[Recorded] = []
    read = 0
    for directory in _directories(folder, entries):
        path = directory.relative_to(folder).as_posix()
        study = _is_study(directory)
        entry = known.get(path)
        if entry is None or entry.signature != signature_of(directory, study=study):
            entry = _read(directory, path, study=study)
            read += 1
        entries.append(entry)
    current = tuple(entries)
    same = {entry.path for entry in current if entry.signature} == set(known)
    stale = any(known.get(entry.path) is not entry for entry in current if entry.signature)
    saved = save_index(folder, current) if stale or not same else True
    return Gathered(current, read, saved)


def _read(directory: Path, path: str, *, study: bool) -> Recorded:
    try:
        return read_study(directory, path) if study else read_run(directory, path)
    except LinerateError as error:
        reason = error.message
    except _UNREADABLE as error:
        reason = f"cannot be read: {type(error).__name__}: {error}"
    return Recorded(path, signature_of(directory, study=study), left_out=" ".join(reason.split()))


def _directories(folder: Path, unreadable: list[Recorded]) -> Iterator[Path]:
    """In order of name. The runs inside a study are the study's; links and hidden folders are not followed.

    A folder that cannot be listed is added to `unreadable`.
    """

    def note(error: OSError) -> None:
        path = Path(error.filename).relative_to(folder).as_posix()
        unreadable.append(Recorded(path, "", left_out=f"cannot be listed: {error.strerror}"))

    for place, names, _ in os.walk(folder, onerror=note):
        directory = Path(place)
        if directory != folder and (_is_study(directory) or _is_run(directory)):
            names.clear()
            yield directory
        else:
            names[:] = sorted(name for name in names if not name.startswith("."))


def _is_run(directory: Path) -> bool:
    return os.path.lexists(directory / files.MANIFEST)


def _is_study(directory: Path) -> bool:
    return os.path.lexists(directory / STUDY_FILE)
