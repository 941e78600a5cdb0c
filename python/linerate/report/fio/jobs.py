"""One entry of fio's `jobs` for each job of each step: what it did, in both directions, and how it was asked for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from linerate.report.fio.latency import NO_LATENCY, PERCENTILES, coarse_tables, latency_entry
from linerate.results import JobRecord, LatencyHistogram, RunDirectory, StepRecord
from linerate.results.histogram import merged
from linerate.results.sample import OPS, LatencyKind, Op

_DEPTHS = ("1", "2", "4", "8", "16", "32", ">=64")
_BATCHES = ("0", "4", "8", "16", "32", "64", ">=64")
_KIB = 1024
_EIO = 5
"""The error of a job whose I/Os failed (errno.h)."""


def job_entries(run: RunDirectory, record: StepRecord, group: int) -> Iterator[Mapping[str, Any]]:
    """The entries of one step. `group` is its number, from 0."""
    step = _MeasuredStep(run, record)
    for job in record.jobs or _jobs_of_streams(record):
        yield step.entry(job, group)


class _MeasuredStep:
    """A step's measured time: its rows, its intervals and its length."""

    def __init__(self, run: RunDirectory, record: StepRecord) -> None:
        self._run = run
        self._record = record
        self._rows = run.measured_rows(record.key)
        self._usage = run.measured_usage(record.key)
        lengths = (self._usage["end_s"] - self._usage["start_s"]).to_list()
        self._length_s: Mapping[int, float] = dict(zip(self._usage["interval"], lengths, strict=True))
        self._seconds: float = sum(lengths)

    def entry(self, job: JobRecord, group: int) -> Mapping[str, Any]:
        """The whole entry of a job."""
        rows = self._rows.filter(pl.col("stream").is_in(job.streams))
        errors = int(rows["errors"].sum())
        percentiles = _percentiles(job.options)
        both = self._latency(job, OPS, "service")
        failed = {"total_err": errors, "first_error": _EIO} if errors else {}
        return {
            "jobname": job.name,
            "groupid": group,
            "job_start": int(self._record.started_at.timestamp() * 1000),
            "error": _EIO if errors else 0,
            "eta": 0,
            "elapsed": math.ceil(self._seconds_of(job)),
            "job options": dict(job.options),
            **{op: self._direction(job, op, rows, percentiles) for op in OPS},
            "trim": _direction_entry(_Counts(), 0.0, (NO_LATENCY, NO_LATENCY), _Samples(), _Samples(), 0.0),
            "sync": _sync_entry(rows),
            "job_runtime": round(self._seconds_of(job) * 1000),
            **self._cpu(rows),
            "ctx": 0,
            "majf": 0,
            "minf": 0,
            "iodepth_level": dict.fromkeys(_DEPTHS, 0.0),
            "iodepth_submit": dict.fromkeys(_BATCHES, 0.0),
            "iodepth_complete": dict.fromkeys(_BATCHES, 0.0),
            **coarse_tables(both),
            "latency_depth": _depth(job.options),
            "latency_target": 0,
            "latency_percentile": 100.0,
            "latency_window": 0,
            **failed,
        }

    def _direction(
        self, job: JobRecord, op: Op, rows: pl.DataFrame, percentiles: Sequence[float]
    ) -> Mapping[str, Any]:
        own = rows.filter(pl.col("op") == op)
        counts = _Counts(int(own["ios"].sum()), int(own["bytes"].sum()))
        of_step = int(self._rows.filter(pl.col("op") == op)["bytes"].sum())
        service = latency_entry(self._latency(job, (op,), "service"), percentiles)
        response = latency_entry(self._latency(job, (op,), "response"), percentiles)
        return _direction_entry(
            counts,
            self._seconds_of(job) if counts.ios else 0.0,
            (service, response if response["N"] else service),
            self._samples(own, "bytes", _KIB),
            self._samples(own, "ios", 1),
            100 * counts.bytes / of_step if of_step else 0.0,
        )

    def _seconds_of(self, job: JobRecord) -> float:
        """The measured time in which the streams of a job may have I/Os: some begin or end at times of their own."""
        warmup_s = float(self._record.spec.get("warmup_s", 0.0))
        end_s = warmup_s + self._seconds
        streams = [one for one in self._record.spec.get("streams", ()) if one["name"] in job.streams]
        begins = [max(float(one.get("start_after_s", 0.0)), warmup_s) for one in streams]
        ends = [min(float(one.get("stop_after_s") or end_s), end_s) for one in streams]
        return max(max(ends) - min(begins), 0.0) if streams else float(self._seconds)

    def _latency(self, job: JobRecord, ops: Sequence[Op], kind: LatencyKind) -> LatencyHistogram | None:
        found = (
            self._run.latency(self._record.key, stream=stream, op=op, kind=kind)
            for stream in job.streams
            for op in ops
        )
        return merged(histogram for histogram in found if histogram is not None)

    def _samples(self, rows: pl.DataFrame, column: str, unit: int) -> _Samples:
        """Rates per second of each interval, in `unit`."""
        if rows.is_empty():
            return _Samples()
        sums = dict(rows.group_by("interval").agg(pl.col(column).sum()).iter_rows())
        lengths = self._length_s.items()
        return _Samples(tuple(sums.get(index, 0) / length / unit for index, length in lengths if length > 0))

    def _cpu(self, rows: pl.DataFrame) -> Mapping[str, float]:
        """Percent of one CPU. The threads of the load serve all jobs, so each gets its share by its I/Os."""
        ios = int(self._rows["ios"].sum())
        scale = 100 * int(rows["ios"].sum()) / ios / self._seconds if ios and self._seconds else 0.0
        return {
            "usr_cpu": round(scale * float(self._usage["load_cpu_user_s"].sum()), 6),
            "sys_cpu": round(scale * float(self._usage["load_cpu_system_s"].sum()), 6),
        }


