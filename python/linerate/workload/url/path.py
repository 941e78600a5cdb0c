"""Files and block devices as volumes."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from linerate.errors import UserError
from linerate.workload.url.target import TARGET_FORM, Target

_DEV = "/dev"
NO_DEVICE = "name a device that is there (lsblk lists them); no file is made in /dev"
"""The hint for a missing device."""


def parse_path(text: str, path: str, folder: Path | None) -> Target:
    """The file or block device at `path`, which may not exist yet. Raises UserError for a folder."""
    if not path or "\0" in path or "\n" in path:
        raise UserError(f"{text!r}: no path", f"write {TARGET_FORM}")
    base = os.path.abspath(folder or ".")
    full = os.path.normpath(os.path.join(base, os.path.expanduser(path)))
    mode = _mode(full)
    if stat.S_ISDIR(mode):
        raise UserError(f"{full}: a directory", "name a file in it; it is made if the volume has a size")
    is_block = stat.S_ISBLK(mode)
    return Target("block" if is_block else "file", f"file:{full}", is_raw=is_block)


def in_dev(path: str) -> bool:
    """Whether a path leads into /dev, also over links: no file is ever made there."""
    place = os.path.realpath(path)
    try:
        own = os.stat(os.path.dirname(place)).st_dev == os.stat(_DEV).st_dev
    except (OSError, ValueError):
        own = False
    return own or place.startswith(f"{_DEV}/")


def _mode(path: str) -> int:
    """The file's type bits, 0 if it does not exist."""
    try:
        return os.stat(path).st_mode
    except (OSError, ValueError):
        return 0
