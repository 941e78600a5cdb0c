"""The measured time of each step: CPU, latencies, rates over time, and what each queue did."""

from __future__ import annotations

import math
from collections.abc import Sequence
from xml.etree.ElementTree import Element

import polars as pl

from linerate.report.diskspd.elements import Queue, add, queues_of
from linerate.report.fio.latency import stddev_ns
from linerate.results import LatencyHistogram, RunDirectory, StepRecord
from linerate.results.histogram import merged
from linerate.results.sample import OPS, Op

_NS_PER_MS = 1e6
_NAMES: dict[Op, str] = {"read": "Read", "write": "Write"}
_PERCENTILES = (
    *(str(percent) for percent in range(1, 100)),
    *("99.9", "99.99", "99.999", "99.9999", "99.99999", "99.999999", "99.9999999"),
)
"""Those that diskspd shows, besides the smallest and the largest time."""


def add_time_span(root: Element, run: RunDirectory, step: StepRecord) -> None:
    """Add the results of a step."""
    span = add(root, "TimeSpan")
    usage = run.measured_usage(step.key)
    seconds = float((usage["end_s"] - usage["start_s"]).sum())
    if not seconds:
        add(span, "Error", "The step ended before its measured time began. It has no results.")
        return
    queues = list(queues_of(step))
    add(span, "TestTimeSeconds", f"{seconds:.2f}")
    add(span, "ThreadCount", len(queues))
    add(span, "RequestCount", 0)
    add(span, "ProcCount", run.manifest.environment.get("cpu.count", ""))
    _add_cpu(span, usage)
    _add_latency(span, {op: run.latency(step.key, op=op) for op in OPS})
    rows = run.measured_rows(step.key)
    _add_series(span, rows, usage)
    sizes = {volume["name"]: volume.get("size_bytes") for volume in step.facts.get("volumes") or ()}
    for number, queue in enumerate(queues):
        own = rows.filter(
            (pl.col("stream") == queue.stream["name"]) & (pl.col("volume") == queue.volume["name"])
        )
        thread = add(span, "Thread")
        add(thread, "Id", number)
        target = add(thread, "Target")
        add(target, "Path", queue.path)
        _add_counts(target, own, sizes.get(queue.volume["name"]) or 0)
        _add_means(target, _histograms(run, step.key, queue))
        _add_deviations(add(target, "Iops"), _Series(own, usage))


def _add_cpu(span: Element, usage: pl.DataFrame) -> None:
    """Of the host, over all its CPUs."""
    spent = {kind: float(usage[f"host_cpu_{kind}_s"].sum()) for kind in ("user", "system", "idle", "wait")}
    total_s = sum(spent.values()) or 1.0
    user, kernel = 100 * spent["user"] / total_s, 100 * spent["system"] / total_s
    average = add(add(span, "CpuUtilization"), "Average")
    shares = {"Usage": user + kernel, "User": user, "Kernel": kernel, "Idle": 100 - user - kernel}
    for name, share in shares.items():
        add(average, f"{name}Percent", f"{share:.2f}")


def _histograms(run: RunDirectory, step: str, queue: Queue) -> dict[Op, LatencyHistogram | None]:
    """Of several streams on several volumes, the histograms do not say which I/Os were which: None then."""
    if queue.is_alone:
        return {op: run.latency(step, volume=queue.volume["name"], op=op) for op in OPS}
    if len(queue.stream["volumes"]) == 1:
        return {op: run.latency(step, stream=queue.stream["name"], op=op) for op in OPS}
    return dict.fromkeys(OPS)


def _with_total(histograms: dict[Op, LatencyHistogram | None]) -> list[tuple[str, LatencyHistogram | None]]:
    """Reads, writes, both; None where there are none."""
    total = merged(one for one in histograms.values() if one is not None)
    named = [*((_NAMES[op], histograms[op]) for op in OPS), ("Total", total)]
    return [(name, one if one is not None and one.count else None) for name, one in named]


def _add_latency(span: Element, histograms: dict[Op, LatencyHistogram | None]) -> None:
    found = _with_total(histograms)
    latency = add(span, "Latency")
    for name, histogram in found:
        latency.set(f"{name}HistoBuckets", str(len(histogram.buckets()) if histogram else 0))
    for name, histogram in found:
        if histogram is not None:
            add(latency, f"Average{name}Milliseconds", _ms(histogram.mean))
            add(latency, f"{name.removeprefix('Total')}LatencyStdev", _ms(stddev_ns(histogram)))
    for percent in ("0", *_PERCENTILES, "100"):
        bucket = add(latency, "Bucket")
        add(bucket, "Percentile", percent)
        for name, histogram in found:
            if histogram is not None:
                add(bucket, f"{name}Milliseconds", _ms(_quantile_ns(histogram, percent)))