@dataclass(frozen=True, slots=True)
class _Counts:
    ios: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class _Samples:
    """Rates of the intervals."""

    values: tuple[float, ...] = ()

    @property
    def mean(self) -> float:
        return sum(self.values) / len(self.values) if self.values else 0.0

    @property
    def deviation(self) -> float:
        """Of a sample, as fio has it."""
        squares = sum((value - self.mean) ** 2 for value in self.values)
        return math.sqrt(squares / (len(self.values) - 1)) if len(self.values) > 1 else 0.0

    @property
    def least(self) -> int:
        return round(min(self.values, default=0.0))

    @property
    def most(self) -> int:
        return round(max(self.values, default=0.0))


def _direction_entry(
    counts: _Counts,
    seconds: float,
    latencies: tuple[Mapping[str, Any], Mapping[str, Any]],
    bandwidth_kib_s: _Samples,
    iops: _Samples,
    share_percent: float,
) -> Mapping[str, Any]:
    """`read`, `write` or `trim`. The latencies are service and response time."""
    rate = 1 / seconds if seconds else 0.0
    return {
        "io_bytes": counts.bytes,
        "io_kbytes": counts.bytes // _KIB,
        "bw_bytes": round(counts.bytes * rate),
        "bw": round(counts.bytes * rate / _KIB),
        "iops": round(counts.ios * rate, 6),
        "runtime": round(seconds * 1000),
        "total_ios": counts.ios,
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": NO_LATENCY,
        "clat_ns": latencies[0],
        "lat_ns": latencies[1],
        "bw_min": bandwidth_kib_s.least,
        "bw_max": bandwidth_kib_s.most,
        "bw_agg": round(share_percent, 6),
        "bw_mean": round(bandwidth_kib_s.mean, 6),
        "bw_dev": round(bandwidth_kib_s.deviation, 6),
        "bw_samples": len(bandwidth_kib_s.values),
        "iops_min": iops.least,
        "iops_max": iops.most,
        "iops_mean": round(iops.mean, 6),
        "iops_stddev": round(iops.deviation, 6),
        "iops_samples": len(iops.values),
    }


def _sync_entry(rows: pl.DataFrame) -> Mapping[str, Any]:
    """Flushes: their number, mean and longest time. Each of them is not kept."""
    flushes = int(rows["flushes"].sum())
    if not flushes:
        return {"total_ios": 0, "lat_ns": NO_LATENCY}
    mean_ns = int(rows["flush_sum_ns"].sum()) / flushes
    longest_ns = int(rows["flush_max_ns"].fill_null(0).to_numpy().max())
    times = {**NO_LATENCY, "max": longest_ns, "mean": round(mean_ns, 6), "N": flushes}
    return {"total_ios": flushes, "lat_ns": times}


def _percentiles(options: Mapping[str, str]) -> Sequence[float]:
    """Those of percentile_list=, which fio reads with any blanks and colons between them."""
    try:
        asked = [float(word) for word in options.get("percentile_list", "").replace(":", " ").split()]
    except ValueError:
        return PERCENTILES
    return [percent for percent in asked if 0 < percent <= 100] or PERCENTILES


def _depth(options: Mapping[str, str]) -> int:
    depth = options.get("iodepth", "1")
    return int(depth) if depth.isdecimal() else 1


def _jobs_of_streams(record: StepRecord) -> Iterator[JobRecord]:
    """The streams of a step of another workload as jobs, with the options that fio would need for them."""
    streams: Sequence[Mapping[str, Any]] = record.spec.get("streams", ())
    depths = {volume["name"]: volume.get("outstanding", 0) for volume in record.spec.get("volumes", ())}
    label = record.label or record.name
    for stream in streams:
        name = label if len(streams) == 1 else f"{label} {stream['name']}"
        depth = sum(int(depths.get(volume, 0)) for volume in stream.get("volumes", ()))
        options = {
            "rw": _direction(stream),
            **_block_sizes(stream.get("sizes", {})),
            "iodepth": str(depth),
            "numjobs": "1",
            "runtime": f"{record.spec.get('elapsed_s', 0):g}",
            "ramp_time": f"{record.spec.get('warmup_s', 0):g}",
        }
        if options["rw"] in ("rw", "randrw"):
            options["rwmixread"] = f"{stream.get('read_percent', 100.0):g}"
        if 0 < stream.get("random_percent", 100.0) < 100:
            options["percentage_random"] = f"{stream['random_percent']:g}"
        yield JobRecord(name=name, options=options, streams=(stream["name"],))


def _direction(stream: Mapping[str, Any]) -> str:
    share = stream.get("read_percent", 100.0)
    word = "read" if share == 100 else "write" if share == 0 else "rw"
    return f"rand{word}" if stream.get("random_percent", 100.0) else word


def _block_sizes(sizes: Mapping[str, Any]) -> Mapping[str, str]:
    """bs=, and bssplit= or bsrange= beside it where there are several sizes: readers of fio's JSON look for bs."""
    if sizes.get("kind") == "range":
        return {"bs": str(sizes["min_bytes"]), "bsrange": f"{sizes['min_bytes']}-{sizes['max_bytes']}"}
    parts = sizes.get("parts") or [(4096, 100.0)]
    if len(parts) == 1:
        return {"bs": str(parts[0][0])}
    return {"bs": str(parts[0][0]), "bssplit": ":".join(f"{size}/{share:g}" for size, share in parts)}
