"""One study at a time: two laboratories that measure on one machine take each other's CPUs, and both results are wrong.

A study on a virtual SAN holds the lock alone. Labs that are brought up by hand, and runs inside them, share it: several
of them may be busy, but none beside a study. A lab that is up and idle costs nothing and holds nothing.

The lock is an advisory one (flock) on a file that all users of the machine share. The kernel drops it when its holder
ends, for any reason. The file says who holds it; it stays when the lock is free.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from linerate.errors import HostError
from linerate.node import inside_lab

VARIABLE = "LINERATE_LAB_LOCK"
"""Names another file: for containers that share a machine, and for tests."""
_NAME = "linerate-lab.lock"
_FOLDERS = (Path("/run/lock"), Path("/tmp"))
"""The first one in which every user may make files; the choice must not depend on the user."""
_SHARED_FOLDER = stat.S_ISVTX | stat.S_IWOTH


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds the lock."""

    pid: int
    verb: str
    """What it does, as a command line: `linerate run nic-tuning`."""
    since: str
    """Local time."""
    directory: str
    """Where its results go, or where it was started."""
    inside: bool = False
    """It runs inside a lab."""

    def __str__(self) -> str:
        place = "a process inside a lab" if self.inside else f"process {self.pid}"
        return f"{self.verb} ({place}, since {self.since}, in {self.directory})"


@contextmanager
def machine_lock(
    verb: str, directory: Path, *, alone: bool, wait: bool = False, tell: Callable[[str], None] | None = None
) -> Iterator[None]:
    """Holds the machine for a laboratory; `alone`: no other one may be busy meanwhile.

    With `wait` it waits for the others and says so by `tell` first. Raises HostError where they are busy and it does
    not wait, or where the file cannot be opened.
    """
    path = lock_file()
    file = _opened(path)
    try:
        kind = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
        if not _taken(file, kind):
            busy = f"this machine is busy with {_holder(file)}"
            if not wait:
                raise HostError(
                    f"{busy}; two measurements at a time would disturb each other",
                    "wait until it has ended: --wait does so; or end it",
                )
            if tell is not None:
                tell(f"{busy}; waiting until it has ended (Ctrl-C gives up)")
            fcntl.flock(file, kind)
        _write(file, Holder(os.getpid(), verb, _now(), str(directory.absolute()), inside_lab()))
        yield
    finally:
        os.close(file)


def lock_file() -> Path:
    """Where the lock is on this machine."""
    if named := os.environ.get(VARIABLE):
        return Path(named)
    for folder in _FOLDERS:
        with suppress(OSError):
            if folder.stat().st_mode & _SHARED_FOLDER == _SHARED_FOLDER:
                return folder / _NAME
    return _FOLDERS[-1] / _NAME


def _opened(path: Path) -> int:
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        # In a folder that all users share, the kernel refuses O_CREAT on a file of another user, even to root.
        with suppress(FileNotFoundError):
            return _regular(os.open(path, flags), path)
        try:
            file = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            return _regular(os.open(path, flags), path)
        os.fchmod(file, 0o666)  # the umask may forbid it, but other users take this lock, too
        return file
    except OSError as error:
        raise HostError(
            f"{path}: {error.strerror}: the lock of this machine's laboratories cannot be opened",
            f"let all users write this file, or name another one in {VARIABLE}",
        ) from error


def _regular(file: int, path: Path) -> int:
    """A name in a folder for all users may be anything."""
    found = os.fstat(file)
    if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
        return file
    os.close(file)
    raise HostError(f"{path} is not a plain file", f"remove it, or name another one in {VARIABLE}")


def _taken(file: int, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(file: int) -> str:
    """Who wrote the file last, if it still runs: of several that share the lock it may be any."""
    try:
        holder = Holder(**json.loads(os.pread(file, 1 << 16, 0)))
    except (ValueError, TypeError):
        return "another laboratory"
    cannot_tell = holder.inside or inside_lab()  # a lab has process numbers of its own
    is_there = cannot_tell or os.path.exists(f"/proc/{holder.pid}")
    return str(holder) if is_there else "another laboratory"


def _write(file: int, holder: Holder) -> None:
    text = json.dumps(asdict(holder)).encode() + b"\n"
    with suppress(OSError):  # a full disk: the lock holds all the same
        os.ftruncate(file, 0)
        os.pwrite(file, text, 0)


def _now() -> str:
    return f"{datetime.now():%Y-%m-%d %H:%M:%S}"
