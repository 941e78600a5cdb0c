"""The figures of one interval, as the charts show them.

Times are seconds since the start of the run; MB/s means 2^20 bytes per second. A figure that was not measured is null
and leaves a gap: a path that is down has no service time, an interval without I/O has no response time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from linerate.results import LatencyHistogram
from linerate.results.histogram import merged
from linerate.watch.run.lines import Columns, Line

MIB = 1 << 20
NS_PER_MS = 1e6
PATHS_MOST = 16
"""Paths in a chart: more lines cannot be told apart."""
DOWN = frozenset({"connecting", "checking", "unavailable", "failed", "refused"})
"""States in which a path carries nothing, as the initiator names them. A standby path is up."""

Point = dict[str, Any]


def point(
    line: Line, step: int, offset_s: float, latencies: Mapping[str, Sequence[LatencyHistogram]]
) -> Point:
    """The point of an interval of the step with this number, which began `offset_s` after the run."""
    seconds = line.seconds or 1.0
    ios, rows = sum(line.rows["ios"]), line.rows
    reads = sum(count for count, op in zip(rows["ios"], rows["op"], strict=True) if op == "read")
    service = merged(latencies.get("service", ()))
    response = merged(latencies.get("response", ()))
    return {
        "t": round(offset_s + line.end_s, 3),
        "s": round(line.seconds, 3),
        "step": step,
        "warmup": line.warmup,
        "iops": short(ios / seconds),
        "read_iops": short(reads / seconds),
        "mib_s": short(sum(rows["bytes"]) / seconds / MIB),
        "errors": sum(rows["errors"]),
        "mean_ms": short(sum(rows["service_sum_ns"]) / ios / NS_PER_MS) if ios else None,
        "p99_ms": _p99_ms(service),
        "max_ms": short(max(rows["service_max_ns"]) / NS_PER_MS) if ios else None,
        "response_mean_ms": short(sum(rows["response_sum_ns"]) / ios / NS_PER_MS) if ios else None,
        "response_p99_ms": _p99_ms(response),
        "queue": short(sum(rows["service_sum_ns"]) / 1e9 / seconds),
        **_cpu(line.usage),
        "retransmits": int(line.usage["retransmits"]),
        "paths": _paths(line.paths, seconds),
    }


def _p99_ms(histogram: LatencyHistogram | None) -> float | None:
    return short(histogram.quantile(0.99) / NS_PER_MS) if histogram is not None and histogram.count else None


def _cpu(usage: Mapping[str, float]) -> dict[str, float | None]:
    """Of all CPUs of the load host: user and system time, system time, and the load's own part, in percent."""
    busy_s = usage["host_cpu_user_s"] + usage["host_cpu_system_s"]
    whole_s = busy_s + usage["host_cpu_idle_s"] + usage["host_cpu_wait_s"]
    if whole_s <= 0:
        return {"cpu_percent": None, "cpu_system_percent": None, "cpu_load_percent": None}
    load_s = usage["load_cpu_user_s"] + usage["load_cpu_system_s"]
    return {
        "cpu_percent": short(100 * busy_s / whole_s),
        "cpu_system_percent": short(100 * usage["host_cpu_system_s"] / whole_s),
        "cpu_load_percent": short(100 * load_s / whole_s),
    }


def _paths(paths: Columns, seconds: float) -> dict[str, dict[str, Any]]:
    """By path, over all volumes: state, MB/s, mean service time. None where it carried nothing because it was down."""
    if not paths:
        return {}
    found: dict[str, dict[str, Any]] = {}
    for number, name in enumerate(paths["path"]):
        one = found.setdefault(
            name, {"states": set(), "ios": 0, "bytes": 0, "service_ns": 0, "requeued": 0, "retransmits": 0}
        )
        one["states"].add(paths["state"][number])
        one["ios"] += paths["read_ios"][number] + paths["write_ios"][number]
        one["bytes"] += paths["read_bytes"][number] + paths["write_bytes"][number]
        one["service_ns"] += paths["service_sum_ns"][number]
        one["requeued"] += paths["requeued"][number]
        one["retransmits"] += paths["retransmits"][number]
    return {name: _path(found[name], seconds) for name in sorted(found)[:PATHS_MOST]}


def _path(one: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    ios = one["ios"]
    is_down = not ios and one["states"] <= DOWN
    return {
        "state": next(iter(one["states"])) if len(one["states"]) == 1 else "mixed",
        "mib_s": None if is_down else short(one["bytes"] / seconds / MIB),
        "ms": short(one["service_ns"] / ios / NS_PER_MS) if ios else None,
        "requeued": one["requeued"],
        "retransmits": one["retransmits"],
    }


def short(value: float) -> float:
    """Four significant digits: more than a chart can show."""
    return float(f"{value:.4g}")
