"""What the charts show.

Intervals thinned out to a bounded number of points, distributions sampled where the eye looks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Any

import polars as pl

from linerate.analysis.paths import over_time
from linerate.analysis.summary import MIB, NS_PER_MS, RELIABLE_BEYOND, rate_asked
from linerate.results import LatencyHistogram, RunDirectory
from linerate.results.histogram import merged
from linerate.results.sample import OPS, LatencyKind

Point = dict[str, Any]
_OVER_TIME_QUANTILES = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("max", 1.0))
_BARS = 36
_OTHERS = "others"
_GAP = 1.5  # times the usual distance of intervals: some are missing between


def rates(run: RunDirectory, step: str, points_max: int) -> list[Point]:
    """I/O rate and MB/s over time.

    One point per operation and group of intervals, warm-up included, total where both happen.
    """
    rows = run.intervals.filter(pl.col("step") == step)
    usage = run.usage.filter(pl.col("step") == step).sort("interval")
    groups = _groups(usage, points_max)
    wanted = rows.join(groups.select("interval", "group"), on="interval")
    ops = [op for op in OPS if rows.filter(pl.col("op") == op)["ios"].sum() > 0]
    spans = groups.group_by("group", maintain_order=True).agg(
        pl.col("start_s").min(),
        (pl.col("end_s") - pl.col("start_s")).sum().alias("seconds"),
        pl.col("end_s").max(),
    )
    points: list[Point] = []
    for name, chosen in [*((op, [op]) for op in ops), *([("total", list(OPS))] if len(ops) > 1 else [])]:
        sums = (
            wanted.filter(pl.col("op").is_in(chosen))
            .group_by("group")
            .agg(pl.col("ios").sum(), pl.col("bytes").sum())
        )
        for row in spans.join(sums, on="group", how="left").sort("group").iter_rows(named=True):
            points.append(
                {
                    "t": _middle(row),
                    "op": name,
                    "iops": _rounded((row["ios"] or 0) / row["seconds"]),
                    "mib_s": _rounded((row["bytes"] or 0) / row["seconds"] / MIB),
                }
            )
    return points


def warmup_end_s(run: RunDirectory, step: str) -> float:
    """Where warm-up ends, in seconds of the step; 0 when there was none."""
    ends = run.usage.filter((pl.col("step") == step) & pl.col("warmup"))["end_s"]
    return float(ends.max()) if ends.len() else 0.0  # type: ignore[arg-type]


def latency_over_time(run: RunDirectory, step: str, points_max: int) -> list[Point]:
    """p50, p95, p99 and max in ms over time. Neighbouring intervals are merged, never averaged.

    Of a load with a rate to keep these are response times, from the intended start. Where no I/O was completed, `ms` is
    None.
    """
    kind: LatencyKind = "response" if rate_asked(run.step(step).spec) is not None else "service"
    intervals = run.latency_over_time(step, kind=kind) or run.latency_over_time(step)
    lengths = [later - earlier for (earlier, _), (later, _) in pairwise(intervals)]
    usual_s = median(lengths) if lengths else 0.0
    size = max(1, math.ceil(len(intervals) / points_max))
    points: list[Point] = []
    for start in range(0, len(intervals), size):
        part = intervals[start : start + size]
        total = merged(histogram for _, histogram in part)
        if total is None:
            continue
        t = round((part[0][0] + part[-1][0]) / 2, 3)
        before_s = intervals[start - 1][0] if start else part[0][0]
        if part[0][0] - before_s > _GAP * usual_s:
            middle = round((before_s + part[0][0]) / 2, 3)
            points += [{"t": middle, "quantile": name, "ms": None} for name, _ in _OVER_TIME_QUANTILES]
        for name, q in _OVER_TIME_QUANTILES:
            points.append({"t": t, "quantile": name, "ms": _rounded(total.quantile(q) / NS_PER_MS)})
    return points


def cpu_over_time(run: RunDirectory, step: str, points_max: int) -> list[Point]:
    """cpu% sys+u and cpu% sys of the host, and the load's own share of all CPUs, over time."""
    usage = _groups(run.usage.filter(pl.col("step") == step).sort("interval"), points_max)
    table = usage.group_by("group", maintain_order=True).agg(
        pl.col("start_s").min(), pl.col("end_s").max(), pl.col("^.*_cpu_.*$").sum()
    )
    points: list[Point] = []
    for row in table.iter_rows(named=True):
        busy = row["host_cpu_user_s"] + row["host_cpu_system_s"]
        whole = busy + row["host_cpu_idle_s"] + row["host_cpu_wait_s"]
        if whole <= 0:
            continue
        load = row["load_cpu_user_s"] + row["load_cpu_system_s"]
        figures = (("sys+u", busy), ("sys", row["host_cpu_system_s"]), ("load", load))
        points += [
            {"t": _middle(row), "part": name, "percent": _rounded(100 * s / whole)} for name, s in figures
        ]
    return points


