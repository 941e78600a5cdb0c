"""The lines of a trace, plain or compressed with gzip, one at a time."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable, Iterator
from io import BufferedReader
from pathlib import Path

from linerate.errors import HostError, UserError

GZIP = b"\x1f\x8b"
Tell = Callable[[float], None]
"""Hears the share of a file that was read, 0 to 1."""
_TOLD_EVERY = 50_000
"""Lines."""
LINE_BYTES_MAX = 65_536
"""A longer line is no line of a trace."""


def head_of(path: Path, size_bytes: int) -> bytes:
    """The first bytes of a file, decompressed. Raises OSError; what cannot be decompressed is given as it is."""
    with path.open("rb") as file:
        head = file.read(size_bytes)
    if not head.startswith(GZIP):
        return head
    try:
        return zlib.decompressobj(wbits=31).decompress(head, size_bytes)
    except zlib.error:
        return head


def lines_of(path: Path, tell: Tell | None = None) -> Iterator[tuple[int, str]]:
    """Numbers, from 1, and texts of all lines that are not empty, without blanks around them. `tell` hears now and then
    how much of the file was read.

    Raises UserError for a line that is too long, for text that is not UTF-8 and for a damaged archive, and HostError
    for a file that cannot be read.
    """
    number = 0
    try:
        with path.open("rb") as stored, _unpacked(stored) as file:
            size_bytes = max(os.fstat(stored.fileno()).st_size, 1)
            while raw := file.readline(LINE_BYTES_MAX + 1):
                number += 1
                if tell is not None and number % _TOLD_EVERY == 0:
                    tell(min(stored.tell() / size_bytes, 1.0))
                if len(raw) > LINE_BYTES_MAX:
                    what = f"{path}:{number}: a line of more than {LINE_BYTES_MAX:,} bytes"
                    raise UserError(what, "a trace has one I/O on each line")
                text = raw.decode("utf-8-sig" if number == 1 else "utf-8").strip()
                if text:
                    yield number, text
    except UnicodeDecodeError as error:
        what = f"{path}:{number}: byte {error.object[error.start]:#04x} is not UTF-8"
        raise UserError(what, "save the trace as UTF-8 or ASCII text") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        what = f"{path}: the archive is damaged or cut off after line {number}"
        raise UserError(what, "get the file again; `gzip -t` checks it") from error
    except OSError as error:
        raise HostError(
            f"{path}: cannot be read: {error.strerror}", "check the disk, and who may read it"
        ) from error


def _unpacked(stored: BufferedReader) -> BufferedReader | gzip.GzipFile:
    is_packed = stored.peek(len(GZIP)).startswith(GZIP)
    return gzip.GzipFile(fileobj=stored, mode="rb") if is_packed else stored
