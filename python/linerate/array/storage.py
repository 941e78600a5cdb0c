"""Storage behind volumes: disks, the RAID sets made of them, and the pools that lie on RAID sets.

The data plane reads the same keys. Faults among several tables, such as a RAID set that names no disk, are found here.
"""

from __future__ import annotations

from collections.abc import Iterator
from os.path import normpath
from pathlib import PurePath
from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from linerate import _core
from linerate.array.base import Frozen, Name, Sector, known, misplaced, unique

Level = Literal["raid0", "raid1", "raid5", "raid6", "raid10", "raid50", "raid60"]

Drive = Literal[
    "sata_7200_3_5",
    "sata_7200_3_5_512e",
    "sas_7200_2_5",
    "sas_10k_2_5",
    "sas_15k_3_5",
    "sata_ssd",
    "nvme_ssd",
]
"""Drives that the data plane models (`crates/storage/src/disk/modelled`)."""

_LIMITS = _core.limits()
CHUNK_MIN_BYTES, CHUNK_MAX_BYTES = _LIMITS["chunk_bytes"]


def level_fault(level: Level, disks: int, groups: int, spares: int) -> str | None:
    """Why a RAID set of so many members cannot be of this level; None if it can. `groups` counts for RAID 50 and 60."""
    return _core.raid_level_fault(level, disks, groups, spares)


def _is_none(value: object) -> bool:
    """What is left out is the data plane's to choose."""
    return value is None


class DiskConfig(Frozen):
    """A disk, or `count` equal ones."""

    name: Name
    """Name in messages, RAID sets and counters; with `count`, name0, name1, ..."""
    kind: Literal["memory", "file"] = "memory"
    """memory: gone when the array stops. file: kept in `path`."""
    path: str | None = None
    """File or block device of a file disk; made if missing. With `count` the number comes before the suffix."""
    size_bytes: PositiveInt | None = None
    """Capacity; may be left out for a file that exists."""
    sparse: bool = False
    """Of a file disk: space is taken as it is written and may run out; else the file is allocated as a whole."""
    sector_bytes: Sector = 512
    """Smallest unit of reading and writing."""
    model: Drive | None = None
    """The drive whose times this disk takes; none: as fast as its kind is."""
    io_timeout_s: Annotated[float, Field(ge=0.1, le=3600)] | None = Field(None, exclude_if=_is_none)
    """Of a file disk: an operation that takes longer makes the disk a failed one; none: 30 s."""
    count: Annotated[int, Field(ge=1, le=256)] | None = None
    """Makes that many disks."""

    @model_validator(mode="after")
    def _fits_its_kind(self) -> DiskConfig:
        if self.kind == "file" and not self.path:
            raise misplaced(("kind",), 'a disk of kind "file" needs a path')
        if self.kind == "memory" and self.path:
            raise misplaced(("path",), 'a disk of kind "memory" has no path; did you mean kind = "file"?')
        if self.kind == "memory" and self.sparse:
            raise misplaced(("sparse",), 'a disk of kind "memory" always takes memory as it is written')
        if self.kind == "memory" and self.io_timeout_s is not None:
            raise misplaced(("io_timeout_s",), 'a disk of kind "memory" always answers in time')
        if self.kind == "memory" and self.size_bytes is None:
            raise misplaced(("name",), 'a disk of kind "memory" needs a size, for example size = "1g"')
        if self.size_bytes is not None and self.size_bytes % self.sector_bytes:
            raise misplaced(
                ("size_bytes",), f"the size is no multiple of the sector size {self.sector_bytes}"
            )
        return self

    def each(self) -> Iterator[DiskConfig]:
        """The disks of this table, one by one."""
        if self.count is None:
            yield self
            return
        for number in range(self.count):
            yield self.model_copy(
                update={"name": f"{self.name}{number}", "path": _numbered(self.path, number), "count": None}
            )


def _numbered(path: str | None, number: int) -> str | None:
    if path is None:
        return None
    whole = PurePath(path)
    return str(whole.with_name(f"{whole.stem}{number}{whole.suffix}"))


class RaidSet(Frozen):
    """Disks that keep data together, and what takes the place of one that fails."""

    name: Name
    level: Level
    disks: tuple[Name, ...] = Field(min_length=1)
    """Members by name, in order; the name of a table with a `count` means all its disks."""
    spares: tuple[Name, ...] = ()
    """Hot spares: one takes the place of a member that fails, at once."""
    chunk_bytes: Annotated[int, Field(ge=CHUNK_MIN_BYTES, le=CHUNK_MAX_BYTES)] = 65536
    """Consecutive bytes on one disk before the next one's turn; a power of two."""
    groups: Annotated[int, Field(ge=2, le=32)] = 2
    """Sub-sets of RAID 50 and 60, striped over."""
    initialise: Literal["background", "assume_clean"] = "background"
    """background: parity is made while hosts work. assume_clean: the disks hold nothing but zeros."""
    journal: Literal["degraded", "always"] | None = Field(None, exclude_if=_is_none)
    """When parity is written through the redo journal; none: degraded, while a disk is missing."""
    rebuild_bytes_per_s: PositiveInt | None = None
    """Most that rebuilding, initialising and scrubbing write or read per disk; none: as fast as hosts leave room."""
    checksums: bool = True
    """Keep a checksum per block, so that silent corruption is found and mended."""

    @model_validator(mode="after")
    def _has_enough_disks(self) -> RaidSet:
        if self.chunk_bytes & (self.chunk_bytes - 1):
            raise misplaced(("chunk_bytes",), "a chunk is a power of two, from 4k to 1m")
        return self