def paths_over_time(run: RunDirectory, step: str, points_max: int, paths_max: int) -> list[Point]:
    """MB/s, I/Os in flight, service time and segments sent again of each path, warm-up included.

    Neighbouring intervals are summed. The paths that carried least share one line where there are too many.
    """
    table = over_time(run, step)
    if table.is_empty():
        return []
    ranked = table.group_by("path").agg(pl.col("bytes").sum()).sort("bytes", "path", descending=[True, False])
    names = ranked["path"].to_list()
    kept = set(names if len(names) <= paths_max else names[: paths_max - 1])
    size = max(1, math.ceil(table["interval"].n_unique() / points_max))
    grouped = (
        table.with_columns(
            (pl.col("interval") // size).alias("group"),
            (pl.col("end_s") - pl.col("start_s")).alias("seconds"),
            pl.when(pl.col("path").is_in(kept)).then("path").otherwise(pl.lit(_OTHERS)).alias("path"),
        )
        .with_columns((pl.col("queue") * pl.col("seconds")).alias("service_s"))
        .group_by("group", "path", "interval", "start_s", "end_s", "seconds")
        .agg(pl.col("ios", "bytes", "service_s", "retransmits").sum())
        .group_by("group", "path")
        .agg(
            pl.col("start_s").min(),
            pl.col("end_s").max(),
            pl.col("seconds", "ios", "bytes", "service_s", "retransmits").sum(),
        )
        .sort("path", "group")
    )
    return [
        {
            "t": _middle(row),
            "path": row["path"],
            "mib_s": _rounded(row["bytes"] / row["seconds"] / MIB),
            "queue": _rounded(row["service_s"] / row["seconds"]),
            "ms": _rounded(1000 * row["service_s"] / row["ios"]) if row["ios"] else None,
            "again": row["retransmits"],
        }
        for row in grouped.iter_rows(named=True)
    ]


def percentile_curve(histogram: LatencyHistogram, name: str, points_max: int) -> list[Point]:
    """The distribution on a nines axis.

    `nines` 1 is p90, 2 is p99. `reliable` while at least 100 values are above it.
    """
    count = histogram.count
    end = math.log10(count) if count > 1 else 0.0
    reliable_end = math.log10(count / RELIABLE_BEYOND) if count > RELIABLE_BEYOND else 0.0
    places = {end * number / points_max for number in range(1, points_max + 1)} | {reliable_end}
    points: list[Point] = [
        {
            "nines": round(x, 4),
            "ms": _rounded(histogram.quantile(1 - 10**-x) / NS_PER_MS),
            "of": name,
            "reliable": True,
        }
        for x in sorted(places)
    ]
    beyond = [{**point, "reliable": False} for point in points if point["nines"] >= round(reliable_end, 4)]
    return [point for point in points if point["nines"] <= round(reliable_end, 4)] + beyond


def latency_bars(histograms: Sequence[tuple[str, LatencyHistogram]]) -> list[Point]:
    """Shares of all I/Os in percent, in bars of equal width on a logarithmic axis, stacked."""
    low = min(histogram.min for _, histogram in histograms) / NS_PER_MS
    high = max(histogram.max for _, histogram in histograms) / NS_PER_MS
    count = sum(histogram.count for _, histogram in histograms)
    low = max(low, 1e-6)
    width = max(math.log(high / low), 1e-3) / _BARS
    bars: dict[tuple[int, str], int] = {}
    for name, histogram in histograms:
        for lowest, highest, number in histogram.buckets():
            place = math.log(max((lowest + highest) / 2 / NS_PER_MS, low) / low) / width
            key = (min(int(place), _BARS - 1), name)
            bars[key] = bars.get(key, 0) + number
    points = []
    tops: dict[int, float] = {}
    for (place, name), number in sorted(bars.items()):
        bottom = tops.get(place, 0.0)
        tops[place] = bottom + 100 * number / count
        points.append(
            {
                "from": _rounded(low * math.exp(place * width)),
                "to": _rounded(low * math.exp((place + 1) * width)),
                "of": name,
                "low": _rounded(bottom),
                "high": _rounded(tops[place]),
            }
        )
    return points


def _groups(usage: pl.DataFrame, points_max: int) -> pl.DataFrame:
    """`usage` with a column `group`: neighbours share one when there are more intervals than points."""
    size = max(1, math.ceil(usage.height / points_max))
    return usage.with_row_index("place").with_columns((pl.col("place") // size).alias("group"))


def _middle(row: dict[str, Any]) -> float:
    return round((float(row["start_s"]) + float(row["end_s"])) / 2, 3)


def _rounded(value: float) -> float:
    """Four significant digits: more than a chart can show, and short in a file."""
    return float(format(value, ".4g"))
