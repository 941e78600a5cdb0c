"""Intervals of several hosts as intervals of one, in order, each as soon as every host that is left delivered it."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace

from linerate.results import IntervalSample, LatencySample, TimedEvent, Usage
from linerate.results.histogram import LatencyHistogram, merged

_MEANS = {"tsc_hz", "rtt_us_mean"}
_MAXIMA = {"backlog_max"}


class HostMerger:
    """Collects intervals by host. A host leaves when it has ended or was lost; what it delivered before counts."""

    def __init__(self, hosts: Iterable[str]) -> None:
        self._order = tuple(hosts)
        self._left = set(self._order)
        self._waiting: defaultdict[int, dict[str, IntervalSample]] = defaultdict(dict)
        self._next = 0
        self._events: list[TimedEvent] = []
        self._ready: deque[IntervalSample] = deque()

    def add(self, host: str, interval: IntervalSample) -> None:
        """One interval of a host."""
        self._waiting[interval.index][host] = interval
        self._advance()

    def event(self, event: TimedEvent) -> None:
        """Something that happened outside of the hosts; it goes with the next interval."""
        self._events.append(event)

    def late(self) -> tuple[TimedEvent, ...]:
        """Events for which no interval is left to come, once."""
        late, self._events = tuple(self._events), []
        return late

    def leave(self, host: str) -> None:
        """Nothing more will come from a host."""
        self._left.discard(host)
        self._advance()

    def pop(self) -> IntervalSample | None:
        """The next merged interval, if it is complete."""
        return self._ready.popleft() if self._ready else None

    @property
    def finished(self) -> bool:
        """All hosts have left, and all their intervals were taken."""
        return not self._left and not self._waiting and not self._ready

    def _advance(self) -> None:
        while self._waiting:
            delivered = self._waiting.get(self._next, {})
            if not self._left <= delivered.keys():
                return
            if delivered:
                one = merge([delivered[host] for host in self._order if host in delivered])
                self._ready.append(replace(one, events=(*one.events, *self._events)))
                self._events = []
                del self._waiting[self._next]
            self._next += 1


def merge(intervals: Sequence[IntervalSample]) -> IntervalSample:
    """One interval of all: rows and distributions side by side where names differ, added where they do not."""
    first = intervals[0]
    latencies: defaultdict[tuple[str, ...], list[LatencySample]] = defaultdict(list)
    for interval in intervals:
        for one in interval.latencies:
            latencies[one.stream, one.volume, one.op, one.kind].append(one)
    return IntervalSample(
        index=first.index,
        start_s=min(interval.start_s for interval in intervals),
        end_s=max(interval.end_s for interval in intervals),
        warmup=first.warmup,
        rows=tuple(row for interval in intervals for row in interval.rows),
        usage=_usage([interval.usage for interval in intervals]),
        latencies=tuple(replace(same[0], histogram=_added(same)) for same in latencies.values()),
        events=tuple(event for interval in intervals for event in interval.events),
        paths=tuple(row for interval in intervals for row in interval.paths),
    )


def _added(same: Sequence[LatencySample]) -> LatencyHistogram:
    return same[0].histogram if len(same) == 1 else merged(one.histogram for one in same) or same[0].histogram


def _usage(usages: Sequence[Usage]) -> Usage:
    """Sums; CPU times of all hosts together, so that their ratios are means over the hosts."""
    values: dict[str, float] = {}
    for item in fields(Usage):
        each = [getattr(usage, item.name) for usage in usages]
        if item.name in _MAXIMA:
            values[item.name] = max(each)
        elif item.name in _MEANS:
            values[item.name] = sum(each) / len(each)
        else:
            values[item.name] = sum(each)
    return Usage(**values)  # type: ignore[arg-type]
