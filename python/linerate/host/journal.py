"""What was changed and what it was before: on disk before the change is made, so that a crash loses nothing.

A journal is a file of JSON lines (`linerate.host-journal/1`). Its head names the boot; a `change` line is on
the disk before the knob is turned, and names the network namespace in which that was; an `undone` line follows
when it was put back. A last line that a crash tore is no line. Settings of a kernel do not outlive it: after a
reboot, or when a namespace is gone, there is nothing left to put back.

A process that changes a host locks its network namespace until the journal is closed or the process ends,
whichever way it ends. The lock hangs on the namespace's own file: it needs no place of its own and never goes
stale.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from linerate.errors import HostError, UserError
from linerate.host.journal_index import forget, remember
from linerate.host.linux.knob import State
from linerate.host.target import HostTarget, open_namespace
from linerate.setting import Value

if TYPE_CHECKING:
    from pydantic import TypeAdapter

SCHEMA = "linerate.host-journal/1"


@dataclass(frozen=True, slots=True)
class HostChange:
    """A knob that was turned, or was about to be: whose, which, and what puts it back."""

    number: int
    target: HostTarget
    namespace: tuple[int, int]
    setting: str
    device: str
    before: Value
    """What it stood at."""
    state: State
    """What its knob needs to put everything back (`linerate.host.linux.knob`)."""
    wanted: Value
    """The value that was to be set."""
    since_boot_s: float = 0.0
    """When, on a clock that all journals of one boot share."""
    cookie: int = 0
    """Of the namespace: no later one has the same while the kernel runs. 0: not known."""


@dataclass(frozen=True, slots=True)
class _Head:
    """The journal was opened for writing, at this start of the kernel."""

    schema: str
    boot: str


@dataclass(frozen=True, slots=True)
class _Undone:
    number: int


@cache
def _change_reader() -> TypeAdapter[HostChange]:
    """Most journals hold no change to read, and pydantic takes long to import."""
    from pydantic import TypeAdapter

    return TypeAdapter(HostChange)


class HostJournal:
    """A journal that is being written. Closing it does not put anything back: `linerate.host.restore` does.

    Raises HostError when the file cannot be written, in time: nothing is changed that is not in it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.exists() and not path.is_file():
            raise UserError(f"{path}: not a regular file", "give the path of a journal of host settings")
        self._locks: dict[tuple[int, int], int] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = _opened(path)
        except OSError as error:
            raise _unwritable(path, error) from error
        try:
            self._pending = {change.number: change for change in read_journal(path)}
            self._next = max(self._pending, default=0) + 1
            self._begin()
        except BaseException:
            os.close(self._file)
            raise

    def _begin(self) -> None:
        try:
            _cut_torn_line(self._file)
            _sync_folder(self.path.parent)
        except OSError as error:
            raise _unwritable(self.path, error) from error
        self._write({"schema": SCHEMA, "boot": boot_id(), "at": _now()})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of the file and of the locks."""
        if not self._pending:
            forget(self.path)
        for lock in self._locks.values():
            os.close(lock)
        self._locks.clear()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    @property
    def pending(self) -> tuple[HostChange, ...]:
        """Changes that were not put back, the oldest first."""
        return tuple(self._pending.values())

    @property
    def mark(self) -> int:
        """This moment, for `restore(since=...)`."""
        return self._next - 1

    def lock(self, target: HostTarget) -> tuple[int, int]:
        """Claims the target for this journal; its identity. Raises HostError when another process changes it."""
        namespace = target.identity()
        if namespace not in self._locks:
            self._locks[namespace] = _locked(target)
        return namespace

    def record(self, change: HostChange) -> HostChange:
        """Puts a change on the disk, with the next number; to be called before the knob is turned."""
        now_s = time.clock_gettime(time.CLOCK_BOOTTIME)
        change = replace(change, number=self._next, since_boot_s=round(now_s, 6))
        line = asdict(change)
        self._write({"change": line.pop("number"), **line})
        if change.target.namespace is None and not self._pending:
            remember(self.path)
        self._pending[change.number] = change
        self._next += 1
        return change

    def undone(self, change: HostChange, *, why: str = "") -> None:
        """Notes that a change was put back, or that there is nothing left to put back and why.

        A full disk does not stop anybody from putting things back: the note is then missing, and putting back
        twice does no harm.
        """
        self._pending.pop(change.number, None)
        with contextlib.suppress(HostError):
            self._write({"undone": change.number, "why": why} if why else {"undone": change.number})

    def _write(self, line: dict[str, Any]) -> None:
        text = json.dumps(line, separators=(",", ":")) + "\n"
        try:
            _write_whole(self._file, text.encode())
            os.fdatasync(self._file)
        except OSError as error:
            raise _unwritable(self.path, error) from error


def _opened(path: Path) -> int:
    """The file, for this journal alone: no other process writes or removes it before it is closed."""
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.exists() and os.path.samestat(os.fstat(file), path.stat()):
                return file
        except BlockingIOError as error:
            os.close(file)
            raise HostError(
                f"{path}: another Linerate is changing settings under this journal", "wait for it, or end it"
            ) from error
        except BaseException:
            os.close(file)
            raise
        os.close(file)  # its last owner has removed it


def _write_whole(file: int, line: bytes) -> None:
    """Writes a line, or takes back the part of it that found room."""
    start = os.lseek(file, 0, os.SEEK_END)
    if (written := os.write(file, line)) < len(line):
        try:
            os.write(file, line[written:])
        except OSError:
            os.ftruncate(file, start)
            raise


def _cut_torn_line(file: int) -> None:
    """Drops what a crash left of a last line."""
    size = os.lseek(file, 0, os.SEEK_END)
    whole = os.pread(file, size, 0).rfind(b"\n") + 1
    if whole < size:
        os.ftruncate(file, whole)


def read_journal(path: Path) -> list[HostChange]:
    """Changes of a journal that were not put back, the oldest first.

    None when the kernel has started anew since. Raises UserError that names file and line when it is no journal.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}", "give the path of a journal of host settings") from error
    pending: dict[int, HostChange] = {}
    here = True
    for line in _lines(path, lines):
        match line:
            case _Head():
                here = line.boot == boot_id()
            case HostChange():
                if here:
                    pending[line.number] = line
            case _Undone():
                pending.pop(line.number, None)
    return list(pending.values())


