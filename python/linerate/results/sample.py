"""What one interval of a run measured, as small frozen values.

An `IntervalSample` is the unit that travels from the data plane into a run directory and back out of it. Counts and
sums are kept, never averages or percentiles: all figures that are shown later are derived from these, so that
intervals, streams and volumes can be added up without lying. Times inside an interval are seconds since the
start of its step.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Literal, cast

from linerate.results.histogram import LatencyHistogram

if TYPE_CHECKING:
    import linerate._core as _core

Op = Literal["read", "write"]
LatencyKind = Literal["service", "response"]
OPS: tuple[Op, ...] = ("read", "write")
KINDS: tuple[LatencyKind, ...] = ("service", "response")


@dataclass(frozen=True, slots=True)
class CounterRow:
    """Counters of one (stream, volume, operation) over one interval. Flushes come after writes, and are no I/Os."""

    stream: str
    volume: str
    op: Op
    ios: int
    bytes: int
    errors: int = 0
    service_sum_ns: int = 0
    service_sumsq_ns2: float = 0.0
    service_max_ns: int = 0
    response_sum_ns: int = 0
    response_max_ns: int = 0
    flushes: int = 0
    flush_sum_ns: int = 0
    flush_max_ns: int = 0


@dataclass(frozen=True, slots=True)
class LatencySample:
    """One latency distribution in nanoseconds.

    `volume` is empty for the distributions of a whole stream, and `stream` is empty for those of a whole
    volume.
    """

    op: Op
    kind: LatencyKind
    histogram: LatencyHistogram
    stream: str = ""
    volume: str = ""


@dataclass(frozen=True, slots=True)
class PathRow:
    """What one path of a volume carried over one interval.

    Service times are those of the path: an I/O that was sent again elsewhere counts there. `service_sum_ns` over
    the wall time is the mean number of I/Os in flight.
    """

    volume: str
    path: str
    state: str
    read_ios: int = 0
    write_ios: int = 0
    read_bytes: int = 0
    write_bytes: int = 0
    service_sum_ns: int = 0
    service_max_ns: int = 0
    requeued: int = 0
    retransmits: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0


ArrayPart = Literal["disk", "raid_set", "pool", "volume"]


@dataclass(frozen=True, slots=True)
class ArrayRow:
    """What one disk, RAID set, pool or volume of an array did in one interval, and how it was at its end.

    Counts are of `seconds`, the time between the two readings of the array's counters: they are read when an interval
    arrives, a little after its end. `member_of` is the RAID set of a disk, the pool of a volume. `response_ns` is the
    sum over all reads and writes of a disk from call to completion; over the time it is the mean number outstanding.
    `done` is how much of the task (initialise, rebuild, scrub) is over, 0 to 1. What a part does not count is 0, what
    it does not have is empty.
    """

    array: str
    part: ArrayPart
    name: str
    seconds: float
    member_of: str = ""
    kind: str = ""
    state: str = ""
    size_bytes: int = 0
    used_bytes: int = 0
    provisioned_bytes: int = 0
    warning: bool = False
    reads: int = 0
    writes: int = 0
    read_bytes: int = 0
    write_bytes: int = 0
    flushes: int = 0
    errors: int = 0
    response_ns: int = 0
    busy_ns: int = 0
    full_stripe_writes: int = 0
    read_modify_writes: int = 0
    reconstruct_writes: int = 0
    degraded_reads: int = 0
    mismatches_found: int = 0
    mismatches_mended: int = 0
    task: str = ""
    done: float = 0.0


@dataclass(frozen=True, slots=True)
class Usage:
    """What the load host and its TCP connections did during one interval;

    sums unless the name says otherwise.
    """

    load_cpu_user_s: float = 0.0
    load_cpu_system_s: float = 0.0
    load_cpu_polled_s: float = 0.0
    host_cpu_user_s: float = 0.0
    host_cpu_system_s: float = 0.0
    host_cpu_idle_s: float = 0.0
    host_cpu_wait_s: float = 0.0
    tsc_hz: float = 0.0
    retransmits: int = 0
    data_segments_sent: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    busy_us: int = 0
    rwnd_limited_us: int = 0
    sndbuf_limited_us: int = 0
    rtt_us_mean: float = 0.0
    late_arrivals: int = 0
    backlog_max: int = 0
    outstanding_mean: float = 0.0


@dataclass(frozen=True, slots=True)
class TimedEvent:
    """Something that happened at a moment of the run:

    a lost connection, a wrong block, a step's start or end.
    """

    at_s: float
    kind: str
    message: str
    volume: str = ""
    blame: str = ""
    step: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class IntervalSample:
    """One interval of one step. The summary of a step has the same shape, over the whole measured time."""

    index: int
    start_s: float
    end_s: float
    warmup: bool
    rows: tuple[CounterRow, ...]
    usage: Usage = field(default_factory=Usage)
    latencies: tuple[LatencySample, ...] = ()
    events: tuple[TimedEvent, ...] = ()
    paths: tuple[PathRow, ...] = ()
    arrays: tuple[ArrayRow, ...] = ()

    @property
    def seconds(self) -> float:
        """Length of the interval in seconds."""
        return self.end_s - self.start_s

    @property
    def ios(self) -> int:
        """Completed I/Os of all streams, volumes and operations."""
        return sum(row.ios for row in self.rows)


def interval_from_core(core: _core.Interval) -> IntervalSample:
    """The one adapter from the compiled module's interval (a summary's `total` too) to `IntervalSample`."""
    rows, paths = core.rows, core.paths
    columns = [rows[name] for name in _ROW_FIELDS]  # type: ignore[literal-required]
    path_columns = [paths[name] for name in _PATH_FIELDS]  # type: ignore[literal-required]
    return IntervalSample(
        index=core.index,
        start_s=core.start_s,
        end_s=core.end_s,
        warmup=core.warmup,
        rows=tuple(CounterRow(*values) for values in zip(*columns, strict=True)),
        usage=Usage(**core.usage),
        latencies=tuple(
            LatencySample(
                stream=stream,
                volume=volume,
                op=cast("Op", op),
                kind=cast("LatencyKind", kind),
                histogram=histogram,
            )
            for stream, volume, op, kind, histogram in core.latencies
        ),
        events=tuple(TimedEvent(**event) for event in core.events),
        paths=tuple(PathRow(*values) for values in zip(*path_columns, strict=True)),
    )


_ROW_FIELDS = tuple(item.name for item in fields(CounterRow))
_PATH_FIELDS = tuple(item.name for item in fields(PathRow))
