"""Summary rows: the figures that a step, a stream, a volume or a single interval comes down to.

Everything is derived from sums and merged distributions over the measured time. MB/s means 2^20 bytes per
second. Latencies are service times (submit to complete) in milliseconds unless a name says response (intended
start to complete). The queue depth is the achieved one: the sum of all service times over the elapsed time,
as vdbench reports it. The figures of an imported run are those of its tool.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from typing import Any, TypeVar

import polars as pl

from linerate.errors import InternalError
from linerate.results import (
    GivenFigures,
    GivenStep,
    IntervalSample,
    LatencyHistogram,
    RunDirectory,
    StepRecord,
)
from linerate.results.histogram import merged
from linerate.results.manifest import State
from linerate.results.sample import OPS, LatencyKind, Op, Usage

MIB = 1 << 20
GIB = 1 << 30
NS_PER_MS = 1e6
QUANTILES = (0.5, 0.95, 0.99, 0.999)
RELIABLE_BEYOND = 100
_Figure = TypeVar("_Figure", int, float)


@dataclass(frozen=True, slots=True)
class Quantile:
    """A quantile of a latency distribution.

    Not `reliable` when too few values are above it: show it greyed.
    """

    q: float
    value_ms: float
    beyond: int

    @property
    def reliable(self) -> bool:
        """Whether at least 100 values are above the quantile."""
        return self.beyond >= RELIABLE_BEYOND

    @property
    def name(self) -> str:
        """`p50`, `p99.9`: the quantile in percent."""
        return f"p{self.q * 100:.6g}"


@dataclass(frozen=True, slots=True)
class OpSummary:
    """Reads, writes or both over some time. None is what another tool does not give."""

    ios: int
    bytes: int
    errors: int | None
    iops: float
    mib_s: float
    mean_ms: float | None
    stddev_ms: float | None
    max_ms: float | None
    response_mean_ms: float | None
    response_max_ms: float | None
    queue_depth: float | None
    quantiles: tuple[Quantile, ...] = ()
    response_quantiles: tuple[Quantile, ...] = ()

    def quantile(self, q: float) -> Quantile | None:
        """The quantile `q` (one of `QUANTILES`) of service time, if a distribution was recorded."""
        return next((item for item in self.quantiles if item.q == q), None)

    def response_quantile(self, q: float) -> Quantile | None:
        """The quantile `q` of response time, from the intended start."""
        return next((item for item in self.response_quantiles if item.q == q), None)


@dataclass(frozen=True, slots=True)
class UsageSummary:
    """CPU, TCP and generator figures over some time; None where nothing was measured.

    CPU percentages are of all CPUs of the host (vdbench's cpu%). The limited percentages are shares of the
    time in which the sessions had data to send (TCP_INFO).
    """

    cpu_busy_percent: float | None
    cpu_system_percent: float | None
    load_cpu_s: float | None
    load_cores: float | None
    polling_cores: float | None
    cycles_per_byte: float | None
    host_cycles_per_byte: float | None
    cpu_us_per_io: float | None
    retransmits: int | None
    retransmits_percent: float | None
    rwnd_limited_percent: float | None
    sndbuf_limited_percent: float | None
    rtt_us_mean: float | None
    late_arrivals: int | None
    backlog_max: int | None


@dataclass(frozen=True, slots=True)
class PartSummary:
    """One volume or one stream of a step."""

    name: str
    total: OpSummary
    read: OpSummary | None
    write: OpSummary | None


@dataclass(frozen=True, slots=True)
class StepSummary:
    """One step over its measured time (warm-up left out)."""

    step: str
    name: str
    label: str
    for_loops: str
    requested_rate: str
    state: State
    seconds: float
    intervals: int
    total: OpSummary
    read: OpSummary | None
    write: OpSummary | None
    queue_depth_asked: int | None
    usage: UsageSummary
    volumes: tuple[PartSummary, ...] = ()
    streams: tuple[PartSummary, ...] = ()
    rate_asked_iops: float | None = None
    read_percent_given: float | None = None

    @property
    def queue_depth(self) -> float | None:
        """Achieved queue depth over all volumes."""
        return self.total.queue_depth

    @property
    def paced(self) -> bool:
        """Whether the load had a rate to keep: an I/O can then wait for its turn, and response is not service time."""
        return self.rate_asked_iops is not None

    @property
    def answer_mean_ms(self) -> float | None:
        """What an application waits on average: response time of a paced load, service time of any other."""
        return self.total.response_mean_ms if self.paced else self.total.mean_ms

    def answer_quantile(self, q: float) -> Quantile | None:
        """The same as a quantile: one of `QUANTILES`, if a distribution was recorded."""
        return self.total.response_quantile(q) if self.paced else self.total.quantile(q)

    @property
    def read_percent(self) -> float | None:
        """Share of reads in the I/Os; 0 without I/O. None where another tool does not give it."""
        if self.read_percent_given is not None:
            return self.read_percent_given
        if self.total.ios and self.read is None and self.write is None:
            return None
        return 100 * self.read.ios / self.total.ios if self.read and self.total.ios else 0.0


def measured(figure: _Figure | None) -> _Figure:
    """A figure that every run of Linerate has. Raises InternalError for one that another tool did not give."""
    if figure is None:
        raise InternalError("a figure of an imported run is used that its tool does not give")
    return figure


@dataclass(slots=True)
class _Sums:
    """What adds up over rows."""

    ios: int = 0
    bytes: int = 0
    errors: int = 0
    service_sum_ns: int = 0
    service_sumsq_ns2: float = 0.0
    service_max_ns: int = 0
    response_sum_ns: int = 0
    response_max_ns: int = 0

    def add(self, row: Any) -> None:
        """Add a `Row`, other sums, or a row of a table."""
        self.ios += row.ios
        self.bytes += row.bytes
        self.errors += row.errors
        self.service_sum_ns += row.service_sum_ns
        self.service_sumsq_ns2 += row.service_sumsq_ns2 or 0.0
        self.service_max_ns = max(self.service_max_ns, row.service_max_ns)
        self.response_sum_ns += row.response_sum_ns
        self.response_max_ns = max(self.response_max_ns, row.response_max_ns)


_SUMMED = ("ios", "bytes", "errors", "service_sum_ns", "service_sumsq_ns2", "response_sum_ns")
_LARGEST = ("service_max_ns", "response_max_ns")


def summarise(run: RunDirectory) -> tuple[StepSummary, ...]:
    """The summary of every step of a run, in order."""
    return tuple(summarise_step(run, step) for step in run.manifest.steps)


def summarise_step(run: RunDirectory, record: StepRecord) -> StepSummary:
    """The summary of one step of a run."""
    if record.given is not None:
        return _summary_of_given(record, record.given)
    usage = run.measured_usage(record.key)
    seconds = float((usage["end_s"] - usage["start_s"]).sum()) if usage.height else 0.0
    sums = dict(_sums_by(run.measured_rows(record.key), ("op",)))
    state = run.state if record.state == "running" else record.state

    def of_op(op: Op) -> OpSummary | None:
        part = sums.get((op,))
        if part is None:
            return None
        return _op_summary(
            [part], seconds, run.latency(record.key, op=op), run.latency(record.key, op=op, kind="response")
        )

    total = _op_summary(
        sums.values(), seconds, run.latency(record.key), run.latency(record.key, kind="response")
    )
    read, write = of_op("read"), of_op("write")
    volumes = _volumes(run, record.key, seconds)
    if len(volumes) == 1:  # distributions of volumes are coarse, and this one is that of the step
        volumes = (PartSummary(volumes[0].name, total, read, write),)
    return StepSummary(
        step=record.key,
        name=record.name,
        label=record.label,
        for_loops=record.for_loops,
        requested_rate=record.requested_rate,
        state=state,
        seconds=seconds,
        intervals=usage.height,
        total=total,
        read=read,
        write=write,
        queue_depth_asked=outstanding_asked(record.spec),
        usage=_usage_summary(_usage_total(usage), seconds, total),
        volumes=volumes,
        streams=_streams(run, record.key, seconds),
        rate_asked_iops=rate_asked(record.spec),
    )


def _summary_of_given(record: StepRecord, given: GivenStep) -> StepSummary:
    """The figures of another tool, as they are."""
    nothing = UsageSummary(*[None] * len(fields(UsageSummary)))
    usage = replace(
        nothing, cpu_busy_percent=given.cpu_busy_percent, cpu_system_percent=given.cpu_system_percent
    )
    return StepSummary(
        step=record.key,
        name=record.name,
        label=record.label,
        for_loops=record.for_loops,
        requested_rate=record.requested_rate,
        state=record.state,
        seconds=given.seconds,
        intervals=0,
        total=_op_of_given(given.total),
        read=_op_of_given(given.read) if given.read else None,
        write=_op_of_given(given.write) if given.write else None,
        queue_depth_asked=given.outstanding,
        usage=usage,
        read_percent_given=given.read_percent,
    )


def _op_of_given(figures: GivenFigures) -> OpSummary:
    """The queue depth follows from rate and mean time, as that of our own runs does."""
    mean_ms = figures.mean_ms
    quantiles = sorted((_share_of(name), ms) for name, ms in figures.percentiles_ms.items())
    return OpSummary(
        ios=figures.ios,
        bytes=figures.bytes,
        errors=figures.errors,
        iops=figures.iops,
        mib_s=figures.mib_s,
        mean_ms=mean_ms,
        stddev_ms=figures.stddev_ms,
        max_ms=figures.max_ms,
        response_mean_ms=None,
        response_max_ms=None,
        queue_depth=None if mean_ms is None else figures.iops * mean_ms / 1000,
        quantiles=tuple(Quantile(q, ms, figures.ios - math.ceil(q * figures.ios)) for q, ms in quantiles),
    )


def _share_of(text: str) -> float:
    """`99.9` -> 0.999, the float that `QUANTILES` has."""
    return float(Decimal(text) / 100)


def summarise_interval(interval: IntervalSample, step: str = "") -> StepSummary:
    """The summary of one interval as it arrives, for the live table. Volumes and streams are left out."""
    sums: dict[Op, _Sums] = {}
    for row in interval.rows:
        sums.setdefault(row.op, _Sums()).add(row)

    def histogram(op: Op | None, kind: LatencyKind) -> LatencyHistogram | None:
        return merged(
            item.histogram
            for item in interval.latencies
            if not item.volume and item.kind == kind and op in (None, item.op) and item.histogram.count
        )

    def of(parts: Iterable[_Sums], op: Op | None) -> OpSummary:
        return _op_summary(parts, interval.seconds, histogram(op, "service"), histogram(op, "response"))

    parts = {op: of([part], op) for op, part in sums.items()}
    total = of(sums.values(), None)
    return StepSummary(
        step=step,
        name=step,
        label="",
        for_loops="",
        requested_rate="",
        state="running",
        seconds=interval.seconds,
        intervals=1,
        total=total,
        read=parts.get("read"),
        write=parts.get("write"),
        queue_depth_asked=None,
        usage=_usage_summary(interval.usage, interval.seconds, total),
    )


def outstanding_asked(spec: Mapping[str, Any]) -> int | None:
    """I/Os that a closed loop was asked to keep in flight over all volumes in use; None for an open loop."""
    if spec.get("arrival", {}).get("kind", "closed") != "closed":
        return None
    used = {name for stream in spec.get("streams", ()) for name in stream.get("volumes", ())}
    volumes = [volume for volume in spec.get("volumes", ()) if volume.get("name") in used]
    # Volumes of a shared queue have its I/Os together.
    queues = {
        (volume.get("queue") or volume)["name"]: int(volume.get("outstanding", 0)) for volume in volumes
    }
    return sum(queues.values()) or None


def rate_asked(spec: Mapping[str, Any]) -> float | None:
    """I/Os per second that a load was paced at; None for one that goes as fast as the SAN lets it."""
    arrival = spec.get("arrival", {})
    if arrival.get("kind", "closed") != "closed":
        return float(arrival["rate_iops"]) if arrival.get("rate_iops") else None
    rates = [stream.get("rate_iops") for stream in spec.get("streams", ())]
    return float(sum(rates)) if rates and all(rates) else None


def quantiles_of(histogram: LatencyHistogram | None) -> tuple[Quantile, ...]:
    """The quantiles of a distribution, each with the number of values beyond it."""
    if histogram is None or not histogram.count:
        return ()
    count = histogram.count
    return tuple(
        Quantile(q, histogram.quantile(q) / NS_PER_MS, count - math.ceil(q * count)) for q in QUANTILES
    )


def _op_summary(
    parts: Iterable[_Sums],
    seconds: float,
    service: LatencyHistogram | None = None,
    response: LatencyHistogram | None = None,
) -> OpSummary:
    sums = _Sums()
    for part in parts:
        sums.add(part)
    count = max(sums.ios, 1)
    time = seconds or math.inf
    mean_ns = sums.service_sum_ns / count
    variance = max(sums.service_sumsq_ns2 / count - mean_ns**2, 0.0)
    return OpSummary(
        ios=sums.ios,
        bytes=sums.bytes,
        errors=sums.errors,
        iops=sums.ios / time,
        mib_s=sums.bytes / time / MIB,
        mean_ms=mean_ns / NS_PER_MS,
        stddev_ms=math.sqrt(variance) / NS_PER_MS,
        max_ms=sums.service_max_ns / NS_PER_MS,
        response_mean_ms=sums.response_sum_ns / count / NS_PER_MS,
        response_max_ms=sums.response_max_ns / NS_PER_MS,
        queue_depth=sums.service_sum_ns / 1e9 / time,
        quantiles=_within(quantiles_of(service), sums.service_max_ns),
        response_quantiles=_within(quantiles_of(response), sums.response_max_ns),
    )


def _within(quantiles: Iterable[Quantile], max_ns: float) -> tuple[Quantile, ...]:
    """Quantiles that do not exceed the maximum: a histogram gives the upper end of a bucket, a maximum is exact."""
    if not max_ns:
        return tuple(quantiles)
    return tuple(replace(one, value_ms=min(one.value_ms, max_ns / NS_PER_MS)) for one in quantiles)


def _sums_by(rows: pl.DataFrame, keys: Sequence[str]) -> Iterator[tuple[tuple[str, ...], _Sums]]:
    table = rows.group_by(list(keys), maintain_order=True).agg(
        *(pl.col(name).sum() for name in _SUMMED), *(pl.col(name).max() for name in _LARGEST)
    )
    for row in table.iter_rows(named=True):
        yield tuple(row[key] for key in keys), _Sums(**{name: row[name] for name in (*_SUMMED, *_LARGEST)})


def _parts(
    rows: pl.DataFrame,
    key: str,
    seconds: float,
    quantiles: Mapping[tuple[str, Op | None], tuple[Quantile, ...]],
) -> tuple[PartSummary, ...]:
    by_name: dict[str, dict[str, _Sums]] = {}
    for (name, op), sums in _sums_by(rows, (key, "op")):
        by_name.setdefault(name, {})[op] = sums

    def summary(name: str, op: Op | None, parts: Iterable[_Sums]) -> OpSummary:
        whole = _op_summary(parts, seconds)
        of_histogram = quantiles.get((name, op), ())
        return replace(whole, quantiles=_within(of_histogram, (whole.max_ms or 0.0) * NS_PER_MS))

    return tuple(
        PartSummary(
            name=name,
            total=summary(name, None, ops.values()),
            read=summary(name, "read", [ops["read"]]) if "read" in ops else None,
            write=summary(name, "write", [ops["write"]]) if "write" in ops else None,
        )
        for name, ops in by_name.items()
    )


def _volumes(run: RunDirectory, step: str, seconds: float) -> tuple[PartSummary, ...]:
    quantiles: dict[tuple[str, Op | None], tuple[Quantile, ...]] = {}
    waiting: dict[str, LatencyHistogram] = {}
    for volume, op, histogram in run.latency_by_volume(step):
        quantiles[volume, op] = quantiles_of(histogram)
        if (
            volume in waiting
        ):  # the other operation of a volume follows soon: keep few distributions at a time
            histogram.merge(waiting.pop(volume))
        else:
            waiting[volume] = histogram
        quantiles[volume, None] = quantiles_of(histogram)
    return _parts(run.measured_rows(step), "volume", seconds, quantiles)


def _streams(run: RunDirectory, step: str, seconds: float) -> tuple[PartSummary, ...]:
    rows = run.measured_rows(step)
    quantiles = {
        (name, op): quantiles_of(run.latency(step, stream=name, op=op))
        for name in rows["stream"].unique().to_list()
        for op in (None, *OPS)
    }
    return _parts(rows, "stream", seconds, quantiles)


def _usage_total(usage: pl.DataFrame) -> Usage:
    if usage.is_empty():
        return Usage()
    mean = {"rtt_us_mean", "outstanding_mean", "tsc_hz"}
    largest = {"backlog_max"}
    values: dict[str, Any] = {}
    for name in Usage.__slots__:
        column = usage[name].fill_null(0)
        values[name] = column.mean() if name in mean else column.max() if name in largest else column.sum()
    return Usage(**values)


def _share(part: float, whole: float) -> float | None:
    return 100 * part / whole if whole > 0 else None


def _usage_summary(usage: Usage, seconds: float, total: OpSummary) -> UsageSummary:
    host_busy_s = usage.host_cpu_user_s + usage.host_cpu_system_s
    host_all_s = host_busy_s + usage.host_cpu_idle_s + usage.host_cpu_wait_s
    load_cpu_s = usage.load_cpu_user_s + usage.load_cpu_system_s
    cycles = usage.tsc_hz / total.bytes if total.bytes and usage.tsc_hz else None
    return UsageSummary(
        cpu_busy_percent=_share(host_busy_s, host_all_s),
        cpu_system_percent=_share(usage.host_cpu_system_s, host_all_s),
        load_cpu_s=load_cpu_s,
        load_cores=load_cpu_s / seconds if seconds else 0.0,
        polling_cores=usage.load_cpu_polled_s / seconds if seconds else 0.0,
        cycles_per_byte=load_cpu_s * cycles if cycles else None,
        host_cycles_per_byte=host_busy_s * cycles if cycles else None,
        cpu_us_per_io=1e6 * load_cpu_s / total.ios if total.ios else None,
        retransmits=usage.retransmits,
        retransmits_percent=_share(usage.retransmits, usage.data_segments_sent),
        rwnd_limited_percent=_share(usage.rwnd_limited_us, usage.busy_us),
        sndbuf_limited_percent=_share(usage.sndbuf_limited_us, usage.busy_us),
        rtt_us_mean=usage.rtt_us_mean,
        late_arrivals=usage.late_arrivals,
        backlog_max=usage.backlog_max,
    )
