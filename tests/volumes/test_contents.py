"""The contents of a volume are recognised by the bytes at its ends: made-up marks, and what real tools write."""

from __future__ import annotations

import random
import subprocess
import uuid
from pathlib import Path

import pytest
from linerate.volumes.contents import END_BYTES, Contents, VolumeEnds, contents_of

from tests.support import need

KIB = 1024
MIB = 1 << 20
SIZE = 8 * MIB
MD = bytes.fromhex("fc4e2ba9")


def _ends(data: bytes) -> VolumeEnds:
    return VolumeEnds(data[:END_BYTES], data[-END_BYTES:], len(data))


def _with(*parts: tuple[int, bytes], size_bytes: int = SIZE) -> Contents:
    """The contents of zeros with these bytes; a negative place counts from the end."""
    data = bytearray(size_bytes)
    for place, part in parts:
        start = place % size_bytes
        data[start : start + len(part)] = part
    return contents_of(_ends(bytes(data)))


def _le(number: int, length: int) -> bytes:
    return number.to_bytes(length, "little")


def _ext(compatible: int, incompatible: int) -> bytes:
    """A superblock with 4 KiB blocks."""
    block = bytearray(1024)
    for place, number in ((4, 2048), (0x18, 2), (0x4C, 1), (0x5C, compatible), (0x60, incompatible)):
        block[place : place + 4] = _le(number, 4)
    block[0x38:0x3A] = _le(0xEF53, 2)
    return bytes(block)


def _mbr(*entries: tuple[int, int]) -> bytes:
    """A sector with partitions of (kind, number of sectors)."""
    sector = bytearray(512)
    for index, (kind, sectors) in enumerate(entries):
        sector[446 + 16 * index + 4] = kind
        sector[446 + 16 * index + 12 : 446 + 16 * index + 16] = _le(sectors, 4)
    sector[510:] = b"\x55\xaa"
    return bytes(sector)


def _gpt(*kinds: str) -> tuple[bytes, bytes]:
    """A header, and the entries that stand in the block behind it."""
    header = bytearray(92)
    header[:8] = b"EFI PART"
    header[72:92] = _le(2, 8) + _le(128, 4) + _le(128, 4) + bytes(4)
    return bytes(header), b"".join(uuid.UUID(kind).bytes_le + bytes(112) for kind in kinds)


VMFS = "aa31e02a-400f-11db-9590-000c2911d1b8"
LINUX = "0fc63daf-8483-4772-8e79-3d69d8477de4"
EXT_PLACE = 1024


