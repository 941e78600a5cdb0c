"""What the disks behind the arrays did under each case: the table that says why RAID levels differ."""

from __future__ import annotations

from dataclasses import dataclass

from linerate.report import figures
from linerate.report.panels.arrays import WARN_PERCENT
from linerate.report.study.model import CasePart, StudyPage, WorkloadPart

COLUMNS = {
    "capacity_gib": "capacity, GiB",
    "disk_iops": "disk IOPS",
    "disk_ios_per_io": "disk I/Os per host I/O",
    "disk_reads_per_read": "disk reads per host read",
    "disk_writes_per_write": "disk writes per host write",
    "disk_written_per_byte": "bytes written per byte",
    "disk_read_per_byte": "bytes read per byte written",
    "full_stripe_percent": "full stripes, %",
    "disk_io_kib": "KiB per disk I/O",
    "disk_service_ms": "work per disk I/O, ms",
    "disk_queue": "queue of a disk",
    "disk_busy_percent": "disks busy, %",
    "pool_used_percent": "pool full, %",
    "task_percent": "task done, %",
    "replication_s_per_gib": "replication, s/GiB",
}
"""Figures of `linerate.analysis.arrays`; what was not measured is left out."""


@dataclass(frozen=True, slots=True)
class DiskFigure:
    """One figure of one case; marked if it needs attention."""

    shown: str
    marked: bool = False


@dataclass(frozen=True, slots=True)
class DisksTable:
    """Names of the columns, and a row of cells for every case that was measured."""

    columns: tuple[str, ...]
    rows: tuple[tuple[CasePart, tuple[DiskFigure, ...]], ...]


def disks_table(page: StudyPage, part: WorkloadPart) -> DisksTable | None:
    """The table of one workload; None if no disks were watched."""
    values = {
        case.name: {metric: page.typical(case.name, part.name, metric) for metric in COLUMNS}
        for case in page.cases
    }
    there = [metric for metric in COLUMNS if any(one[metric] is not None for one in values.values())]
    rows = tuple(
        (case, tuple(_cell(metric, values[case.name][metric]) for metric in there))
        for case in page.cases
        if any(values[case.name][metric] is not None for metric in there)
    )
    return DisksTable(tuple(COLUMNS[metric] for metric in there), rows) if rows else None


def _cell(metric: str, value: float | None) -> DiskFigure:
    return DiskFigure(
        figures.significant(value), metric == "pool_used_percent" and (value or 0.0) > WARN_PERCENT
    )
