"""The kernel's tables as data. Pure: text in, rows out; a line that cannot be read is left out."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

Number = tuple[int, int]
"""Major and minor number of a device."""

_OCTAL = re.compile(r"\\([0-7]{3})")
_LOOP_INFO = struct.Struct("=QQQQQIIII64s64s32sQQ")
"""struct loop_info64 of include/uapi/linux/loop.h."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system; its device is 0:n where the kernel has no single one for it (Btrfs, ZFS)."""

    device: Number
    place: str
    kind: str
    source: str


@dataclass(frozen=True, slots=True)
class Lock:
    """A file that a process has locked."""

    device: Number
    inode: int
    pid: int


def mounts(text: str) -> Iterator[Mount]:
    """From a /proc/PID/mountinfo (proc_pid_mountinfo(5))."""
    for line in text.splitlines():
        before, separator, after = line.partition(" - ")
        fields, more = before.split(" "), after.split(" ")
        if not separator or len(fields) < 6 or len(more) < 2:
            continue
        if (device := _number(fields[2])) is not None:
            yield Mount(device, _plain(fields[4]), more[0], _plain(more[1]))


def swaps(text: str) -> Iterator[str]:
    """Paths of swap files and devices, from /proc/swaps."""
    for line in text.splitlines()[1:]:
        if fields := line.split():
            yield _plain(fields[0]).removesuffix(" (deleted)")


def locks(text: str) -> Iterator[Lock]:
    """Locks that are held, from /proc/locks (proc_locks(5)); those that are waited for have an arrow."""
    for line in text.splitlines():
        fields = line.split()
        if len(fields) < 8 or fields[1] == "->" or not fields[4].lstrip("-").isdigit():
            continue
        try:
            major, minor, inode = fields[5].split(":")
            yield Lock((int(major, 16), int(minor, 16)), int(inode), int(fields[4]))
        except ValueError:
            continue


@dataclass(frozen=True, slots=True)
class Backing:
    """What a loop device reads and writes: a file by file system and inode, or a block device."""

    device: int
    inode: int
    block_device: int


def loop_backing(info: bytes) -> Backing | None:
    """From a struct loop_info64; device numbers as `stat` gives them."""
    if len(info) < _LOOP_INFO.size:
        return None
    device, inode, block_device, *_ = _LOOP_INFO.unpack_from(info)
    return Backing(device, inode, block_device)


def _number(text: str) -> Number | None:
    major, _, minor = text.partition(":")
    return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else None


def _plain(text: str) -> str:
    """Blanks and the like stand in octal there."""
    return _OCTAL.sub(lambda match: chr(int(match.group(1), 8)), text)
