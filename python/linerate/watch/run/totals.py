"""Counts and sums of a run since its start, warm-up included: what `/metrics` gives. Nothing is averaged here."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from linerate.results import LatencyHistogram
from linerate.results.columns import PATH_SUMS, USAGE_COLUMNS
from linerate.watch.run.lines import Line

ROW_SUMS = ("ios", "bytes", "errors", "service_sum_ns", "response_sum_ns")
USAGE_SUMS = tuple(
    name for name in USAGE_COLUMNS if name not in ("tsc_hz", "rtt_us_mean", "backlog_max", "outstanding_mean")
)
BUCKETS_NS = tuple(1 << power for power in range(13, 37))
"""Upper limits of the buckets of service times: 24 powers of two, 8 us to 69 s; HDR buckets end there too."""


class RunTotals:
    """The totals of one run directory."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], Counter[str]] = {}
        """(volume, operation) -> sums."""
        self.paths: dict[tuple[str, str], Counter[str]] = {}
        """(volume, path) -> sums."""
        self.usage: Counter[str] = Counter()
        self.outstanding = 0.0
        """Mean of the last interval."""
        self.backlog = 0
        """Largest number of I/Os that waited for a free slot in the last interval."""
        self.intervals = 0
        self.service_ns: list[int] = [0] * (len(BUCKETS_NS) + 1)
        """Service times by bucket; the last bucket has no limit."""

    def add(self, line: Line, service: Sequence[LatencyHistogram]) -> None:
        """Adds an interval with its distributions."""
        self.intervals += 1
        rows = line.rows
        for number, key in enumerate(zip(rows["volume"], rows["op"], strict=True)):
            sums = self.rows.setdefault(key, Counter())
            for name in ROW_SUMS:
                sums[name] += rows[name][number]
        paths = line.paths
        for number, key in enumerate(zip(paths["volume"], paths["path"], strict=True) if paths else ()):
            sums = self.paths.setdefault(key, Counter())
            for name in PATH_SUMS:
                sums[name] += paths[name][number]
        for name in USAGE_SUMS:
            self.usage[name] += line.usage[name]  # type: ignore[assignment]  # seconds are floats
        self.outstanding = line.usage["outstanding_mean"]
        self.backlog = int(line.usage["backlog_max"])
        for histogram in service:
            for _, highest, count in histogram.buckets():
                self.service_ns[bucket(highest)] += count


def bucket(value_ns: int) -> int:
    """The number of the bucket of a service time."""
    power = math.ceil(math.log2(value_ns)) if value_ns > 1 else 0
    return min(max(power - 13, 0), len(BUCKETS_NS))
