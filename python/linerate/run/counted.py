"""What the counters around a load counted between two instants."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from linerate.results import IntervalSample

HIGH_WATER = "_max"
"""A counter whose name ends so is a high-water mark: its value is used, not a difference."""

Counters = Callable[[], Mapping[str, float]]
"""Reads cumulative counters of everything around the load; units end the names."""


class Counted:
    """What the counters counted between the end of the warm-up and the end of the step."""

    def __init__(self, read: Counters | None, *, warms_up: bool) -> None:
        self._read = read
        self._before: Mapping[str, float] | None = read() if read and not warms_up else None

    def after_warmup(self, interval: IntervalSample, warmup_s: float, interval_s: float) -> None:
        """Starts to count at the end of the last interval of the warm-up."""
        last = interval.warmup and interval.end_s > warmup_s - interval_s / 2
        if self._read is not None and self._before is None and (last or not interval.warmup):
            self._before = self._read()

    def difference(self) -> dict[str, float]:
        """Counted since; empty when the measured time never began."""
        if self._read is None or self._before is None:
            return {}
        return {
            name: value if name.endswith(HIGH_WATER) else value - self._before.get(name, 0.0)
            for name, value in self._read().items()
        }
