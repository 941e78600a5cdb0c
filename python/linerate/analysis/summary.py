"""Summary rows: the figures that a step, a stream, a volume or a single interval comes down to."""

from __future__ import annotations

from dataclasses import dataclass

from linerate.results import Interval, RunDirectory
from linerate.results.manifest import State


@dataclass(frozen=True, slots=True)
class Quantile:
    """A quantile of a latency distribution.

    Not `honest` when fewer than 100 values lie beyond it: show it greyed.
    """

    q: float
    value_ms: float
    beyond: int

    @property
    def honest(self) -> bool:
        """Whether enough values lie beyond the quantile to state it."""
        return self.beyond >= 100


@dataclass(frozen=True, slots=True)
class OpSummary:
    """Reads, writes or both over some time.

    MB/s means 2^20 bytes per second; latencies are service times in ms.
    """

    ios: int
    bytes: int
    errors: int
    iops: float
    mib_s: float
    mean_ms: float
    stddev_ms: float
    max_ms: float
    response_mean_ms: float
    response_max_ms: float
    quantiles: tuple[Quantile, ...] = ()
    response_quantiles: tuple[Quantile, ...] = ()

    def quantile(self, q: float) -> Quantile | None:
        """The quantile `q` (0.5, 0.95, 0.99 or 0.999) of service time, if a distribution was recorded."""
        return next((item for item in self.quantiles if item.q == q), None)


@dataclass(frozen=True, slots=True)
class UsageSummary:
    """CPU, TCP and generator figures over some time.

    Percentages are of all CPUs of the host (vdbench's cpu%).
    """

    cpu_busy_percent: float | None
    cpu_system_percent: float | None
    load_cpu_s: float
    cycles_per_byte: float | None
    cpu_us_per_io: float | None
    retransmits: int
    retransmit_percent: float | None
    busy_s: float
    rwnd_limited_percent: float | None
    sndbuf_limited_percent: float | None
    rtt_us_mean: float
    late_arrivals: int
    backlog_max: int


@dataclass(frozen=True, slots=True)
class PartSummary:
    """One volume or one stream of a step."""

    name: str
    total: OpSummary
    read: OpSummary | None
    write: OpSummary | None
    queue_depth: float


@dataclass(frozen=True, slots=True)
class StepSummary:
    """One step over its measured time (warm-up left out)."""

    step: str
    label: str
    for_loops: str
    requested_rate: str
    state: State
    seconds: float
    intervals: int
    total: OpSummary
    read: OpSummary | None
    write: OpSummary | None
    queue_depth: float
    queue_depth_asked: int | None
    usage: UsageSummary
    volumes: tuple[PartSummary, ...] = ()
    streams: tuple[PartSummary, ...] = ()


def summarise(run: RunDirectory) -> tuple[StepSummary, ...]:
    """The summary of every step of a run, in order."""
    raise NotImplementedError


def summarise_interval(interval: Interval, step: str = "") -> StepSummary:
    """The summary of one interval as it arrives, for the live table. Volumes and streams are left out."""
    raise NotImplementedError
