"""What is mounted, swapped to, attached and locked on this host, seen once."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from linerate.volumes.kernel.sysfs import Sysfs
from linerate.volumes.kernel.tables import Backing, Lock, Mount, Number, locks, loop_backing, mounts, swaps

PROC = Path("/proc")
_LOOP_GET_STATUS64 = 0x4C05
_LOOP_INFO_BYTES = 232


@dataclass(frozen=True, slots=True)
class Machine:
    """See the module text. Mounts are those of every mount namespace that may be seen."""

    sysfs: Sysfs = field(default_factory=Sysfs)
    mounts: tuple[Mount, ...] = ()
    swap_devices: frozenset[Number] = frozenset()
    swap_files: frozenset[tuple[int, int]] = frozenset()
    """By file system and inode, as `stat` gives them."""
    loops: tuple[tuple[str, Backing], ...] = ()
    """Name of each attached loop device, and what is behind it."""
    locks: tuple[Lock, ...] = ()


def seen_machine(sysfs: Sysfs | None = None, proc: Path = PROC) -> Machine:
    """What can be seen now. What may not be read is as if it were not there."""
    tree = sysfs or Sysfs()
    paths = list(swaps(_text(proc / "swaps")))
    found = [state for path in paths if (state := _stat(path)) is not None]
    return Machine(
        sysfs=tree,
        mounts=tuple(dict.fromkeys(_with_devices(_all_mounts(proc)))),
        swap_devices=frozenset(number_of(one.st_rdev) for one in found if stat.S_ISBLK(one.st_mode)),
        swap_files=frozenset((one.st_dev, one.st_ino) for one in found if stat.S_ISREG(one.st_mode)),
        loops=tuple(
            (name, backing) for name in tree.loops() if (backing := _backing(name, tree)) is not None
        ),
        locks=tuple(locks(_text(proc / "locks"))),
    )


def number_of(device: int) -> Number:
    """Major and minor number of what `stat` gives."""
    return os.major(device), os.minor(device)


def _all_mounts(proc: Path) -> Iterator[Mount]:
    """Of every mount namespace, each once. Processes may end while they are looked at."""
    seen: set[str] = set()
    for entry in (proc / "self", *proc.glob("[0-9]*")):
        try:
            namespace = os.readlink(entry / "ns/mnt")
        except OSError:
            continue
        if namespace not in seen:
            seen.add(namespace)
            yield from mounts(_text(entry / "mountinfo"))


def _with_devices(found: Iterator[Mount]) -> Iterator[Mount]:
    """With the number of the source where the mount has one that names no device."""
    for mount in found:
        source = _stat(mount.source) if mount.device[0] == 0 and mount.source.startswith("/") else None
        if source is not None and stat.S_ISBLK(source.st_mode):
            yield Mount(number_of(source.st_rdev), mount.place, mount.kind, mount.source)
        else:
            yield mount


def _backing(loop: str, tree: Sysfs) -> Backing | None:
    """As the device says; who may not open it goes by the path, which may be another mount namespace's."""
    with contextlib.suppress(OSError):
        device = os.open(f"/dev/{loop}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return loop_backing(fcntl.ioctl(device, _LOOP_GET_STATUS64, bytes(_LOOP_INFO_BYTES)))
        finally:
            os.close(device)
    found = _stat(tree.backing_path(loop))
    return None if found is None else Backing(found.st_dev, found.st_ino, found.st_rdev)


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except (OSError, ValueError):
        return None


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