def _lines(path: Path, lines: list[bytes]) -> Iterator[_Head | HostChange | _Undone]:
    """What each line says; the last one counts only when it is whole, which its end of line says."""
    for number, text in enumerate(lines[:-1], start=1):
        try:
            line = _parsed(json.loads(text))
        except ValueError as error:
            if number == 1:
                raise UserError(
                    f"{path}: no journal of host settings", "it begins with its schema"
                ) from error
            raise UserError(
                f"{path}:{number}: not a line of a journal",
                "mend that line, or delete it and put back by hand what it says; the other lines then hold",
            ) from error
        if isinstance(line, _Head) and line.schema != SCHEMA:
            raise UserError(f"{path}:{number}: {line.schema} is not {SCHEMA}", "use the same Linerate")
        if number == 1 and not isinstance(line, _Head):
            raise UserError(f"{path}: no journal of host settings", "it begins with its schema")
        yield line


def _parsed(entry: object) -> _Head | HostChange | _Undone:
    """Raises ValueError for what is none of them."""
    match entry:
        case {"schema": str(schema), "boot": str(boot)}:
            return _Head(schema, boot)
        case {"change": int(number), **fields}:
            return _change_reader().validate_python({**fields, "number": number})
        case {"undone": int(number)}:
            return _Undone(number)
    raise ValueError(entry)


def boot_id() -> str:
    """Names this start of the kernel."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _locked(target: HostTarget) -> int:
    lock = open_namespace(target)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        raise HostError(
            f"host {target.name}: another Linerate is changing its settings",
            "wait for it, or end it; its changes are put back by `linerate host restore`",
        ) from error
    return lock


def _sync_folder(folder: Path) -> None:
    """A new file is on the disk when its folder is."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _unwritable(path: Path, error: OSError) -> HostError:
    return HostError(
        f"{path}: {error.strerror}", "host settings are changed only while their journal can be written"
    )


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