class Pool(Frozen):
    """Space on RAID sets from which thin volumes take pages as they are written."""

    name: Name
    raid_sets: tuple[Name, ...] = Field(min_length=1)
    page_bytes: Annotated[int, Field(ge=4 << 10, le=64 << 20)] = 1 << 20
    """Unit of allocation; a power of two."""
    warn_at: Annotated[float, Field(gt=0, le=1)] = 0.8
    """Share of use from which the pool warns."""
    overcommit: PositiveFloat | None = None
    """Most capacity that its volumes may show, as a multiple of the pool's size; none: no limit."""

    @model_validator(mode="after")
    def _page_is_a_power_of_two(self) -> Pool:
        if self.page_bytes & (self.page_bytes - 1):
            raise misplaced(("page_bytes",), "a page is a power of two, from 4k to 64m")
        return self


class Storage(Frozen):
    """All disks, RAID sets and pools of an array."""

    disks: tuple[DiskConfig, ...] = ()
    raid_sets: tuple[RaidSet, ...] = ()
    pools: tuple[Pool, ...] = ()

    @model_validator(mode="after")
    def _fits_together(self) -> Storage:
        unique("disks", [disk.name for table in self.disks for disk in table.each()])
        self._disks_have_their_files()
        unique("raid_sets", [one.name for one in self.raid_sets])
        unique("pools", [one.name for one in self.pools])
        self._sets_have_their_disks()
        self._pools_have_their_sets()
        return self

    def members(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Names of single disks for names that a RAID set gives, in order."""
        tables = {disk.name: [one.name for one in disk.each()] for disk in self.disks if disk.count}
        return tuple(single for name in names for single in tables.get(name, [name]))

    def resolved(self) -> Storage:
        """The same with every disk by itself, as the data plane takes it."""
        return self.model_copy(
            update={
                "disks": tuple(one for disk in self.disks for one in disk.each()),
                "raid_sets": tuple(
                    one.model_copy(
                        update={"disks": self.members(one.disks), "spares": self.members(one.spares)}
                    )
                    for one in self.raid_sets
                ),
            }
        )

    def _disks_have_their_files(self) -> None:
        users: dict[str, str] = {}
        for number, table in enumerate(self.disks):
            for path, name in [(normpath(disk.path), disk.name) for disk in table.each() if disk.path]:
                if path in users:
                    raise misplaced(
                        ("disks", number, "path"), f'the disk "{users[path]}" is in {path} already'
                    )
                users[path] = name

    def _sets_have_their_disks(self) -> None:
        disks = {one.name: one for disk in self.disks for one in disk.each()}
        taken: dict[str, str] = {}
        for number, raid in enumerate(self.raid_sets):
            for key, names in (("disks", raid.disks), ("spares", raid.spares)):
                at = ("raid_sets", number, key)
                for name in self.members(names):
                    if name not in disks:
                        raise misplaced(at, f'there is no disk "{name}"; {known("disks", set(disks))}')
                    if name in taken:
                        raise misplaced(at, f'the disk "{name}" is already part of RAID set "{taken[name]}"')
                    taken[name] = raid.name
            self._level_fits(raid, number)
            sectors = {disks[name].sector_bytes for name in self.members((*raid.disks, *raid.spares))}
            if len(sectors) > 1:
                raise misplaced(
                    ("raid_sets", number, "disks"), "its disks have sectors of different sizes: 512 and 4096"
                )

    def _level_fits(self, raid: RaidSet, number: int) -> None:
        disks, spares = len(self.members(raid.disks)), len(self.members(raid.spares))
        if (fault := level_fault(raid.level, disks, raid.groups, spares)) is not None:
            key = "spares" if raid.level == "raid0" and spares else "disks"
            raise misplaced(("raid_sets", number, key), fault)
        if raid.journal and raid.level not in _LIMITS["parity_levels"]:
            raise misplaced(
                ("raid_sets", number, "journal"), f"{_shown(raid.level)} has no parity, and no journal for it"
            )

    def _pools_have_their_sets(self) -> None:
        sets = {one.name for one in self.raid_sets}
        taken: dict[str, str] = {}
        for number, pool in enumerate(self.pools):
            at = ("pools", number, "raid_sets")
            for name in pool.raid_sets:
                if name not in sets:
                    raise misplaced(at, f'there is no RAID set "{name}"; {known("RAID sets", sets)}')
                if name in taken:
                    raise misplaced(at, f'the RAID set "{name}" is already part of pool "{taken[name]}"')
                taken[name] = pool.name


def _shown(level: str) -> str:
    return level.upper().replace("RAID", "RAID ")
