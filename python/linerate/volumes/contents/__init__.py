"""What is on a volume, told from the bytes at its two ends. Pure: bytes in, names out.

`magic` is the table of marks at fixed places, `tables` reads partition tables, `members` what needs a little more than
a comparison: file systems with weak marks, and metadata whose place depends on the size of the device.
"""

from __future__ import annotations

from dataclasses import dataclass

from linerate.volumes.contents.ends import END_BYTES, VolumeEnds
from linerate.volumes.contents.magic import marks
from linerate.volumes.contents.members import members
from linerate.volumes.contents.tables import partition_tables

__all__ = ["END_BYTES", "Contents", "VolumeEnds", "contents_of"]


@dataclass(frozen=True, slots=True)
class Contents:
    """What was recognised. Nothing: `blank` says whether there are only zeros."""

    names: tuple[str, ...]
    blank: bool


def contents_of(ends: VolumeEnds) -> Contents:
    """Everything that is recognised, partition tables first, each name once."""
    found = [*partition_tables(ends), *marks(ends), *members(ends)]
    blank = not found and not any(part.strip(b"\0") for part in (ends.first, ends.last))
    return Contents(tuple(dict.fromkeys(found)), blank)
