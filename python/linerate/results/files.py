"""Names of the files in a run directory, and the few ways of writing them that survive a crash."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from pathlib import Path
from typing import IO, Protocol, Self, TypeVar

from pydantic import ValidationError

from linerate.errors import HostError, UserError, is_full_disk
from linerate.model import Model
from linerate.results.manifest import FileRecord, Manifest

MANIFEST = "manifest.json"
INTERVALS = "intervals.parquet"
USAGE = "usage.parquet"
PATHS = "paths.parquet"
ARRAYS = "array.parquet"
LATENCY = "latency.hlog"
EVENTS = "events.jsonl"
REPORT = "report.html"
SPOOL = "intervals.spool"

OTHER_PLACE = "make room there and see that it can be written, or name another place"

DATA_FILES = (INTERVALS, USAGE, LATENCY, EVENTS)
"""The files that `close` seals with a checksum; `PATHS` too if a volume had several paths, `ARRAYS` if the
arrays' disks were watched. The report is not among them: it can be made again."""


def write_atomically(path: Path, data: bytes) -> None:
    """Replace `path` as a whole: readers see the old bytes or the new ones, also after a power cut.

    Nothing is left beside it when that fails. Raises OSError.
    """
    fresh = path.with_name(path.name + ".new")
    with fresh.open("wb") as file:
        try:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            fresh.replace(path)
        except OSError:
            fresh.unlink(missing_ok=True)
            raise


def write_result(path: Path, data: bytes) -> None:
    """Write a file that the user asked for as a whole, with the folders above it. Raises HostError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, data)
    except OSError as error:
        raise HostError(f"{path}: {error.strerror}", OTHER_PLACE) from error


class _Versioned(Protocol):
    """A record whose file says which format it has."""

    @property
    def format_version(self) -> int: ...

    @classmethod
    def model_validate_json(cls, json_data: bytes, /) -> Self: ...


_Record = TypeVar("_Record", bound=_Versioned)


def write_record(path: Path, record: Model) -> None:
    """Replace the file of a record. Raises HostError when it cannot be written."""
    try:
        write_atomically(path, record.model_dump_json(indent=1).encode() + b"\n")
    except OSError as error:
        if is_full_disk(error):
            what = f"{path}: no space left on the disk"
            raise HostError(what, "make room there, or write elsewhere (--output)") from error
        raise HostError(f"{path}: {error.strerror}", "see that the directory can be written") from error


def open_record(kind: type[_Record], path: Path, newest: int, wanted: str) -> _Record:
    """Read a record of a format up to `newest`. `wanted` says what to give if the file cannot be read.

    Raises UserError for a file that cannot be read, a damaged one, and one of a newer format.
    """
    try:
        record = kind.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}", wanted) from error
    except ValidationError as error:
        raise UserError(f"{path}: {error.errors()[0]['msg']}", "take it from a backup") from error
    if record.format_version > newest:
        raise UserError(
            f"{path} has format {record.format_version}; this version reads up to {newest}",
            "read it with the Linerate that wrote it, or a newer one",
        )
    return record


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Replace the manifest of a run directory."""
    write_atomically(directory / MANIFEST, manifest.model_dump_json(indent=2).encode() + b"\n")


def remove_unwritten(directory: Path) -> None:
    """Remove a run directory whose first manifest could not be written: it holds nothing."""
    for name in (SPOOL, EVENTS, LATENCY, MANIFEST + ".new"):
        (directory / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        directory.rmdir()


def lock_for_writing(spool: IO[str]) -> None:
    """Mark the spool as being written for as long as this process keeps it open;

    the kernel forgets it when we die.
    """
    fcntl.flock(spool, fcntl.LOCK_EX | fcntl.LOCK_NB)


def is_being_written(directory: Path) -> bool:
    """Whether some process holds the spool of a run directory."""
    try:
        with (directory / SPOOL).open("rb") as spool:
            fcntl.flock(spool, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def record_of(path: Path) -> FileRecord:
    """Size and SHA-256 of a file."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
    return FileRecord(bytes=path.stat().st_size, sha256=digest.hexdigest())


def seal(path: Path) -> None:
    """Take write permission away from everybody, as a word to people; the checksums are the proof."""
    path.chmod(path.stat().st_mode & ~0o222)
