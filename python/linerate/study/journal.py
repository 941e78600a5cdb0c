"""The journal of a study: one JSON line for everything that has happened, on disk before anything follows from it.

A last line that a crash tore is dropped when the journal is opened for writing again; its step is done again.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, TypeAdapter

from linerate.errors import HostError, UserError, is_full_disk, quote
from linerate.model import Model
from linerate.results.manifest import Stamp
from linerate.scale import Reached

StepState = Literal["complete", "failed", "void"]


def _now() -> datetime:
    return datetime.now(UTC)


class _Entry(Model):
    model_config = ConfigDict(extra="ignore")

    at: datetime = Field(default_factory=_now)


class SessionBegan(_Entry):
    """The study was started, or resumed."""

    type: Literal["began"] = "began"
    resumed: bool = False


class SanFacts(_Entry):
    """A SAN was brought up: what carries it and the defaults in force."""

    type: Literal["san"] = "san"
    san: str
    facts: dict[str, Any]
    lacking: dict[str, str] = Field(default_factory=dict)
    """Settings of the baseline that cannot be had on it, and why."""


class WarmUpFound(_Entry):
    """How long a workload is warmed up from here on: until the baseline was steady, or the most that was allowed."""

    type: Literal["warm_up"] = "warm_up"
    workload: str
    seconds: float
    steady: bool
    directory: str


class CaseSkipped(_Entry):
    """A case that could not be had on this SAN in this block: which setting, and why."""

    type: Literal["not_applicable"] = "not_applicable"
    block: int = 1
    san: str
    case: str
    reason: str


class StepDone(_Entry):
    """A step is over. `void`: it ran, but its figures are not to be believed, and it may be run again."""

    type: Literal["step"] = "step"
    key: str
    block: int
    position: int
    san: str
    case: str
    workload: str
    replica: int
    directory: str
    """Of the run, below the study directory."""
    state: StepState
    reason: str = ""
    stamp: Stamp | None = None
    values: dict[str, float] = Field(default_factory=dict)
    """Figures of the run, as the judgement takes them."""


class LoadMeasured(_Entry):
    """A run of a search: one load of the step `key`. `void`: its figures do not count, and the load is run again."""

    type: Literal["load"] = "load"
    key: str
    san: str
    case: str
    workload: str
    state: Literal["complete", "void"]
    reason: str = ""
    reached: Reached
    """Its directory is below the study directory."""
    values: dict[str, float] = Field(default_factory=dict)
    """Figures of the run."""


class BlocksAdded(_Entry):
    """More blocks than planned were asked for, when so many had been measured and could be judged."""

    type: Literal["blocks"] = "blocks"
    blocks: int = Field(ge=1)
    """In all, from here on."""
    measured: int


class SessionEnded(_Entry):
    """The study has come to its end, or was left. `incomplete`: to its end, but runs are missing."""

    type: Literal["ended"] = "ended"
    state: Literal["complete", "incomplete", "failed", "interrupted"]
    reason: str = ""


Entry = Annotated[
    SessionBegan
    | SanFacts
    | WarmUpFound
    | CaseSkipped
    | StepDone
    | LoadMeasured
    | BlocksAdded
    | SessionEnded,
    Field(discriminator="type"),
]
_ENTRY: TypeAdapter[Entry] = TypeAdapter(Entry)


def read_journal(path: Path) -> tuple[Entry, ...]:
    """All whole lines. Raises UserError for a line that is no entry and not the last one: that one was torn."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return ()
    return tuple(_entries(path, data[: _whole(data)].splitlines()))


def _entries(path: Path, lines: list[bytes]) -> Iterator[Entry]:
    for number, line in enumerate(lines, start=1):
        try:
            yield _ENTRY.validate_json(line)
        except ValueError as error:
            raise UserError(
                f"{path}:{number}: no entry of a study's journal",
                "take the study directory from a backup, or begin a new study",
            ) from error


def _whole(data: bytes) -> int:
    """Where the whole lines end. After a power cut the last line may be there at its length, but not in its content."""
    end = data.rfind(b"\n") + 1
    last = data[data.rfind(b"\n", 0, max(end - 1, 0)) + 1 : end]
    try:
        _ENTRY.validate_json(last)
    except ValueError:
        return end - len(last)
    return end


class StudyJournal:
    """A journal that is open for writing; one process at a time has it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._file)
            raise UserError(
                f"{path.parent} is being run by another process", "wait for it, or stop it"
            ) from error
        self._drop_torn_line()

    def add(self, entry: Entry) -> None:
        """Appends, and returns when it is on disk. Raises HostError when the disk is full; nothing is then torn."""
        line = entry.model_dump_json().encode() + b"\n"
        end = os.lseek(self._file, 0, os.SEEK_END)
        try:
            written = 0
            while written < len(line):
                written += os.write(self._file, line[written:])
            os.fsync(self._file)
        except OSError as error:
            os.ftruncate(self._file, end)
            raise disk_error(self._path, error) from error

    def _drop_torn_line(self) -> None:
        os.ftruncate(self._file, _whole(self._path.read_bytes()))

    def __enter__(self) -> Self:
        """Nothing to do: it is open."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Lets others have it."""
        os.close(self._file)


def disk_error(path: Path, error: OSError) -> HostError:
    """What a failed write means to the user."""
    if is_full_disk(error):
        return HostError(
            f"{path.parent}: no space left on the disk",
            f"make room, then go on with: linerate study resume {quote(path.parent)}",
        )
    return HostError(f"{path}: {error.strerror}", "see that the directory can be written")


def is_being_run(path: Path) -> bool:
    """Whether some process has the journal open for writing."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False
