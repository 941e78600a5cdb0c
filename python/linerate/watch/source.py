"""What is watched: a run directory, a study directory, or a directory that is still to come; with its SAN.

Every source is polled for what is new. It reads and never writes, and it holds nothing that a run waits for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

from linerate.errors import UserError
from linerate.results.files import MANIFEST
from linerate.study.directory import RUNS, STUDY
from linerate.watch.feed import Update, clear
from linerate.watch.run import RunSource
from linerate.watch.san import StudySan
from linerate.watch.study import StudySource


class Source(Protocol):
    """Something that is watched."""

    def poll(self) -> Iterable[Update]:
        """What is new since the last call. Raises LinerateError for what cannot be read now."""

    def close(self) -> None:
        """Lets go of its files."""


class DirectorySource:
    """A run directory or a study directory, from the moment that it is there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found: RunSource | StudySource | None = None
        self._san: StudySan | None = None
        self._has_told = False

    def poll(self) -> Iterator[Update]:
        """What is new in the directory, or that it is waited for."""
        if self.found is None:
            self.found = _opened(self.path)
            if self.found is None:
                if not self._has_told:
                    self._has_told = True
                    yield Update("waiting", {"directory": str(self.path)}, "waiting")
                return
            yield clear(["waiting"])
            study = _study_of(self.path)
            self._san = StudySan(study) if study is not None else None
        yield from self.found.poll()
        run = self.found.run if isinstance(self.found, StudySource) else self.found
        if self._san is not None and run is not None:
            yield from self._san.poll(run, is_over=self.found.is_over)

    def close(self) -> None:
        """Lets go of the directory's files, and of its lab."""
        if self._san is not None:
            self._san.close()
        if self.found is not None:
            self.found.close()


def _opened(path: Path) -> RunSource | StudySource | None:
    if (path / STUDY).exists():
        return StudySource(path)
    return RunSource(path) if (path / MANIFEST).exists() else None


def _study_of(path: Path) -> Path | None:
    """The directory of the study that a directory is, or a run of."""
    folders = [path, *([path.absolute().parents[1]] if path.absolute().parent.name == RUNS else [])]
    return next((folder for folder in folders if (folder / STUDY).exists()), None)


def directory_to_watch(path: Path | None, runs: Path, *, wait: bool) -> Path:
    """The directory that was asked for; without one, the newest below `runs`. Raises UserError where there is none.

    To `wait` for a directory it must be named.
    """
    if path is None:
        if wait:
            raise UserError("--wait: which directory?", "name it, as --output of `linerate run` will name it")
        found = [one.parent for name in (MANIFEST, STUDY) for one in runs.glob(f"*/{name}")]
        if not found:
            raise UserError(f"there is no run and no study in {runs}", "name a directory")
        return max(found, key=lambda one: one.stat().st_mtime)
    if not wait and _opened_kind(path) is None:
        raise UserError(
            f"{path} is neither a run directory nor a study directory",
            "name a directory that `linerate run` wrote; --wait waits until it is there",
        )
    return path


def _opened_kind(path: Path) -> str | None:
    return next((name for name in (STUDY, MANIFEST) if (path / name).exists()), None)
