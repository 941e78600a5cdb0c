"""The figures of a step so far, over its measured time: sums, and the merged distribution of its service times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from linerate.results import LatencyHistogram, StepRecord
from linerate.results.histogram import decode
from linerate.watch.run.lines import Line
from linerate.watch.run.point import MIB, NS_PER_MS, short


class StepFigures:
    """What one step has measured."""

    def __init__(self, number: int, record: StepRecord) -> None:
        self.number = number
        self._record = record
        self._seconds = 0.0
        self._sums = dict.fromkeys(("ios", "bytes", "errors", "service_sum_ns", "response_sum_ns"), 0)
        self._service: LatencyHistogram | None = None
        self.end_s = 0.0
        """End of the last interval, warm-up included, in seconds of the step."""

    def add(self, line: Line, service: Sequence[LatencyHistogram]) -> None:
        """Adds an interval; of the warm-up only its time is taken."""
        self.end_s = line.end_s
        if line.warmup:
            return
        self._seconds += line.seconds
        for name in self._sums:
            self._sums[name] += sum(line.rows[name])
        for histogram in service:
            if self._service is None:
                self._service = decode(histogram.encode())
            else:
                self._service.merge(histogram)

    def shown(self) -> dict[str, Any]:
        """The row of the page's table; null where nothing was measured."""
        sums, ios = self._sums, self._sums["ios"]
        p99 = self._service.quantile(0.99) / NS_PER_MS if ios and self._service is not None else None
        is_open = self._record.spec.get("arrival", {}).get("kind") == "open"
        return {
            "step": self.number,
            "seconds": round(self._seconds, 3),
            "iops": short(ios / self._seconds) if self._seconds else None,
            "mib_s": short(sums["bytes"] / self._seconds / MIB) if self._seconds else None,
            "mean_ms": short(sums["service_sum_ns"] / ios / NS_PER_MS) if ios else None,
            "p99_ms": None if p99 is None else short(p99),
            "response_ms": short(sums["response_sum_ns"] / ios / NS_PER_MS) if ios and is_open else None,
            "queue": short(sums["service_sum_ns"] / 1e9 / self._seconds) if self._seconds else None,
            "errors": sums["errors"],
        }
