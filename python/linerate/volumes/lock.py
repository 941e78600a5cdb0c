"""Block devices are held exclusively while a run writes to them, so that they cannot be mounted meanwhile."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable

from linerate.errors import UserError
from linerate.volumes.look import claimed


class VolumeLock:
    """Holds block devices until it is released; other paths are left alone."""

    def __init__(self, paths: Iterable[str]) -> None:
        """Raises UserError for a device that somebody has taken since it was looked at."""
        self._descriptors: list[int] = []
        try:
            for path in {os.path.realpath(path): path for path in paths}.values():
                self._take(path)
        except BaseException:
            self.release()
            raise

    def _take(self, path: str) -> None:
        try:
            if stat.S_ISBLK(os.stat(path).st_mode):
                self._descriptors.append(claimed(path))
        except OSError as error:
            if error.errno == errno.EBUSY:
                raise UserError(
                    f"{path} was taken by a program or mounted just now",
                    "end that use, or name another device",
                ) from error
            # What cannot be opened at all is told by the run, which opens it next.

    def release(self) -> None:
        """Lets them go. Twice is once."""
        descriptors, self._descriptors = self._descriptors, []
        for descriptor in descriptors:
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def __del__(self) -> None:
        self.release()
