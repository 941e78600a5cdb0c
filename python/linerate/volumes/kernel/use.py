"""Who uses a block device or a file, in words. Pure but for the tree of devices that it walks."""

from __future__ import annotations

from collections.abc import Iterator

from linerate.volumes.kernel.machine import Machine, number_of
from linerate.volumes.kernel.tables import Number

_DEPTH_MAX = 8
"""Devices on devices; more than anybody stacks."""


def uses_of_device(device: Number, machine: Machine) -> list[str]:
    """Of a block device, of its partitions, and of the disk that it is a partition of."""
    name = machine.sysfs.name(device)
    if name is None:
        return list(dict.fromkeys(_own_uses(device, None, machine)))
    found = [*_uses(name, machine, _DEPTH_MAX)]
    for partition in machine.sysfs.partitions(name):
        found += [f"/dev/{partition} is {use}" for use in _uses(partition, machine, _DEPTH_MAX)]
    if (disk := machine.sysfs.disk_of(name)) is not None:
        found += [f"/dev/{disk} is {use}" for use in _uses(disk, machine, _DEPTH_MAX)]
    return list(dict.fromkeys(found))


def uses_of_file(file_system: int, inode: int, machine: Machine) -> list[str]:
    """Of a regular file, by what `stat` gives for it."""
    found = ["used as swap space"] if (file_system, inode) in machine.swap_files else []
    for loop, backing in machine.loops:
        if (backing.device, backing.inode) == (file_system, inode):
            found += _through(loop, f"attached as /dev/{loop}", machine)
    number = number_of(file_system)
    pids = [lock.pid for lock in machine.locks if (lock.device, lock.inode) == (number, inode)]
    found += [f"locked by process {pid}" if pid > 0 else "locked by a process" for pid in pids]
    return list(dict.fromkeys(found))


def _uses(name: str, machine: Machine, depth: int) -> Iterator[str]:
    """Of one device, and of what is built on it."""
    number = machine.sysfs.number(name)
    if number is None or depth == 0:
        return
    yield from _own_uses(number, name, machine)
    for holder in machine.sysfs.holders(name):
        title = f"part of {machine.sysfs.title(holder)}"
        above = list(_uses(holder, machine, depth - 1))
        yield from [f"{title}, {use}" for use in above] or [title]


def _own_uses(number: Number, name: str | None, machine: Machine) -> Iterator[str]:
    places = [mount for mount in machine.mounts if mount.device == number]
    yield from (f"mounted on {mount.place} ({mount.kind})" for mount in places)
    if name is not None and not places and machine.sysfs.in_btrfs(name):
        yield "part of a Btrfs file system that is mounted"
    if number in machine.swap_devices:
        yield "used as swap space"
    for loop, backing in machine.loops:
        if backing.block_device and number_of(backing.block_device) == number:
            yield from _through(loop, f"attached as /dev/{loop}", machine)


def _through(loop: str, attached: str, machine: Machine) -> list[str]:
    """How a loop device is used that is attached."""
    number = machine.sysfs.number(loop)
    above = uses_of_device(number, machine) if number is not None else []
    return [f"{attached}, {use}" for use in above] or [attached]
