"""Targets of workers as volumes: disk1, disk2, .. in the order of the file.

Workers that do the same on a target share a volume, whose queue is as deep as theirs together. Workers that differ
have a volume each: `disk1.w2` is disk1 for the second worker of the file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from linerate.errors import UserError
from linerate.workload.iometer.configuration import SECTOR_BYTES, AccessSpecification, IcfWorker
from linerate.workload.overrides import Overrides
from linerate.workload.problems import Problems, SourceLocation, shorten
from linerate.workload.spec import VolumeSpec
from linerate.workload.url import NO_DEVICE, Target, in_dev, parse_target, path_of

_OUTSTANDING_MAX = 65_536


@dataclass(frozen=True, slots=True)
class IcfDisk:
    """A target of the file."""

    name: str
    text: str
    place: SourceLocation


@dataclass(frozen=True, slots=True)
class DiskUse:
    """What one worker of a run does with a disk."""

    number: int
    """Of the worker in the file, from 1."""
    worker: IcfWorker
    disk: IcfDisk
    specification: AccessSpecification
    depth: int

    @property
    def load(self) -> tuple[object, ...]:
        """Equal for workers that do the same on a disk."""
        lines = tuple((*line.text.split(","),) for line in self.specification.lines)
        worker = self.worker
        part = (worker.size_sectors, worker.first_sector, worker.pattern)
        return lines, self.depth, *part, worker.transactions


def key_of(target: str) -> str:
    """Targets with the same key are one disk. Of `C: "System"` Iometer compares the drive alone."""
    return (target[:2] if target[1:2] == ":" else target).lower()


def disks_of(workers: Sequence[IcfWorker]) -> dict[tuple[int, str], IcfDisk]:
    """All disks by manager and key, numbered in the order of the file: each manager has disks of its own."""
    disks: dict[tuple[int, str], IcfDisk] = {}
    for worker in workers:
        for place, text in worker.targets:
            key = (worker.manager, key_of(text))
            disks.setdefault(key, IcfDisk(f"disk{len(disks) + 1}", text, place))
    return disks


@dataclass(slots=True)
class DiskVolumes:
    """Makes the volumes of runs. apart: names of disks whose workers have a volume each."""

    overrides: Overrides
    apart: frozenset[str]
    problems: Problems
    _targets: dict[tuple[str, bool], Target | None] = field(default_factory=dict)

    def name(self, use: DiskUse) -> str:
        """The volume that a worker has of a disk."""
        return f"{use.disk.name}.w{use.number}" if use.disk.name in self.apart else use.disk.name

    def make(self, uses: Sequence[DiskUse]) -> list[VolumeSpec] | None:
        """The volumes of one run, or None after a problem was noted."""
        by_name: dict[str, list[DiskUse]] = {}
        for use in uses:
            by_name.setdefault(self.name(use), []).append(use)
        made = [self._volume(name, those) for name, those in by_name.items()]
        return None if any(one is None for one in made) else [one for one in made if one is not None]

    def _volume(self, name: str, uses: Sequence[DiskUse]) -> VolumeSpec | None:
        use = uses[0]
        region = self._region(use)
        outstanding = sum(one.depth for one in uses)
        if outstanding > _OUTSTANDING_MAX:
            what = f"{use.disk.name}: {outstanding:,} I/Os in flight; at most {_OUTSTANDING_MAX:,}"
            self.problems.error(use.worker.place, what, "write fewer outstanding I/Os")
            return None
        target = self._target(name, use, sized=region is not None and region[1] is not None)
        if target is None or region is None:
            return None
        if use.worker.transactions and target.kind == "smb":
            what = f"worker {shorten(use.worker.name)}: test connection rate ENABLED is not supported of a file of a "
            self.problems.error(
                use.worker.place, f"{what}share: it stays open through a run", "write DISABLED"
            )
            return None
        return VolumeSpec(
            name=name,
            url=target.url,
            user=target.user,
            secret=target.secret,
            mutual_user=target.mutual_user,
            mutual_secret=target.mutual_secret,
            first_byte=region[0],
            size_bytes=region[1],
            outstanding=outstanding,
            create=target.can_be_made and region[1] is not None,
            shares_device=use.disk.name in self.apart,
            reopen_after_ios=use.worker.transactions,
            iscsi=target.iscsi,
        )

    def _region(self, use: DiskUse) -> tuple[int, int | None] | None:
        """First byte and size of the used part: it begins on the grid, because Iometer counts that from the disk's
        first byte."""
        worker = use.worker
        grid = use.specification.lines[0].grid_bytes
        start = worker.first_sector * SECTOR_BYTES
        first_byte = -(-start // grid) * grid
        if not worker.size_sectors:
            return first_byte, None
        size_bytes = worker.size_sectors * SECTOR_BYTES - (first_byte - start)
        largest = max(line.size_bytes for line in use.specification.lines)
        if size_bytes < largest:
            what = f"worker {shorten(worker.name)}: {worker.size_sectors:,} sectors do not hold an I/O of"
            what += f" {largest:,} bytes of {shorten(use.specification.name)}"
            self.problems.error(worker.place, what, "write a larger 'Disk maximum size")
            return None
        return first_byte, size_bytes

    def _target(self, volume: str, use: DiskUse, *, sized: bool) -> Target | None:
        if (volume, sized) not in self._targets:
            self._targets[volume, sized] = self._looked_up(volume, use.disk, sized=sized)
        return self._targets[volume, sized]

    def _looked_up(self, volume: str, disk: IcfDisk, *, sized: bool) -> Target | None:
        luns, shown = self.overrides.luns, shorten(disk.text)
        try:
            mapped = luns.resolve(volume if volume in luns.entries else disk.name, disk.text)
            if mapped is None and not disk.text.startswith(("/", "iscsi://", "smb://", "null:", "file:")):
                what = f"target {shown}: a disk of the host where Iometer ran"
                self.problems.error(
                    disk.place, what, f"say where it is: --map {disk.name}=TARGET, or --target"
                )
                return None
            target = parse_target(mapped or disk.text)
        except UserError as error:
            self.problems.error(disk.place, f"target {shown}: {error.message}", error.hint)
            return None
        path = path_of(target.url)
        if target.kind != "file" or not path or os.path.exists(path):
            return target
        if in_dev(path):
            self.problems.error(disk.place, f"target {shown}: {path}: no such device", NO_DEVICE)
        elif not sized and not (self.overrides.create and self.overrides.size_bytes):
            hint = "correct the target, or give --create and --size; a 'Disk maximum size has a file made too"
            self.problems.error(disk.place, f"target {shown}: {path} does not exist", hint)
        else:
            what = f"target {shown}: {path} is made unwritten; Iometer would fill its file first"
            self.problems.notice(disk.place, what)
            return target
        return None


def apart_disks(groups: Sequence[Sequence[DiskUse]]) -> frozenset[str]:
    """Disks on which workers of one run differ, or that each of them opens for itself."""
    apart: set[str] = set()
    for uses in groups:
        first: dict[str, DiskUse] = {}
        for use in uses:
            other = first.setdefault(use.disk.name, use)
            if other.load != use.load or (other is not use and use.worker.transactions is not None):
                apart.add(use.disk.name)
    return frozenset(apart)


def check_maps(
    overrides: Overrides, disks: Mapping[tuple[int, str], IcfDisk], names: Sequence[tuple[str, str]]
) -> None:
    """Raises UserError for a --map of a volume that is not there. names: (volume, target) of disks that are apart."""
    overrides.luns.check([*((disk.name, disk.text) for disk in disks.values()), *names])
