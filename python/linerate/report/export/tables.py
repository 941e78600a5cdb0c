"""The tables of a run or a study, one value per cell, units in the names of the columns.

intervals   one row per step, interval, stream, volume and operation
usage       one row per step and interval: CPU, TCP and load generator
steps       one row per step over its measured time, warm-up left out
verdicts    of a study only: one row per workload, case and metric

`_mib_s` counts 2^20 bytes per second. `service` times run from submit to completion, `response` times from the
intended start. `_utc` columns are times in UTC. A cell is empty where nothing was measured. `study.py` joins the
tables of the runs of a study.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import polars as pl

from linerate.analysis import OpSummary, StepSummary, summarise
from linerate.analysis.summary import MIB, NS_PER_MS, QUANTILES
from linerate.results import RunDirectory

_TIME = pl.Datetime("us")
_NAMES = ("step", "name", "label", "for_loops", "requested_rate", "state", "stream", "volume", "op")


@dataclass(frozen=True, slots=True)
class Exported:
    """Tables by name, and what is missing in them, one sentence each."""

    tables: Mapping[str, pl.DataFrame]
    notes: tuple[str, ...] = ()


def exported_run(run: RunDirectory) -> Exported:
    """The tables of a run. Raises RunDamagedError when its files cannot be read."""
    return Exported(
        {"intervals": _intervals(run), "usage": _timed(run, run.usage), "steps": _steps(summarise(run), run)}
    )


def _intervals(run: RunDirectory) -> pl.DataFrame:
    seconds = pl.col("end_s") - pl.col("start_s")
    some = pl.when(pl.col("ios") > 0)
    frame = run.intervals.with_columns(
        iops=pl.col("ios") / seconds,
        mib_s=pl.col("bytes") / seconds / MIB,
        service_mean_ms=some.then(pl.col("service_sum_ns") / pl.col("ios") / NS_PER_MS),
        response_mean_ms=some.then(pl.col("response_sum_ns") / pl.col("ios") / NS_PER_MS),
    )
    return _timed(run, frame)


def _timed(run: RunDirectory, frame: pl.DataFrame) -> pl.DataFrame:
    """A table of intervals with the time of day at which each began."""
    steps = run.manifest.steps
    starts = pl.DataFrame(
        {"step": [step.key for step in steps], "start_utc": [_utc(step.started_at) for step in steps]},
        schema={"step": pl.String(), "start_utc": _TIME},
    )
    begun = pl.col("start_utc") + pl.duration(microseconds=(pl.col("start_s") * 1e6).round().cast(pl.Int64))
    joined = frame.join(starts, on="step", how="left", maintain_order="left").with_columns(start_utc=begun)
    return joined.select("step", "interval", "start_utc", pl.exclude("step", "interval", "start_utc"))


def _steps(summaries: Sequence[StepSummary], run: RunDirectory) -> pl.DataFrame:
    rows = [dict(_step_cells(summary, run)) for summary in summaries]
    columns = list(rows[0]) if rows else ["step"]
    schema = {name: _type_of(name) for name in columns}
    return pl.DataFrame(rows, schema=schema)


def _type_of(name: str) -> pl.DataType:
    """Of a column of `steps`: the same in every run, also where all cells are empty."""
    if name.endswith("_utc"):
        return _TIME
    if name in _NAMES:
        return pl.String()
    whole = ("ios", "bytes", "errors", "intervals", "outstanding_asked", "retransmits", "late_arrivals")
    if name in whole or name.endswith(("_ios_beyond", "backlog_max_ios")):
        return pl.Int64()
    return pl.Float64()


def _step_cells(summary: StepSummary, run: RunDirectory) -> Iterator[tuple[str, Any]]:
    record, total, usage = run.step(summary.step), summary.total, summary.usage
    for name in ("step", "name", "label", "for_loops", "requested_rate", "state"):
        yield name, getattr(summary, name)
    yield "start_utc", _utc(record.started_at)
    yield "measured_s", summary.seconds
    yield "intervals", summary.intervals
    yield "outstanding_asked", summary.queue_depth_asked
    yield "rate_asked_iops", summary.rate_asked_iops
    yield "ios", total.ios
    yield "bytes", total.bytes
    yield "errors", total.errors
    yield "read_percent", summary.read_percent
    yield "queue_depth", total.queue_depth
    yield from _rates("", total)
    yield from _times("", total)
    for op, part in (("read_", summary.read), ("write_", summary.write)):
        yield from _rates(op, part)
        yield f"{op}service_mean_ms", part.mean_ms if part and part.ios else None
    yield "host_cpu_percent", usage.cpu_busy_percent
    yield "host_cpu_system_percent", usage.cpu_system_percent
    yield "load_cpu_s", usage.load_cpu_s
    yield "cycles_per_byte", usage.cycles_per_byte
    yield "cpu_us_per_io", usage.cpu_us_per_io
    yield "retransmits", usage.retransmits
    yield "host_retransmit_percent", usage.retransmits_percent
    yield "host_rwnd_limited_percent", usage.rwnd_limited_percent
    yield "host_sndbuf_limited_percent", usage.sndbuf_limited_percent
    yield "rtt_mean_us", usage.rtt_us_mean or None
    yield "late_arrivals", usage.late_arrivals
    yield "backlog_max_ios", usage.backlog_max


def _rates(prefix: str, part: OpSummary | None) -> Iterator[tuple[str, float | None]]:
    yield f"{prefix}iops", part.iops if part else None
    yield f"{prefix}mib_s", part.mib_s if part else None


def _times(prefix: str, total: OpSummary) -> Iterator[tuple[str, float | None]]:
    """Service and response times; `_ios_beyond` counts the I/Os beyond a percentile: below 100, do not quote it."""
    some = total.ios > 0
    yield f"{prefix}service_mean_ms", total.mean_ms if some else None
    yield f"{prefix}service_stddev_ms", total.stddev_ms if some else None
    yield f"{prefix}service_max_ms", total.max_ms if some else None
    yield f"{prefix}response_mean_ms", total.response_mean_ms if some else None
    yield f"{prefix}response_max_ms", total.response_max_ms if some else None
    for kind, quantiles in (("service", total.quantiles), ("response", total.response_quantiles)):
        found = {item.q: item for item in quantiles}
        for q in QUANTILES:
            name = f"{prefix}{kind}_p{f'{q * 100:.6g}'.replace('.', '')}"
            yield f"{name}_ms", found[q].value_ms if q in found else None
            yield f"{name}_ios_beyond", found[q].beyond if q in found else None


def _utc(time: datetime) -> datetime:
    return time.astimezone(UTC).replace(tzinfo=None)
