"""The figures of one report line, and the lines of one step.

Every interval, then the measured time as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import polars as pl

from linerate.analysis.summary import MIB, NS_PER_MS
from linerate.report.vdbench.layout import later
from linerate.results import RunDirectory, StepRecord

NO_FIGURE = math.nan


@dataclass(frozen=True, slots=True)
class ReportRow:
    """One line of a report. Times in ms, CPU in percent of all CPUs, NaN where nothing was measured."""

    at: datetime
    label: str
    rate: float
    mib_s: float
    bytes_per_io: float
    read_percent: float
    resp: float
    read_resp: float
    write_resp: float
    resp_max: float
    resp_stddev: float
    queue_depth: float
    cpu_user: float = NO_FIGURE
    cpu_system: float = NO_FIGURE
    cpu_wait: float = NO_FIGURE
    cpu_idle: float = NO_FIGURE

    @property
    def cpu_used(self) -> float:
        """cpu% sys+u."""
        return self.cpu_user + self.cpu_system


@dataclass(frozen=True, slots=True)
class StepRows:
    """The lines of one step: of all volumes together, of each volume, of each workload, and of each host."""

    intervals: list[ReportRow]
    total: ReportRow | None
    volumes: dict[str, tuple[list[ReportRow], ReportRow | None]] = field(default_factory=dict)
    streams: dict[str, ReportRow | None] = field(default_factory=dict)
    """The measured time of each workload."""
    hosts: dict[str, ReportRow | None] = field(default_factory=dict)
    """The measured time of each host, if several made the load."""


_SUMS = ("ios", "bytes", "service_sum_ns", "service_sumsq_ns2")
_CPU = ("host_cpu_user_s", "host_cpu_system_s", "host_cpu_wait_s", "host_cpu_idle_s")


def step_rows(run: RunDirectory, record: StepRecord) -> StepRows:
    """The lines of one step."""
    of_step = pl.col("step") == record.key
    rows = run.intervals.filter(of_step)
    usage = run.usage.filter(of_step).sort("interval")
    intervals, total = _lines(record, rows, usage, cpu=True)
    by_volume = rows.partition_by("volume", as_dict=True, maintain_order=True)
    volumes = {str(name): _lines(record, part, usage, cpu=False) for (name,), part in by_volume.items()}
    by_stream = rows.partition_by("stream", as_dict=True, maintain_order=True)
    streams = {str(name): _lines(record, part, usage, cpu=False)[1] for (name,), part in by_stream.items()}
    hosts = {
        host: _lines(record, rows.filter(pl.col("volume").str.starts_with(f"{host}/")), usage, cpu=False)[1]
        for host in record.facts.get("cluster") or ()
    }
    return StepRows(intervals=intervals, total=total, volumes=volumes, streams=streams, hosts=hosts)


def _lines(
    record: StepRecord, rows: pl.DataFrame, usage: pl.DataFrame, *, cpu: bool
) -> tuple[list[ReportRow], ReportRow | None]:
    per_interval = usage.join(_sums(rows, ["interval"]), on="interval", how="left").sort("interval")
    intervals = [
        _row(record, str(figures["interval"] + 1), figures["end_s"] - figures["start_s"], figures, cpu=cpu)
        for figures in per_interval.iter_rows(named=True)
    ]
    measured = usage.filter(~pl.col("warmup"))
    if measured.is_empty():
        return intervals, None
    figures = _sums(rows.filter(~pl.col("warmup")), []).row(0, named=True)
    figures |= measured.select(*(pl.col(name).sum() for name in _CPU), pl.col("end_s").max()).row(
        0, named=True
    )
    first, last = measured["interval"][0] + 1, measured["interval"][-1] + 1
    seconds = float((measured["end_s"] - measured["start_s"]).sum())
    return intervals, _row(record, f"avg_{first}-{last}", seconds, figures, cpu=cpu)


def _sums(rows: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Sums of all I/Os, and of reads alone where a report splits them; one row when there is no key."""
    read = pl.col("op") == "read"
    wanted = [
        *(pl.col(name).sum() for name in _SUMS),
        pl.col("service_max_ns").max(),
        pl.col("ios").filter(read).sum().alias("read_ios"),
        pl.col("service_sum_ns").filter(read).sum().alias("read_sum_ns"),
    ]
    return rows.group_by(keys).agg(*wanted) if keys else rows.select(*wanted)


def _row(record: StepRecord, label: str, seconds: float, figures: dict[str, Any], *, cpu: bool) -> ReportRow:
    ios, read_ios = figures["ios"] or 0, figures["read_ios"] or 0
    sum_ns, read_ns = figures["service_sum_ns"] or 0, figures["read_sum_ns"] or 0
    mean_ns = _ratio(sum_ns, ios)
    variance = max(_ratio(figures["service_sumsq_ns2"] or 0.0, ios) - mean_ns**2, 0.0)
    user, system, wait, idle = _cpu_percent(figures) if cpu else (NO_FIGURE,) * 4
    return ReportRow(
        at=later(record.started_at, figures["end_s"]),
        label=label,
        rate=_ratio(ios, seconds),
        mib_s=_ratio(figures["bytes"] or 0, seconds) / MIB,
        bytes_per_io=_ratio(figures["bytes"] or 0, ios),
        read_percent=100 * _ratio(read_ios, ios),
        resp=mean_ns / NS_PER_MS,
        read_resp=_ratio(read_ns, read_ios) / NS_PER_MS,
        write_resp=_ratio(sum_ns - read_ns, ios - read_ios) / NS_PER_MS,
        resp_max=(figures["service_max_ns"] or 0) / NS_PER_MS,
        resp_stddev=math.sqrt(variance) / NS_PER_MS,
        queue_depth=_ratio(sum_ns / 1e9, seconds),
        cpu_user=user,
        cpu_system=system,
        cpu_wait=wait,
        cpu_idle=idle,
    )


def _cpu_percent(figures: dict[str, Any]) -> Iterator[float]:
    seconds = [float(figures[name] or 0.0) for name in _CPU]
    whole = sum(seconds)
    return (100 * part / whole if whole > 0 else NO_FIGURE for part in seconds)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
