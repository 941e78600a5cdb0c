"""Reads files to which another process appends, without asking anything of that process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO


class GrowingFile:
    """The lines of a file as they are completed.

    The file stays open, so that its end is read also after it was removed. A last line that is torn stays unread.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None
        self._torn = b""

    @property
    def is_open(self) -> bool:
        """The file was there once."""
        return self._file is not None

    def lines(self) -> Iterator[str]:
        """The lines that were completed since the last call. None while there is no file yet. Raises OSError."""
        if self._file is None:
            try:
                self._file = self._path.open("rb")
            except FileNotFoundError:
                return
        for line in self._file:
            whole = self._torn + line
            if not whole.endswith(b"\n"):
                self._torn = whole
                return
            self._torn = b""
            yield whole.decode("utf-8", errors="replace")

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()


class ChangedFile:
    """Tells whether a file that is replaced as a whole, or appended to, is another one than at the last look."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None

    def changed(self) -> bool:
        """True at the first look at a file, and after each change. False while there is no file."""
        try:
            found = self._path.stat()
        except OSError:
            return False
        now = (found.st_ino, found.st_size, found.st_mtime_ns)
        is_new = now != self._seen
        self._seen = now
        return is_new
