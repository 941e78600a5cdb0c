"""What takes more than one comparison: weak marks with fields beside them, and places that depend on the size."""

from __future__ import annotations

from collections.abc import Iterator

from linerate.volumes.contents.ends import VolumeEnds

KIB = 1024
_SECTOR = 512
_EXT = 1024
"""Where the superblock of ext2, ext3 and ext4 begins."""
_MD = 0xA92B4EFC
_ZFS = 0x00BAB10C
_ZFS_LABEL = 256 * KIB
_ZFS_RING = 128 * KIB
_DRBD = (0x8374026B, 0x8374026C, 0x8374026D)


def members(ends: VolumeEnds) -> Iterator[str]:
    """Names of what is there."""
    for find in (_ext, _lvm, _md, _zfs, _drbd, _sun):
        if (name := find(ends)) is not None:
            yield name


def _ext(ends: VolumeEnds) -> str | None:
    """Two bytes are little proof: the revision, the size of blocks and their number must be possible as well."""
    if ends.number(_EXT + 0x38, 2) != 0xEF53:
        return None
    possible = (
        ends.number(_EXT + 0x4C, 4) <= 1
        and ends.number(_EXT + 0x18, 4) <= 6
        and ends.number(_EXT + 0x14, 4) <= 1
        and ends.number(_EXT + 0x04, 4) > 0
    )
    if not possible:
        return None
    compatible, incompatible = ends.number(_EXT + 0x5C, 4), ends.number(_EXT + 0x60, 4)
    if incompatible & 0x0008:
        return "ext journal"
    if incompatible & ~0x0017:
        return "ext4 file system"
    return "ext3 file system" if compatible & 0x0004 else "ext2 file system"


def _lvm(ends: VolumeEnds) -> str | None:
    """The label is in one of the first four sectors."""
    for sector in range(4):
        if ends.at(sector * _SECTOR, 8) == b"LABELONE" and ends.at(sector * _SECTOR + 24, 8) == b"LVM2 001":
            return "LVM physical volume"
    return None


def _md(ends: VolumeEnds) -> str | None:
    """Superblocks of Linux software RAID: version 0.90 in the last whole 64 KiB but one, 1.0 near the end, 1.1 at the
    start, 1.2 at 4 KiB."""
    size_bytes = ends.size_bytes
    sectors = size_bytes // _SECTOR
    old = (size_bytes & ~(64 * KIB - 1)) - 64 * KIB
    if old >= 0 and _MD in (ends.number(old, 4), ends.number(old, 4, big=True)):
        return "md RAID member (0.90)"
    near_end = ((sectors - 16) & ~7) * _SECTOR
    for place, version in ((near_end, "1.0"), (0, "1.1"), (4 * KIB, "1.2")):
        if place >= 0 and ends.number(place, 4) == _MD and ends.number(place + 4, 4) == 1:
            return f"md RAID member ({version})"
    return None


def _zfs(ends: VolumeEnds) -> str | None:
    """Two labels of 256 KiB at each end, the second half of each a ring of uberblocks."""
    end = ends.size_bytes // _ZFS_LABEL * _ZFS_LABEL
    for label in (0, _ZFS_LABEL, end - 2 * _ZFS_LABEL, end - _ZFS_LABEL):
        if label < 0:
            continue
        for place in range(label + _ZFS_RING, label + _ZFS_LABEL, KIB):
            if _ZFS in (ends.number(place, 8), ends.number(place, 8, big=True)):
                return "ZFS pool member"
    return None


def _drbd(ends: VolumeEnds) -> str | None:
    """Metadata in the last whole 4 KiB."""
    block = ends.size_bytes // (4 * KIB) * (4 * KIB) - 4 * KIB
    return "DRBD device" if block >= 0 and ends.number(block + 60, 4, big=True) in _DRBD else None


def _sun(ends: VolumeEnds) -> str | None:
    """Two bytes, and the XOR over the sector's words."""
    if ends.at(508, 2) != b"\xda\xbe":
        return None
    total = 0
    for place in range(0, _SECTOR, 2):
        total ^= ends.number(place, 2, big=True)
    return "Sun disk label" if total == 0 else None
