"""The storage of an array whose volumes are not plain memory: disks in RAID sets. Pure data.

An array is given as many alike RAID sets as `sets` says, each of the same number of disks, its hot spares included. Of
what the disks hold, `usable_bytes` says by arithmetic how much is left for volumes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, get_args

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from linerate.array.storage import CHUNK_MAX_BYTES, CHUNK_MIN_BYTES, Level, level_fault
from linerate.quantity import size_text
from linerate.workload.spec import FrozenSpec

RAID_LEVELS: tuple[Level, ...] = get_args(Level)
DiskSector = Literal[512, 4096]
Backing = Literal["raid", "pool"]
"""Whose the volumes are: each a RAID set of its own, or all parts of one pool over all sets."""

KEPT_BYTES = 64 << 20
"""More than the array keeps of a set for itself: superblocks, journals, a pool's own tables."""
_PARITY = {"raid0": 0, "raid1": 0, "raid5": 1, "raid6": 2, "raid10": 0, "raid50": 1, "raid60": 2}
_GROUPED = ("raid50", "raid60")


class Storage(FrozenSpec):
    """Disks, and the RAID sets that they form."""

    disks: PositiveInt
    """All of them, hot spares included."""
    disk_bytes: PositiveInt = 4 << 30
    """Capacity of each. It is in memory; only written pages take space."""
    model: str | None = None
    """The drive that each behaves like; null: as fast as memory."""
    disk_sector_bytes: DiskSector = 512
    """Logical sector of the disks."""
    raid_level: Level = "raid10"
    sets: PositiveInt = 1
    """RAID sets that the disks are divided into."""
    spares: NonNegativeInt = 0
    """Hot spares of each set: disks that hold nothing until another one fails."""
    groups: Annotated[int, Field(ge=2, le=32)] = 2
    """Parts of a RAID 50 or 60 set, each with parity of its own; other levels have none."""
    chunk_bytes: Annotated[int, Field(ge=CHUNK_MIN_BYTES, le=CHUNK_MAX_BYTES)] = 64 << 10
    """Consecutive bytes on one disk."""
    sector_bytes: DiskSector = 512
    """Logical sector that hosts see."""
    initialise: Literal["assume_clean", "background"] = "assume_clean"
    """background: parity is computed while the volumes serve already, as after creating them."""
    backing: Backing = "raid"
    """raid: each volume is a whole set. pool: all volumes are parts of a thin pool."""

    @property
    def members(self) -> int:
        """Disks of one set that hold data or parity."""
        return self.disks // self.sets - self.spares

    @property
    def data_disks(self) -> int:
        """Disks' worth of data in one set."""
        if self.raid_level == "raid1":
            return 1
        if self.raid_level == "raid10":
            return self.members // 2
        groups = self.groups if self.raid_level in _GROUPED else 1
        return self.members - groups * _PARITY[self.raid_level]

    @property
    def set_bytes(self) -> int:
        """What one set holds for volumes, before what the array keeps for itself."""
        return self.data_disks * self.disk_bytes

    @property
    def usable_bytes(self) -> int:
        """What all sets hold for volumes, before what the array keeps for itself."""
        return self.sets * self.set_bytes

    @model_validator(mode="after")
    def _can_be_built(self) -> Storage:
        if self.disks % self.sets:
            raise ValueError(f"{self.disks} disks cannot be divided into {self.sets} sets")
        if (fault := level_fault(self.raid_level, self.members, self.groups, self.spares)) is not None:
            raise ValueError(fault)
        if self.chunk_bytes & (self.chunk_bytes - 1):
            raise ValueError(f"a chunk is a power of two, not {self.chunk_bytes} bytes")
        return self


def misfits(storage: Storage, volume_bytes: Sequence[int]) -> Iterator[str]:
    """Why volumes of these sizes do not fit on it: one sentence each, none if they do."""
    if storage.backing == "raid" and len(volume_bytes) != storage.sets:
        yield f"{len(volume_bytes)} volumes on {storage.sets} RAID sets: with backing raid each volume is a set"
    there = storage.set_bytes if storage.backing == "raid" else storage.usable_bytes
    asked = max(volume_bytes, default=0) if storage.backing == "raid" else sum(volume_bytes)
    if asked > there - KEPT_BYTES * storage.sets:
        yield f"volumes of {size_text(asked)} do not fit on {size_text(there)}"
