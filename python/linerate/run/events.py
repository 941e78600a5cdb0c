"""What happens while a plan is carried out, one object per event.

A run reports its progress in this form: to a person, to a study, or to a program.
Units end the names; MB/s is `mib_s`, 2^20 bytes per second; latencies are service times unless the name says response.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from linerate.analysis import OpSummary, StepSummary
from linerate.analysis.summary import MIB, NS_PER_MS, measured
from linerate.model import Model
from linerate.results import IntervalSample, PathRow
from linerate.volumes import Clearance, VolumeState

VERSION: Literal["linerate.events/1"] = "linerate.events/1"

Ending = Literal["complete", "failed", "interrupted"]


class Record(Model):
    """Base of all events."""


class LatencyRecord(Record):
    """I/Os of one direction, or of both."""

    iops: float
    mib_s: float
    mean_ms: float
    max_ms: float
    stddev_ms: float
    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    p999_ms: float | None = None
    response_mean_ms: float
    """From the intended start; differs from mean_ms only where the load has a rate to keep."""
    response_p99_ms: float | None = None
    ios: int
    bytes: int
    errors: int


class Figures(Record):
    """What was measured over an interval or a step."""

    total: LatencyRecord
    read: LatencyRecord | None = None
    write: LatencyRecord | None = None
    queue_depth: float
    """I/Os in flight, mean."""
    cpu_percent: float | None
    """User and system time of the whole host, of all its CPUs."""
    cpu_system_percent: float | None
    retransmits: int
    """TCP segments sent again."""


class PathFigures(Record):
    """What went over one path, over all volumes that have a path of that name."""

    path: str
    state: str
    """active_optimized, standby, failed, ... at the end; mixed where volumes differ."""
    iops: float
    mib_s: float
    mean_ms: float
    max_ms: float
    queue_depth: float
    """I/Os in flight, mean."""
    requeued: int
    """I/Os that were in flight when it failed and were sent again elsewhere."""
    retransmits: int
    """TCP segments sent again."""


class RunStarted(Record):
    """A run directory was made."""

    schema_: Literal["linerate.events/1"] = Field(
        default=VERSION, alias="schema", serialization_alias="schema"
    )
    type: Literal["run_started"] = "run_started"
    name: str
    directory: str
    steps: int
    """Steps planned; a curve may drop some."""
    planned_s: float = 0.0
    """Time that they take, with pauses and warm-up."""


class VolumeFound(Record):
    """A volume that the run writes to."""

    volume: str
    target: str
    """Path or URL."""
    host: str = ""
    """Host of a cluster that looked at it; empty: this one."""
    size_bytes: int | None = None
    """Of the whole device; null: a file that is to be made."""
    state: VolumeState
    """Its contents: new, memory, virtual, blank, data, signed, in_use, unread."""
    found: str
    """In words."""


class VolumesFound(Record):
    """What the run writes to, before the first write."""

    type: Literal["volumes"] = "volumes"
    volumes: tuple[VolumeFound, ...]
    asked: bool
    """The user saw the list and confirmed."""


class RunNotice(Record):
    """Something the user should know before trusting the result."""

    type: Literal["notice"] = "notice"
    message: str


class StepStarted(Record):
    """A step's volumes are open and its load runs."""

    type: Literal["step_started"] = "step_started"
    step: str
    number: int
    of: int
    banner: str
    """As vdbench prints it."""
    warmup_s: float
    elapsed_s: float
    interval_s: float
    volumes: int
    driver: str
    """io_uring or epoll."""
    paced: bool = False
    """The load has a rate to keep: its I/Os can wait for their turn."""


class IntervalMeasured(Record):
    """An interval is over."""

    type: Literal["interval"] = "interval"
    step: str
    index: int
    start_s: float
    end_s: float
    warmup: bool
    figures: Figures
    paths: tuple[PathFigures, ...] = ()
    """Of volumes with several paths, in their order."""


class Happened(Record):
    """Something happened to a volume or to the run."""

    type: Literal["event"] = "event"
    step: str
    at_s: float
    kind: str
    volume: str
    path: str = ""
    """Of the volume; empty when it concerns none or all of them."""
    message: str
    blame: str


class StepEnded(Record):
    """A step is over; its figures leave the warm-up out."""

    type: Literal["step_ended"] = "step_ended"
    step: str
    state: Ending
    reason: str = ""
    figures: Figures | None = None
    paths: tuple[PathFigures, ...] = ()


RunEvent = RunStarted | VolumesFound | RunNotice | StepStarted | IntervalMeasured | Happened | StepEnded


def volumes_found(clearance: Clearance) -> VolumesFound:
    """What was found and given free."""
    found = tuple(
        VolumeFound(
            volume=look.volume,
            target=look.where,
            host=look.host,
            size_bytes=look.size_bytes,
            state=look.state,
            found=look.words,
        )
        for look in clearance.looks
    )
    return VolumesFound(volumes=found, asked=clearance.asked)


def figures(summary: StepSummary) -> Figures:
    """The shown part of a summary."""
    return Figures(
        total=_latency(summary.total),
        read=_latency(summary.read) if summary.read else None,
        write=_latency(summary.write) if summary.write else None,
        queue_depth=measured(summary.queue_depth),
        cpu_percent=summary.usage.cpu_busy_percent,
        cpu_system_percent=summary.usage.cpu_system_percent,
        retransmits=measured(summary.usage.retransmits),
    )


def path_figures(interval: IntervalSample) -> tuple[PathFigures, ...]:
    """The paths of an interval or a step by name, each over all volumes."""
    by_name: dict[str, list[PathRow]] = {}
    for row in interval.paths:
        by_name.setdefault(row.path, []).append(row)
    return tuple(_path(name, rows, interval.seconds or 1.0) for name, rows in by_name.items())


def _path(name: str, rows: Sequence[PathRow], seconds: float) -> PathFigures:
    ios = sum(row.read_ios + row.write_ios for row in rows)
    busy_ns = sum(row.service_sum_ns for row in rows)
    states = {row.state for row in rows}
    return PathFigures(
        path=name,
        state=states.pop() if len(states) == 1 else "mixed",
        iops=ios / seconds,
        mib_s=sum(row.read_bytes + row.write_bytes for row in rows) / seconds / MIB,
        mean_ms=busy_ns / ios / NS_PER_MS if ios else 0.0,
        max_ms=max(row.service_max_ns for row in rows) / NS_PER_MS,
        queue_depth=busy_ns / 1e9 / seconds,
        requeued=sum(row.requeued for row in rows),
        retransmits=sum(row.retransmits for row in rows),
    )


def _latency(op: OpSummary) -> LatencyRecord:
    quantile = {item.q: item.value_ms for item in op.quantiles}
    return LatencyRecord(
        iops=op.iops,
        mib_s=op.mib_s,
        mean_ms=measured(op.mean_ms),
        max_ms=measured(op.max_ms),
        stddev_ms=measured(op.stddev_ms),
        p50_ms=quantile.get(0.5),
        p95_ms=quantile.get(0.95),
        p99_ms=quantile.get(0.99),
        p999_ms=quantile.get(0.999),
        response_mean_ms=measured(op.response_mean_ms),
        response_p99_ms=next((item.value_ms for item in op.response_quantiles if item.q == 0.99), None),
        ios=op.ios,
        bytes=op.bytes,
        errors=measured(op.errors),
    )
