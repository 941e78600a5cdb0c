"""What the disks, RAID sets, pools and volumes behind an array did over some time, and what each host I/O cost there.

A disk's figures are its own. A RAID set's are those of its disks together, with what it counted of its stripes: a
host's write is more than one on the disks, and how many more is what RAID levels differ in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import cast

import polars as pl

from linerate.analysis.summary import GIB, MIB, NS_PER_MS
from linerate.results import ArrayRow, RunDirectory
from linerate.results.sample import ArrayPart

_WITHOUT_PARITY = ("raid0", "raid1", "raid10")
_KEY = ("array", "part", "name")
_NOW = (
    "member_of", "kind", "state", "size_bytes", "used_bytes", "provisioned_bytes", "warning", "task", "done",
)  # fmt: skip
"""As they were at the end; everything else adds up."""
_SUMMED = tuple(field.name for field in fields(ArrayRow) if field.name not in (*_KEY, *_NOW))


@dataclass(frozen=True, slots=True)
class PartUse:
    """One disk, RAID set, pool or volume: `row` is its counters over the time, and how it was at its end.

    Of a RAID set the disks' counters are those of its `disks` disks together, hot spares left out.
    """

    row: ArrayRow
    disks: int = 1

    @property
    def ios(self) -> int:
        """Reads and writes."""
        return self.row.reads + self.row.writes

    @property
    def iops(self) -> float:
        """Reads and writes per second."""
        return self.ios / self.row.seconds if self.row.seconds else 0.0

    @property
    def mib_s(self) -> float:
        """MB/s, read and written."""
        moved = self.row.read_bytes + self.row.write_bytes
        return moved / self.row.seconds / MIB if self.row.seconds else 0.0

    @property
    def queue(self) -> float:
        """I/Os outstanding on each disk, as a mean."""
        return self.row.response_ns / 1e9 / self.row.seconds / self.disks if self.row.seconds else 0.0

    @property
    def service_ms(self) -> float | None:
        """Time at work per I/O."""
        return self.row.busy_ns / self.ios / NS_PER_MS if self.ios else None

    @property
    def response_ms(self) -> float | None:
        """Time per I/O from call to completion, the queue included."""
        return self.row.response_ns / self.ios / NS_PER_MS if self.ios else None

    @property
    def busy_percent(self) -> float:
        """Share of the time at work, as a mean over the disks."""
        return 100 * self.row.busy_ns / 1e9 / self.row.seconds / self.disks if self.row.seconds else 0.0

    @property
    def stripe_writes(self) -> int:
        """Writes to stripes of a set with parity; a set without parity has none."""
        if self.row.kind in _WITHOUT_PARITY:
            return 0
        return self.row.full_stripe_writes + self.row.read_modify_writes + self.row.reconstruct_writes

    @property
    def full_stripe_percent(self) -> float | None:
        """Of these, such as needed no read; None where no stripe was written."""
        return 100 * self.row.full_stripe_writes / self.stripe_writes if self.stripe_writes else None

    @property
    def used_percent(self) -> float | None:
        """Of a pool or volume, the part that holds something."""
        return 100 * self.row.used_bytes / self.row.size_bytes if self.row.size_bytes else None


@dataclass(frozen=True, slots=True)
class ArrayUse:
    """All parts of the arrays of a run."""

    disks: tuple[PartUse, ...]
    raid_sets: tuple[PartUse, ...]
    pools: tuple[PartUse, ...]
    volumes: tuple[PartUse, ...]

    @property
    def working(self) -> tuple[PartUse, ...]:
        """The disks that hold data or parity."""
        return tuple(disk for disk in self.disks if disk.row.state != "spare")


def array_use(run: RunDirectory, step: str) -> ArrayUse | None:
    """What the arrays did in the measured time of a step; None if their disks were not watched."""
    return merged_use([measured(run, step)])


def measured(run: RunDirectory, step: str) -> pl.DataFrame:
    """The rows of a step's measured time."""
    return run.arrays.filter((pl.col("step") == step) & ~pl.col("warmup"))


def merged_use(tables: Iterable[pl.DataFrame]) -> ArrayUse | None:
    """Several runs as one."""
    whole = [table for table in tables if not table.is_empty()]
    if not whole:
        return None
    summed = (
        pl.concat(whole)
        .sort("step", "interval", maintain_order=True)
        .group_by(_KEY, maintain_order=True)
        .agg(pl.col(_SUMMED).sum(), pl.col(_NOW).last())
    )
    by_part: dict[ArrayPart, list[PartUse]] = {"disk": [], "raid_set": [], "pool": [], "volume": []}
    for row in summed.iter_rows(named=True):
        by_part[cast("ArrayPart", row["part"])].append(PartUse(ArrayRow(**row)))
    disks = by_part["disk"]
    return ArrayUse(
        disks=tuple(disks),
        raid_sets=tuple(_with_disks(one, disks) for one in by_part["raid_set"]),
        pools=tuple(by_part["pool"]),
        volumes=tuple(by_part["volume"]),
    )


