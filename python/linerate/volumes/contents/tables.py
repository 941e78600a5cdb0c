"""Partition tables: GPT with its copy at the end of the disk, MBR, and those of other systems."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator

from linerate.volumes.contents.ends import VolumeEnds

_BLOCKS = (512, 4096)
"""Block sizes of disks: block 1 of a 4Kn disk begins at byte 4096."""
_GPT = b"EFI PART"
_GPT_TYPES = {
    "aa31e02a-400f-11db-9590-000c2911d1b8": "VMFS",
    "9d275380-40ad-11db-bf97-000c2911d1b8": "VMware diagnostics",
    "e6d6d379-f507-44c2-a23c-238f2a3df928": "LVM",
    "a19d880f-05fc-4d3b-a006-743f0f84911e": "RAID",
    "0fc63daf-8483-4772-8e79-3d69d8477de4": "Linux",
    "0657fd6d-a4ab-43c4-84e5-0933c84b4f4f": "swap",
    "c12a7328-f81f-11d2-ba4b-00a0c93ec93b": "EFI system",
    "ebd0a0a2-b9e5-4433-87c0-68b6b72699c7": "Windows data",
    "e3c9e316-0b5c-4db8-817d-f92df00215ae": "Windows reserved",
    "e75caf8f-f680-4cee-afa3-b001e56efc2d": "Storage Spaces",
    "5808c8aa-7e8f-42e0-85d2-e1e90434cfb3": "LDM",
    "6a898cc3-1dd2-11b2-99a6-080020736631": "ZFS",
    "45b0969e-9b03-4f30-b4c6-b4b80ceff106": "Ceph",
    "4fbd7e29-9d25-41b8-afd0-062c0ceff05d": "Ceph",
}
_MBR_TYPES = {
    0x05: "extended", 0x07: "Windows data", 0x0B: "FAT", 0x0C: "FAT", 0x0E: "FAT", 0x0F: "extended", 0x42: "LDM",
    0x82: "swap", 0x83: "Linux", 0x8E: "LVM", 0xFB: "VMFS", 0xFC: "VMware swap", 0xFD: "RAID",
}  # fmt: skip
_GPT_PROTECTED = 0xEE
_ENTRIES_MAX = 128
_MBR_ENTRIES = tuple(range(446, 510, 16))
_OTHERS = (
    ("Apple partition map", b"PM\0\0", 512),
    ("BSD disk label", b"\x57\x45\x56\x82", 512),
    ("BSD disk label", b"\x57\x45\x56\x82", 512 + 64),
    ("SGI disk label", b"\x0b\xe5\xa9\x41", 0),
)


def partition_tables(ends: VolumeEnds) -> Iterator[str]:
    """The partition tables that are there, with the kinds of their partitions."""
    if (table := _gpt(ends) or _mbr(ends)) is not None:
        yield table
    for name, mark, place in _OTHERS:
        if ends.at(place, len(mark)) == mark:
            yield name


def _gpt(ends: VolumeEnds) -> str | None:
    for block in _BLOCKS:
        if ends.at(block, len(_GPT)) == _GPT:
            return f"GPT partition table{_kinds(_gpt_kinds(ends, block))}"
    if any(ends.at(-block, len(_GPT)) == _GPT for block in _BLOCKS):
        return "GPT partition table (the copy at the end)"
    return None


def _gpt_kinds(ends: VolumeEnds, block: int) -> Iterator[str]:
    """Kinds of its partitions (UEFI specification 5.3)."""
    first = ends.number(block + 72, 8) * block
    count, size = ends.number(block + 80, 4), ends.number(block + 84, 4)
    if size < 128:
        return
    for index in range(min(count, _ENTRIES_MAX)):
        kind = ends.at(first + index * size, 16)
        if len(kind) == 16 and any(kind):
            yield _GPT_TYPES.get(str(uuid.UUID(bytes_le=kind)), "other")


def _mbr(ends: VolumeEnds) -> str | None:
    """A table has flags of 0 or 0x80 only. A boot sector of a file system ends with the same mark."""
    if ends.at(510, 2) != b"\x55\xaa" or ends.at(3, 8) in (b"NTFS    ", b"EXFAT   ", b"-FVE-FS-"):
        return None
    entries = [ends.at(place, 16) for place in _MBR_ENTRIES]
    if any(entry[0] not in (0, 0x80) for entry in entries):
        return None
    used = [entry[4] for entry in entries if entry[4] and any(entry[12:16])]
    if _GPT_PROTECTED in used:
        return "MBR partition table (protects a GPT)"
    if not used and any(map(any, entries)):
        return None
    if not used and (ends.at(54, 3) == b"FAT" or ends.at(82, 5) == b"FAT32"):
        return None
    return f"MBR partition table{_kinds(_MBR_TYPES.get(kind, 'other') for kind in used)}"


def _kinds(kinds: Iterator[str]) -> str:
    counted = Counter(kinds)
    if not counted:
        return " without partitions"
    shown = ", ".join(f"{number} {kind}" if number > 1 else kind for kind, number in counted.items())
    return f" ({shown})"
