"""Looks at the anchor of a structure of files before anything in it is made, written or removed.

A run touches only names that a structure has (`vdb.1_1.dir`, `vdb_f0001.file`, `vdb_control.file`), and the data plane
removes nothing else. The user is asked before a structure is changed, and told of other names in the anchor: it may be
the wrong folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Literal

_FOLDER = re.compile(r"vdb\.\d+_\d+\.dir", re.ASCII)
_FILE = re.compile(r"vdb_f\d+(\.\d+)?\.file|vdb_control\.file|no_dismount\.txt", re.ASCII)
_SHOWN = 3


Kind = Literal["file", "folder", "other"]


def strangers(anchor: str) -> tuple[int, list[str]]:
    """Names in an anchor: how many a structure has, and the others. A missing folder has none. Raises OSError."""
    try:
        with os.scandir(anchor) as entries:
            return sorted_out((entry.name, _kind(entry)) for entry in entries)
    except FileNotFoundError:
        return 0, []


def sorted_out(names: Iterable[tuple[str, Kind]]) -> tuple[int, list[str]]:
    """How many of the names a structure has, and the others."""
    known, others = 0, []
    for name, kind in names:
        if (kind == "folder" and _FOLDER.fullmatch(name)) or (kind == "file" and _FILE.fullmatch(name)):
            known += 1
        else:
            others.append(name)
    return known, sorted(others)


def _kind(entry: os.DirEntry[str]) -> Kind:
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


def others_in_words(others: list[str]) -> str:
    """The names that no structure has, for a user."""
    shown = ", ".join(others[:_SHOWN])
    more = f" and {len(others) - _SHOWN:,} more" if len(others) > _SHOWN else ""
    return f"holds {shown}{more}, which no structure of vdbench has; they stay as they are"