_OF_DISKS = ("reads", "writes", "read_bytes", "write_bytes", "flushes", "errors", "response_ns", "busy_ns")


def _with_disks(raid_set: PartUse, disks: Sequence[PartUse]) -> PartUse:
    of_set = [
        disk.row
        for disk in disks
        if (disk.row.array, disk.row.member_of) == (raid_set.row.array, raid_set.row.name)
        and disk.row.state != "spare"
    ]
    sums = {name: sum(getattr(row, name) for row in of_set) for name in _OF_DISKS}
    return PartUse(replace(raid_set.row, **sums), disks=max(len(of_set), 1))


def array_figures(run: RunDirectory, step: str) -> dict[str, float]:
    """The figures of one step that a study compares and explains with; empty if the disks were not watched.

    `disk_iops`, `disk_mib_s`: of all disks together. `disk_queue`, `disk_busy_percent`: of each, as a mean.
    `disk_service_ms`: time at work per I/O. `disk_io_kib`: KiB of each. `disk_ios_per_io`: reads and writes of disks
    per I/O of a host. `disk_writes_per_write`, `disk_reads_per_read`: writes (reads) of disks per write (read) of a
    host; what parity has to read before a write is among the reads. `disk_written_per_byte`: bytes written to disks per
    byte that a host wrote; `disk_read_per_byte`: bytes read from them, of loads that only write. `full_stripe_percent`:
    of the writes to stripes with parity. `capacity_gib`: what the RAID sets hold. `pool_used_percent`: of the fullest
    pool. `task_percent`: how far the slowest task of a RAID set is.
    """
    use = array_use(run, step)
    if use is None:
        return {}
    seconds = max((disk.row.seconds for disk in use.disks), default=0.0)
    figures = (
        {"capacity_gib": sum(one.row.size_bytes for one in use.raid_sets) / GIB} if use.raid_sets else {}
    )
    disks = use.working
    if disks and seconds:
        figures["disk_iops"] = sum(disk.iops for disk in disks)
        figures["disk_mib_s"] = sum(disk.mib_s for disk in disks)
        figures["disk_queue"] = sum(disk.queue for disk in disks) / len(disks)
        figures["disk_busy_percent"] = sum(disk.busy_percent for disk in disks) / len(disks)
        if ios := sum(disk.ios for disk in disks):
            figures["disk_service_ms"] = sum(disk.row.busy_ns for disk in disks) / ios / NS_PER_MS
            moved = sum(disk.row.read_bytes + disk.row.write_bytes for disk in disks)
            figures["disk_io_kib"] = moved / ios / 1024
        figures |= _per_host_io(run, step, disks)
    if stripes := sum(one.stripe_writes for one in use.raid_sets):
        full = sum(one.row.full_stripe_writes for one in use.raid_sets if one.stripe_writes)
        figures["full_stripe_percent"] = 100 * full / stripes
    if used := [percent for pool in use.pools if (percent := pool.used_percent) is not None]:
        figures["pool_used_percent"] = max(used)
    if tasks := [100 * one.row.done for one in use.raid_sets if one.row.task]:
        figures["task_percent"] = min(tasks)
    return figures


def _per_host_io(run: RunDirectory, step: str, disks: Sequence[PartUse]) -> dict[str, float]:
    """Rates are compared, not counts: the array's counters are read a little after the ends of the intervals."""
    usage = run.measured_usage(step)
    seconds = float((usage["end_s"] - usage["start_s"]).sum()) if usage.height else 0.0
    rows = run.measured_rows(step)
    hosts_writes = rows.filter(pl.col("op") == "write")
    ios, writes, written = (
        float(counts.sum()) for counts in (rows["ios"], hosts_writes["ios"], hosts_writes["bytes"])
    )
    reads = ios - writes
    figures: dict[str, float] = {}
    if ios and seconds:
        figures["disk_ios_per_io"] = sum(disk.iops for disk in disks) * seconds / ios
    if reads and seconds:
        figures["disk_reads_per_read"] = _per_s(disks, "reads") * seconds / reads
    if writes and seconds:
        figures["disk_writes_per_write"] = _per_s(disks, "writes") * seconds / writes
        figures["disk_written_per_byte"] = _per_s(disks, "write_bytes") * seconds / written
        if not reads:
            figures["disk_read_per_byte"] = _per_s(disks, "read_bytes") * seconds / written
    return figures


def _per_s(disks: Sequence[PartUse], counter: str) -> float:
    """One of the counters of all disks together, per second."""
    return sum(float(getattr(disk.row, counter)) / disk.row.seconds for disk in disks)
