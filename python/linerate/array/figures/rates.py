"""What disks did between two reports."""

from __future__ import annotations

from dataclasses import dataclass

from linerate.array.control.report import DiskReport


@dataclass(frozen=True, slots=True)
class Rates:
    """A disk's, or several disks', work per second."""

    reads: float
    writes: float
    mib_s: float
    outstanding: float
    """Mean number of operations at the disk."""
    service_us: float | None
    """Mean time of a read or write; none if there was none."""
    busy: float
    """Share of time with at least one operation; of several disks the mean."""


def rates(before: tuple[DiskReport, ...], after: tuple[DiskReport, ...], seconds: float) -> Rates | None:
    """Of the disks that both reports have; None if there are none, or the array was started in between."""
    earlier = {disk.name: disk for disk in before}
    pairs = [(earlier[disk.name], disk) for disk in after if disk.name in earlier]
    if not pairs or seconds <= 0 or any(new.response_ns < old.response_ns for old, new in pairs):
        return None
    reads = sum(new.reads - old.reads for old, new in pairs)
    writes = sum(new.writes - old.writes for old, new in pairs)
    moved = sum(new.read_bytes - old.read_bytes + new.write_bytes - old.write_bytes for old, new in pairs)
    response_ns = sum(new.response_ns - old.response_ns for old, new in pairs)
    busy_ns = sum(new.busy_ns - old.busy_ns for old, new in pairs)
    return Rates(
        reads=reads / seconds,
        writes=writes / seconds,
        mib_s=moved / seconds / (1 << 20),
        outstanding=response_ns / seconds / 1e9,
        service_us=response_ns / (reads + writes) / 1e3 if reads + writes else None,
        busy=min(1.0, busy_ns / seconds / 1e9 / len(pairs)),
    )