def _quantile_ns(histogram: LatencyHistogram, percent: str) -> int:
    if percent == "0":
        return histogram.min
    return histogram.max if percent == "100" else min(histogram.quantile(float(percent) / 100), histogram.max)


def _add_means(target: Element, histograms: dict[Op, LatencyHistogram | None]) -> None:
    for name, histogram in _with_total(histograms):
        if histogram is not None:
            side = name.removeprefix("Total")
            add(target, f"Average{side}LatencyMilliseconds", _ms(histogram.mean))
            add(target, f"{side}LatencyStdev", _ms(stddev_ns(histogram)))


def _add_counts(target: Element, rows: pl.DataFrame, size_bytes: int) -> None:
    sides = {op: rows.filter(pl.col("op") == op) for op in OPS}
    counts = {op: (int(side["bytes"].sum()), int(side["ios"].sum())) for op, side in sides.items()}
    add(target, "BytesCount", sum(size for size, _ in counts.values()))
    add(target, "FileSize", size_bytes)
    add(target, "IOCount", sum(ios for _, ios in counts.values()))
    for op, (size, ios) in counts.items():
        add(target, f"{_NAMES[op]}Bytes", size)
        add(target, f"{_NAMES[op]}Count", ios)


class _Series:
    """Reads and writes of each measured interval, also of those without any."""

    def __init__(self, rows: pl.DataFrame, usage: pl.DataFrame) -> None:
        self.intervals = usage.select("interval", "start_s", "end_s").rows()
        sums = rows.group_by("interval", "op").agg(
            pl.col("ios", "service_sum_ns", "service_sumsq_ns2").sum(), pl.col("service_max_ns").max()
        )
        self._cells = {(row[0], row[1]): row[2:] for row in sums.rows()}

    def iops(self, op: Op) -> list[float]:
        """The rate of each interval."""
        return [self.cell(number, op)[0] / (end - start) for number, start, end in self.intervals]

    def cell(self, interval: int, op: Op) -> tuple[int, int, float, int]:
        """I/Os, and the sum, sum of squares and maximum of their times in ns."""
        return self._cells.get((interval, op), (0, 0, 0.0, 0))


def _add_series(span: Element, rows: pl.DataFrame, usage: pl.DataFrame) -> None:
    """Standard deviations of the rates, and the intervals one by one."""
    series, iops = _Series(rows, usage), add(span, "Iops")
    _add_deviations(iops, series)
    begin = series.intervals[0][1]
    for number, start, end in series.intervals:
        bucket = add(iops, "Bucket")
        bucket.set("SampleMillisecond", str(round((end - begin) * 1000)))
        rates = {_NAMES[op]: series.cell(number, op)[0] / (end - start) for op in OPS}
        for name, rate in (*rates.items(), ("Total", sum(rates.values()))):
            bucket.set(name, f"{rate:.0f}")
        for op in OPS:
            ios, sum_ns, squares_ns2, max_ns = series.cell(number, op)
            mean = sum_ns / ios if ios else 0.0
            deviation = math.sqrt(max(squares_ns2 / ios - mean * mean, 0.0)) if ios else 0.0
            bucket.set(f"{_NAMES[op]}MaxLatencyMilliseconds", _ms(max_ns))
            bucket.set(f"{_NAMES[op]}AvgLatencyMilliseconds", _ms(mean))
            bucket.set(f"{_NAMES[op]}LatencyStdDev", _ms(deviation))


def _add_deviations(iops: Element, series: _Series) -> None:
    """Standard deviation of the rates of reads, writes and both; none of what does not occur."""
    rates = {op: series.iops(op) for op in OPS}
    both = [sum(pair) for pair in zip(*rates.values(), strict=True)]
    for name, values in (*((_NAMES[op], rates[op]) for op in OPS), ("", both)):
        if any(values):
            add(iops, f"{name}IopsStdDev", f"{_deviation(values):.3f}")


def _deviation(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))


def _ms(time_ns: float) -> str:
    return f"{time_ns / _NS_PER_MS:.3f}"
