"""Marks at fixed places: file systems, volume managers, encryption, databases, disk images.

The places are those of the formats' own headers; a negative one counts from the end of the volume. Each mark has four
bytes at least, so that data at random are not taken for it.
"""

from __future__ import annotations

from collections.abc import Iterator

from linerate.volumes.contents.ends import VolumeEnds

KIB = 1024
_PAGES = (4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB, 64 * KIB)
_SWAP = (b"SWAPSPACE2", b"SWAP-SPACE")
_HIBERNATED = (b"S1SUSPEND\0", b"S2SUSPEND\0", b"ULSUSPEND\0", b"LINHIB0001")
_BCACHE = bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81")
_BCACHEFS = bytes.fromhex("c68573f666ce90a9d96a60cf803df7ef")

Mark = tuple[str, bytes, tuple[int, ...]]
"""Name, bytes, and the places where they may be."""

FILE_SYSTEMS: tuple[Mark, ...] = (
    ("XFS file system", b"XFSB", (0,)),
    ("XFS log", b"\xfe\xed\xba\xbe", (0,)),
    ("Btrfs file system", b"_BHRfS_M", (64 * KIB + 64,)),
    ("NTFS file system", b"NTFS    ", (3, 3 - 512, 3 - 4096)),
    ("ReFS file system", b"ReFS\0\0\0\0", (3,)),
    ("exFAT file system", b"EXFAT   ", (3,)),
    ("FAT file system", b"FAT12   ", (54,)),
    ("FAT file system", b"FAT16   ", (54,)),
    ("FAT file system", b"FAT32   ", (82,)),
    ("VMFS volume", b"\x0d\xd0\x01\xc0", (1024 * KIB,)),
    ("F2FS file system", b"\x10\x20\xf5\xf2", (KIB,)),
    ("JFS file system", b"JFS1", (32 * KIB,)),
    ("ReiserFS file system", b"ReIsEr", (64 * KIB + 52, 8 * KIB + 52)),
    ("GFS2 file system", b"\x01\x16\x19\x70\0\0\0\x01", (64 * KIB,)),
    ("OCFS2 file system", b"OCFSV2", (KIB, 2 * KIB, 4 * KIB, 8 * KIB)),
    ("APFS container", b"NXSB", (32,)),
    ("HFS+ file system", b"H+\0\x04", (KIB,)),
    ("HFS+ file system", b"HX\0\x05", (KIB,)),
    ("VxFS file system", b"\xa5\x01\xfc\xa5", (KIB, 8 * KIB)),
    ("EROFS file system", b"\xe2\xe1\xf5\xe0", (KIB,)),
    ("SquashFS file system", b"hsqs", (0,)),
    ("ISO 9660 file system", b"CD001", (32 * KIB + 1,)),
    ("UDF file system", b"NSR0", (34 * KIB + 1, 36 * KIB + 1)),
    ("bcachefs file system", _BCACHEFS, (4 * KIB + 24,)),
    ("zonefs file system", b"SFOZ", (0,)),
)
VOLUME_MANAGERS: tuple[Mark, ...] = (
    ("bcache device", _BCACHE, (4 * KIB + 24,)),
    ("Stratis pool", b"!Stra0tis\x86\xff\x02^\x41rh", (512 + 4, 9 * 512 + 4)),
    ("VDO volume", b"dmvdo001", (0,)),
    ("dm-integrity device", b"integrt\0", (0,)),
    ("dm-verity device", b"verity\0\0", (0,)),
    ("Intel RAID member", b"Intel Raid ISM Cfg Sig. ", (-2 * 512, -2 * 4096)),
    ("DDF RAID member", b"\xde\x11\xde\x11", (-512, -4096, -257 * 512)),
    ("Ceph BlueStore", b"bluestore block device", (0,)),
    ("Oracle ASM disk", b"ORCLDISK", (32,)),
    ("LDM volume", b"PRIVHEAD", (6 * 512, -512)),
)
ENCRYPTION: tuple[Mark, ...] = (
    ("LUKS device", b"LUKS\xba\xbe", (0,)),
    ("LUKS device", b"SKUL\xba\xbe", tuple(16 * KIB << shift for shift in range(6))),
    ("BitLocker volume", b"-FVE-FS-", (3,)),
)
SWAP: tuple[Mark, ...] = (
    *(("swap space", mark, tuple(page - len(mark) for page in _PAGES)) for mark in _SWAP),
    *(("hibernated system", mark, tuple(page - len(mark) for page in _PAGES)) for mark in _HIBERNATED),
)
LINERATE: tuple[Mark, ...] = (
    ("member of a Linerate RAID set", b"LnrtRAID", (0, 64 * KIB)),
    ("member of a Linerate RAID set", b"LnrtREDO", (128 * KIB,)),
    ("Linerate pool", b"LNRTPOOL", (0, -4 * KIB)),
    ("Linerate pool", b"LNRTMETA", (4 * KIB,)),
)
IMAGES: tuple[Mark, ...] = (
    ("qcow2 disk image", b"QFI\xfb", (0,)),
    ("VMDK disk image", b"KDMV", (0,)),
    ("VHD disk image", b"conectix", (0, -512)),
    ("VHDX disk image", b"vhdxfile", (0,)),
    ("VDI disk image", b"\x7f\x10\xda\xbe", (64,)),
)
MARKS = (*FILE_SYSTEMS, *VOLUME_MANAGERS, *ENCRYPTION, *SWAP, *LINERATE, *IMAGES)


def marks(ends: VolumeEnds) -> Iterator[str]:
    """Names of the marks that are there."""
    for name, mark, places in MARKS:
        if any(ends.at(place, len(mark)) == mark for place in places):
            yield name
