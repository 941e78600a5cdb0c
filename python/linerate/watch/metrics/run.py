"""The metrics of a run: counts and sums since its start, warm-up included."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)

from linerate.array.figures.openmetrics import filled
from linerate.results import Manifest
from linerate.watch.run import RunSource
from linerate.watch.run.totals import BUCKETS_NS, RunTotals

NS_PER_S = 1e9

Sums = Mapping[tuple[str, str], Counter[str]]

_ROWS = (
    ("linerate_ios", "", "ios", 1.0, "Completed I/Os."),
    ("linerate_io_bytes", "bytes", "bytes", 1.0, "Bytes of completed I/Os."),
    ("linerate_io_errors", "", "errors", 1.0, "I/Os that failed."),
    ("linerate_io_service_seconds", "seconds", "service_sum_ns", NS_PER_S, "Sum of service times."),
    (
        "linerate_io_response_seconds",
        "seconds",
        "response_sum_ns",
        NS_PER_S,
        "Sum of response times, from the intended start.",
    ),
)
"""Name, unit, column of the interval table, what one unit is of it, description."""
_PATHS = (
    ("linerate_path_ios", "", ("read_ios", "write_ios"), 1.0, "I/Os over a path."),
    ("linerate_path_bytes", "bytes", ("read_bytes", "write_bytes"), 1.0, "Bytes of I/Os over a path."),
    ("linerate_path_service_seconds", "seconds", ("service_sum_ns",), NS_PER_S, "Sum of service times."),
    ("linerate_path_requeued_ios", "", ("requeued",), 1.0, "I/Os that were sent again on another path."),
    ("linerate_path_retransmits", "", ("retransmits",), 1.0, "TCP segments that a path sent again."),
)
_CPU = (
    ("host", "user", "host_cpu_user_s"),
    ("host", "system", "host_cpu_system_s"),
    ("host", "idle", "host_cpu_idle_s"),
    ("host", "wait", "host_cpu_wait_s"),
    ("load", "user", "load_cpu_user_s"),
    ("load", "system", "load_cpu_system_s"),
    ("load", "polling", "load_cpu_polled_s"),
)
_USAGE = (
    ("linerate_tcp_retransmits", "", "retransmits", 1.0, "TCP segments sent again."),
    ("linerate_tcp_data_segments", "", "data_segments_sent", 1.0, "TCP segments with data that were sent."),
    ("linerate_tcp_sent_bytes", "bytes", "bytes_sent", 1.0, "Bytes that TCP sent."),
    ("linerate_tcp_received_bytes", "bytes", "bytes_received", 1.0, "Bytes that TCP received."),
    ("linerate_tcp_busy_seconds", "seconds", "busy_us", 1e6, "Time in which sessions had data to send."),
    (
        "linerate_tcp_rwnd_limited_seconds",
        "seconds",
        "rwnd_limited_us",
        1e6,
        "Time in which the receive window of the peer was the limit.",
    ),
    (
        "linerate_tcp_sndbuf_limited_seconds",
        "seconds",
        "sndbuf_limited_us",
        1e6,
        "Time in which the send buffer was the limit.",
    ),
    ("linerate_late_ios", "", "late_arrivals", 1.0, "I/Os that began later than intended."),
)


def run_metrics(run: RunSource, manifest: Manifest) -> Iterator[Metric]:
    """All metrics of a run. The label `run` is the id of the run, which is unique."""
    key = manifest.run_id
    totals = run.totals
    info = {"run": key, "name": manifest.name, "workload": manifest.workload.name, "state": run.state}
    yield InfoMetricFamily("linerate_run", "The run that is shown.", value=info)
    yield from _of_rows(key, totals.rows)
    yield from _of_paths(key, totals.paths)
    yield _cpu(key, totals)
    for name, unit, column, scale, text in _USAGE:
        value = totals.usage[column] / scale
        yield _counter(name, unit, text, ["run"], [([key], value)])
    yield _service_times(key, totals)
    yield _counter("linerate_intervals", "", "Intervals that are over.", ["run"], [([key], totals.intervals)])
    started = GaugeMetricFamily(
        "linerate_run_started_seconds",
        "When it began: seconds since 1970.",
        labels=["run"],
        unit="seconds",
    )
    started.add_metric([key], manifest.started_at.timestamp())
    yield started
    for name, text, value in (
        ("linerate_outstanding_ios", "I/Os in flight, mean of the last interval.", totals.outstanding),
        (
            "linerate_backlog_ios",
            "I/Os that waited for a free slot, most of the last interval.",
            totals.backlog,
        ),
        ("linerate_steps", "Steps that have begun.", len(manifest.steps)),
    ):
        yield filled(GaugeMetricFamily(name, text, labels=["run"]), [([key], value)])


def _of_rows(run: str, rows: Sums) -> Iterator[Metric]:
    for name, unit, column, scale, text in _ROWS:
        values = [([run, volume, op], sums[column] / scale) for (volume, op), sums in rows.items()]
        yield _counter(name, unit, text, ["run", "volume", "op"], values)


def _of_paths(run: str, paths: Sums) -> Iterator[Metric]:
    for name, unit, columns, scale, text in _PATHS if paths else ():
        values = [
            ([run, volume, path], sum(sums[column] for column in columns) / scale)
            for (volume, path), sums in paths.items()
        ]
        yield _counter(name, unit, text, ["run", "volume", "path"], values)


def _cpu(run: str, totals: RunTotals) -> Metric:
    values = [([run, side, mode], totals.usage[column]) for side, mode, column in _CPU]
    text = "CPU time, of the whole load host and of the load alone."
    return _counter("linerate_cpu_seconds", "seconds", text, ["run", "side", "mode"], values)


def _counter(
    name: str, unit: str, text: str, labels: list[str], values: Iterable[tuple[list[str], float]]
) -> Metric:
    return filled(CounterMetricFamily(name, text, labels=labels, unit=unit), values)


def _service_times(run: str, totals: RunTotals) -> Metric:
    """Service times over powers of two, with the exact sum of the interval table."""
    limits = [f"{limit / NS_PER_S:.9g}" for limit in BUCKETS_NS] + ["+Inf"]
    counts, below = [], 0
    for count in totals.service_ns:
        below += count
        counts.append(below)
    family = HistogramMetricFamily(
        "linerate_service_time_seconds", "Service times of all I/Os.", labels=["run"], unit="seconds"
    )
    sum_s = sum(sums["service_sum_ns"] for sums in totals.rows.values()) / NS_PER_S
    family.add_metric([run], list(zip(limits, counts, strict=True)), sum_s)
    return family
