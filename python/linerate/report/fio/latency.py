"""Latencies as fio's JSON shows them: moments, percentiles, bins, and the coarse tables of ns, us and ms.

A bin of fio (stat.h of fio 3.33) is 1 ns wide below 128 ns. Above, each power of two has 64 bins, and the name of a bin
is its middle. The last bin holds everything from 17.2 s on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from linerate.results import LatencyHistogram

PERCENTILES = (1.0, *(10.0 * tenth for tenth in range(1, 10)), 5.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99)
"""Those that fio shows unless percentile_list= says otherwise."""
_BIN_BITS = 6
_LAST_BIN_NS = 17_112_760_320
_STEPS = (2, 4, 10, 20, 50, 100, 250, 500, 750, 1000)
NO_LATENCY: Mapping[str, Any] = {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0}


def latency_entry(histogram: LatencyHistogram | None, percentiles: Sequence[float]) -> Mapping[str, Any]:
    """Times in ns: smallest, largest, mean, standard deviation, count, percentiles and bins."""
    if histogram is None or not histogram.count:
        return NO_LATENCY
    return {
        "min": histogram.min,
        "max": histogram.max,
        "mean": round(histogram.mean, 6),
        "stddev": round(stddev_ns(histogram), 6),
        "N": histogram.count,
        "percentile": {
            f"{percent:.6f}": min(histogram.quantile(percent / 100), histogram.max)
            for percent in sorted(percentiles)
        },
        "bins": bins(histogram),
    }


def bins(histogram: LatencyHistogram) -> Mapping[str, int]:
    """Count by the name of each bin that has any, ascending."""
    counts: dict[int, int] = {}
    for lowest, highest, count in histogram.buckets():
        name = bin_of((lowest + highest) // 2)
        counts[name] = counts.get(name, 0) + count
    return {str(name): count for name, count in counts.items()}


def bin_of(time_ns: int) -> int:
    """The name of the bin of a time."""
    shift = max(time_ns.bit_length() - 1 - _BIN_BITS, 0)
    middle = (time_ns >> shift << shift) + (1 << shift >> 1)
    return min(middle, _LAST_BIN_NS)


def coarse_tables(histogram: LatencyHistogram | None) -> Mapping[str, Mapping[str, float]]:
    """latency_ns, latency_us and latency_ms: percent of the I/Os below each limit and not below the one before."""
    limits_ns = [
        *(step for step in _STEPS),
        *(step * 1000 for step in _STEPS),
        *(step * 1_000_000 for step in (*_STEPS, 2000)),
        math.inf,
    ]
    counts = [0] * len(limits_ns)
    place = 0
    for lowest, highest, count in histogram.buckets() if histogram else ():
        while (lowest + highest) / 2 >= limits_ns[place]:
            place += 1
        counts[place] += count
    total = max(sum(counts), 1)
    shares = [round(100 * count / total, 6) for count in counts]
    names = [str(step) for step in _STEPS]
    first, second = len(names), 2 * len(names)
    return {
        "latency_ns": dict(zip(names, shares[:first], strict=True)),
        "latency_us": dict(zip(names, shares[first:second], strict=True)),
        "latency_ms": dict(zip([*names, "2000", ">=2000"], shares[second:], strict=True)),
    }


def stddev_ns(histogram: LatencyHistogram) -> float:
    """Standard deviation of the times, each counted in the middle of its bucket."""
    mean = histogram.mean
    squares = sum(
        count * ((lowest + highest) / 2 - mean) ** 2 for lowest, highest, count in histogram.buckets()
    )
    return math.sqrt(squares / histogram.count)
