"""Reads RAID sets from their disks' files, written from docs/disk-format.md alone."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

UNIT = 4096
SUPERBLOCK = 64 << 10
JOURNAL = 2 * SUPERBLOCK
SUMS_PER_PAGE = 1023
SPARE = 0xFFFFFFFF
_COPIES = ("raid1", "raid10")
_PARITY = {"raid5": 1, "raid6": 2, "raid50": 1, "raid60": 2}


def _table() -> Iterator[int]:
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        yield byte


_CRC = tuple(_table())


def crc32c(data: bytes, before: int = 0) -> int:
    """The checksum of RFC 7143 section 13.1; `before`: that of what comes before."""
    crc = before ^ 0xFFFFFFFF
    for byte in data:
        crc = _CRC[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


class _Fields:
    """Takes one field after the other."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def u32(self) -> int:
        return self._number("<I")

    def u64(self) -> int:
        return self._number("<Q")

    def text(self) -> str:
        length = self.u32()
        self._at += length
        return self._data[self._at - length : self._at].decode()

    def _number(self, form: str) -> int:
        (value,) = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return int(value)


@dataclass(frozen=True)
class Superblock:
    """What the first part of a superblock says."""

    slot: int
    disk_id: int
    set_id: int
    name: str
    level: str
    chunk: int
    groups: int
    group: int
    member_bytes: int
    generation: int
    series: int
    slots: int

    @classmethod
    def newest(cls, disk: bytes) -> Superblock:
        """The newest whole one of a disk."""
        whole = [found for at in (0, SUPERBLOCK) if (found := cls._at(disk[at : at + SUPERBLOCK]))]
        return max(whole, key=lambda one: one.generation)

    @classmethod
    def _at(cls, data: bytes) -> Superblock | None:
        version, length, checksum = struct.unpack_from("<III", data, 8)
        if data[:8] != b"LnrtRAID" or version != 1:
            return None
        if crc32c(data[:16] + bytes(4) + data[20:length]) != checksum:
            return None
        fields = _Fields(data[20:length])
        slot, disk_id, set_id, name, level = (
            fields.u32(),
            fields.u64(),
            fields.u64(),
            fields.text(),
            fields.text(),
        )
        chunk, groups, group, _block = (fields.u32() for _ in range(4))
        member_bytes, generation, _epoch, series, _initialised = (fields.u64() for _ in range(5))
        return cls(
            slot, disk_id, set_id, name, level, chunk, groups, group, member_bytes, generation, series, fields.u32()
        )  # fmt: skip


class Group:
    """The members of a group, by slot."""

    def __init__(self, members: dict[int, bytes], superblock: Superblock) -> None:
        self.members, self.superblock = members, superblock
        level, count = superblock.level, superblock.slots
        self.parity = _PARITY.get(level, 0)
        self.data = count - self.parity if self.parity else 1
        self.chunk = max(superblock.chunk, 256 << 10) if level == "raid1" else superblock.chunk
        journal = 0
        if self.parity:
            journal = min(max(superblock.member_bytes // 64 // UNIT * UNIT, 128 << 10), 16 << 20)
            journal = max(journal, 2 * (count + 1) * self.chunk)
        self.sums = JOURNAL + journal
        units = (superblock.member_bytes - self.sums) // UNIT
        pages = 0 if level == "raid0" else -(-units // SUMS_PER_PAGE)
        self.start = -(-(self.sums + pages * UNIT) // self.chunk) * self.chunk
        self.stripes = (superblock.member_bytes - self.start) // self.chunk

    def slot(self, stripe: int, position: int) -> int:
        """Which member has a data chunk, or, after those, a parity chunk."""
        if not self.parity:
            return 0
        count = self.superblock.slots
        first = count - 1 - stripe % count
        if position < self.data:
            return (first + self.parity + position) % count
        return (first + position - self.data) % count

    def piece(self, slot: int, stripe: int) -> bytes:
        """A chunk of a member."""
        at = self.start + stripe * self.chunk
        return self.members[slot][at : at + self.chunk]

    def contents(self) -> bytes:
        """All data, in order."""
        return b"".join(
            self.piece(self.slot(stripe, position), stripe)
            for stripe in range(self.stripes)
            for position in range(self.data)
        )

    def checked(self) -> Iterator[bool]:
        """For each unit with a known checksum, whether it is right."""
        one = self.superblock
        for slot, disk in self.members.items():
            seed = 0
            for part in (one.set_id, one.group, Superblock.newest(disk).disk_id, slot, one.series):
                seed = crc32c(part.to_bytes(8, "little"), seed)
            for page in range(-(-self.stripes * self.chunk // UNIT // SUMS_PER_PAGE)):
                at = self.sums + page * UNIT
                raw = disk[at : at + UNIT]
                if crc32c(raw[4:], crc32c(page.to_bytes(8, "little"), seed)) != int.from_bytes(
                    raw[:4], "little"
                ):
                    continue
                for number, known in enumerate(struct.unpack("<1023I", raw[4:])):
                    unit = page * SUMS_PER_PAGE + number
                    place = self.start + unit * UNIT
                    if known:
                        yield max(crc32c(disk[place : place + UNIT]), 1) == known


def groups_of(paths: Sequence[Path]) -> list[Group]:
    """The groups of the set that these disks are, in order."""
    disks = [path.read_bytes() for path in paths]
    found: dict[int, dict[int, bytes]] = {}
    newest: dict[int, Superblock] = {}
    for disk in disks:
        one = Superblock.newest(disk)
        if one.slot != SPARE:
            found.setdefault(one.group, {})[one.slot] = disk
            newest[one.group] = max(newest.get(one.group, one), one, key=lambda other: other.generation)
    return [Group(found[number], newest[number]) for number in sorted(found)]


def contents(groups: Sequence[Group]) -> bytes:
    """What the set holds."""
    first = groups[0]
    size = first.chunk * first.data if first.parity else first.superblock.chunk
    parts = [group.contents() for group in groups]
    if len(parts) == 1:
        return parts[0]
    chunks = len(parts[0]) // size
    return b"".join(part[number * size : (number + 1) * size] for number in range(chunks) for part in parts)


def unsealed(block: bytes, name: bytes) -> bytes:
    """The body of a sealed block of a pool."""
    length = int.from_bytes(block[8:12], "little")
    assert block[:8] == name, block[:8]
    assert crc32c(block[: 12 + length]) == int.from_bytes(block[12 + length : 16 + length], "little")
    return block[12 : 12 + length]


def pool(disk: bytes) -> dict[str, Any]:
    """Where the parts of a pool are, and both copies of its database."""
    superblock = unsealed(disk[:UNIT], b"LNRTPOOL")
    version, disk_bytes, page_bytes, metadata_bytes = struct.unpack("<4Q", superblock)
    assert (version, superblock) == (1, unsealed(disk[disk_bytes - UNIT : disk_bytes], b"LNRTPOOL"))
    copies = []
    for at in (UNIT, disk_bytes - UNIT - metadata_bytes):
        length = int.from_bytes(unsealed(disk[at : at + UNIT], b"LNRTMETA"), "little")
        copies.append(disk[at + UNIT : at + UNIT + length])
    first = -(-(UNIT + metadata_bytes) // page_bytes) * page_bytes
    return {"page_bytes": page_bytes, "first_page": first, "copies": copies}