@pytest.mark.parametrize(
    ("place", "mark", "name"),
    [
        (EXT_PLACE, _ext(0, 0x02), "ext2 file system"),
        (EXT_PLACE, _ext(4, 0x02), "ext3 file system"),
        (EXT_PLACE, _ext(4, 0x2C2), "ext4 file system"),
        (EXT_PLACE, _ext(0, 0x08), "ext journal"),
        (0, b"XFSB", "XFS file system"),
        (64 * KIB + 64, b"_BHRfS_M", "Btrfs file system"),
        (3, b"NTFS    ", "NTFS file system"),
        (-509, b"NTFS    ", "NTFS file system"),
        (3, b"ReFS\0\0\0\0", "ReFS file system"),
        (54, b"FAT16   ", "FAT file system"),
        (82, b"FAT32   ", "FAT file system"),
        (3, b"EXFAT   ", "exFAT file system"),
        (1536, b"LABELONE" + bytes(16) + b"LVM2 001", "LVM physical volume"),
        (SIZE - 64 * KIB, MD, "md RAID member (0.90)"),
        (SIZE - 8 * KIB, MD + _le(1, 4), "md RAID member (1.0)"),
        (0, MD + _le(1, 4), "md RAID member (1.1)"),
        (4 * KIB, MD + _le(1, 4), "md RAID member (1.2)"),
        (0, b"LUKS\xba\xbe\0\x02", "LUKS device"),
        (16 * KIB, b"SKUL\xba\xbe\0\x02", "LUKS device"),
        (4096 - 10, b"SWAPSPACE2", "swap space"),
        (65536 - 10, b"SWAPSPACE2", "swap space"),
        (MIB, b"\x0d\xd0\x01\xc0", "VMFS volume"),
        (160 * KIB, _le(0x00BAB10C, 8), "ZFS pool member"),
        (SIZE - 100 * KIB, (0x00BAB10C).to_bytes(8, "big"), "ZFS pool member"),
        (4120, bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81"), "bcache device"),
        (-4096 + 60, bytes.fromhex("8374026d"), "DRBD device"),
        (0, b"bluestore block device\n", "Ceph BlueStore"),
        (32, b"ORCLDISK", "Oracle ASM disk"),
        (0, b"LnrtRAID", "member of a Linerate RAID set"),
        (64 * KIB, b"LnrtRAID", "member of a Linerate RAID set"),
        (0, b"LNRTPOOL", "Linerate pool"),
        (-4096, b"LNRTPOOL", "Linerate pool"),
        (512, b"EFI PART", "GPT partition table without partitions"),
        (4096, b"EFI PART", "GPT partition table without partitions"),
        (-512, b"EFI PART", "GPT partition table (the copy at the end)"),
        (-4096, b"EFI PART", "GPT partition table (the copy at the end)"),
        (0, _mbr(), "MBR partition table without partitions"),
        (0, _mbr((0x8E, 100), (0x83, 10), (0x83, 10)), "MBR partition table (LVM, 2 Linux)"),
        (0, _mbr((0xEE, 100)), "MBR partition table (protects a GPT)"),
        (0, _mbr((0xFB, 100)), "MBR partition table (VMFS)"),
    ],
)
def test_each_kind_is_recognised_and_nothing_else(place: int, mark: bytes, name: str) -> None:
    assert _with((place, mark)) == Contents((name,), blank=False)


@pytest.mark.parametrize("block", [512, 4096])
def test_a_gpt_tells_the_kinds_of_its_partitions(block: int) -> None:
    header, entries = _gpt(VMFS, LINUX, LINUX, "00000000-0000-0000-0000-000000000000")
    found = _with((0, _mbr((0xEE, 1))), (block, header), (2 * block, entries), (-block, header))
    assert found.names == ("GPT partition table (VMFS, 2 Linux)",)


def test_zeros_are_blank_and_other_bytes_are_of_unknown_kind() -> None:
    assert _with() == Contents((), blank=True)
    for place in (0, 100_000, END_BYTES - 1, SIZE - END_BYTES, SIZE - 1):
        assert _with((place, b"\1")) == Contents((), blank=False)


@pytest.mark.parametrize("size_bytes", [0, 1, 511, 512, 4096, 70 * KIB, 3 * MIB])
def test_short_volumes_are_read_as_far_as_they_go(size_bytes: int) -> None:
    assert contents_of(_ends(bytes(size_bytes))) == Contents((), blank=True)
    assert contents_of(_ends(b"\xff" * size_bytes)).names == ()


@pytest.mark.long
def test_data_at_random_have_no_known_kind() -> None:
    dice = random.Random(20261123)
    for _ in range(200):
        data = dice.randbytes(2 * END_BYTES)
        assert contents_of(_ends(data)) == Contents((), blank=False)


def test_a_boot_sector_of_a_file_system_is_no_partition_table() -> None:
    fat = bytearray(512)
    fat[82:90], fat[510:] = b"FAT32   ", b"\x55\xaa"
    fat[446:460] = bytes(range(1, 15))
    assert _with((0, bytes(fat))).names == ("FAT file system",)


MADE_BY = {
    "ext4 file system": ("mkfs.ext4", ("-q", "-F")),
    "XFS file system": ("mkfs.xfs", ("-q", "-f")),
    "swap space": ("mkswap", ()),
}


@pytest.mark.parametrize("name", MADE_BY)
def test_what_tools_write_is_recognised(tmp_path: Path, name: str) -> None:
    program, options = MADE_BY[name]
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(320 * MIB)
    subprocess.run([need.tool(program), *options, image], check=True, capture_output=True)
    assert contents_of(_image(image)).names == (name,)


@pytest.mark.parametrize(("label", "start"), [("gpt", "GPT partition table"), ("dos", "MBR partition table")])
def test_what_partitioning_writes_is_recognised(tmp_path: Path, label: str, start: str) -> None:
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(64 * MIB)
    script = f"label: {label}\n,10M,L\n,,V\n"
    sfdisk = need.tool("sfdisk")
    subprocess.run([sfdisk, "-q", image], input=script.encode(), check=True, capture_output=True)
    assert contents_of(_image(image)).names == (f"{start} (Linux, LVM)",)
    with image.open("r+b") as file:
        file.write(bytes(MIB))
    assert bool(contents_of(_image(image)).names) == (label == "gpt"), "only a GPT has a copy at the end"


def _image(path: Path) -> VolumeEnds:
    with path.open("rb") as file:
        first = file.read(END_BYTES)
        size_bytes = path.stat().st_size
        file.seek(size_bytes - END_BYTES)
        return VolumeEnds(first, file.read(END_BYTES), size_bytes)
