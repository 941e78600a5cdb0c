"""What each fault of a run did to the I/O: from the events, on the run's own clock, and the intervals around them.

A fault's time lasts until the next one. Instants of events are exact; counters are counted in whole
intervals, so that rates and losses are as fine as the run's interval and no finer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

import polars as pl

from linerate.analysis.summary import NS_PER_MS
from linerate.results import LatencyHistogram, RunDirectory, TimedEvent

SLOW_NS = 1_000_000_000
"""A response that takes longer is noticed by users."""
DIP = 0.95
"""Below this share of the rate before, and below every rate seen before, a path's return cost something."""
_AROUND = 10
"""Intervals before an instant that tell what is usual."""
_TIME_SLACK_S = 0.002  # the latency log rounds to a millisecond


@dataclass(frozen=True, slots=True)
class FaultOutcome:
    """One fault and what came of it. Times count from the fault unless the name says otherwise.

    `detected_s`: until the first path was found dead. `failover_s`: until the first requeued I/O was completed on
    another path. `slow_ios`: responses over a second. `errors`: those of the application. `iops_before`, `iops_failed`,
    `iops_after`: medians before the fault, while paths were down and after they were back. `back_s`: from the healing
    to the last return of a path. `failback_ios` and `failback_s`: I/Os not done because paths came back, against the
    rate just before, and for how long. None: it did not happen, or no interval shows it.
    """

    what: str
    at_s: float
    healed_s: float | None
    failed: tuple[str, ...]
    down: tuple[str, ...]
    detected_s: float | None
    failover_s: float | None
    no_path: bool
    slow_ios: int
    response_max_ms: float
    errors: int
    iops_before: float | None
    iops_failed: float | None
    iops_after: float | None
    back_s: float | None
    failback_ios: float | None
    failback_s: float | None


@dataclass(frozen=True, slots=True)
class _Interval:
    start_s: float
    end_s: float
    ios: int
    errors: int
    response_max_ns: int

    @property
    def iops(self) -> float:
        return self.ios / (self.end_s - self.start_s)


def fault_outcomes(run: RunDirectory, step: str) -> tuple[FaultOutcome, ...]:
    """Every fault of a step, in order; none without a `fault` event."""
    events = sorted((event for event in run.events if event.step == step), key=lambda event: event.at_s)
    faults = [event for event in events if event.kind == "fault"]
    if not faults:
        return ()
    intervals = _intervals(run, step)
    end_s = max([*(interval.end_s for interval in intervals), *(event.at_s for event in events)])
    slow = _slow_ios(run, step, intervals)
    ends = [*(fault.at_s for fault in faults[1:]), end_s]
    return tuple(
        _outcome(fault, until_s, events, intervals, slow) for fault, until_s in zip(faults, ends, strict=True)
    )


def _outcome(
    fault: TimedEvent,
    until_s: float,
    events: Sequence[TimedEvent],
    intervals: Sequence[_Interval],
    slow: Sequence[int],
) -> FaultOutcome:
    after = [event for event in events if fault.at_s <= event.at_s <= until_s]
    failed = [event for event in after if event.kind == "path_failed"]
    failovers = [event for event in after if event.kind == "failover"]
    returned = [event for event in after if event.kind == "path_restored"]
    healed = next((one for one in after if one.kind == "healed" and one.message == fault.message), None)
    covered = [number for number, one in enumerate(intervals) if _overlaps(one, fault.at_s, until_s)]
    within = [intervals[number] for number in covered]
    before = [one for one in intervals if one.end_s <= fault.at_s][-_AROUND:]
    from_s = failovers[0].at_s if failovers else failed[0].at_s if failed else None
    first_back_s = returned[0].at_s if returned else until_s
    broken = [
        one for one in within if from_s is not None and one.start_s >= from_s and one.end_s <= first_back_s
    ]
    afterwards = [one for one in within if returned and one.start_s >= returned[-1].at_s]
    lost = _dip(within, broken[-_AROUND:], returned[0].at_s) if returned and broken else None
    return FaultOutcome(
        what=fault.message,
        at_s=fault.at_s,
        healed_s=healed.at_s if healed else None,
        failed=tuple(dict.fromkeys(event.path for event in failed)),
        down=tuple(dict.fromkeys(path for _, path in paths_down(after))),
        detected_s=failed[0].at_s - fault.at_s if failed else None,
        failover_s=failovers[0].at_s - fault.at_s if failovers else None,
        no_path=any(event.kind == "no_path" for event in after),
        slow_ios=sum(slow[number] for number in covered),
        response_max_ms=max((one.response_max_ns for one in within), default=0) / NS_PER_MS,
        errors=sum(one.errors for one in within),
        iops_before=_median(before),
        iops_failed=_median(broken),
        iops_after=_median(afterwards),
        back_s=returned[-1].at_s - healed.at_s if healed and returned else None,
        failback_ios=lost[0] if lost else None,
        failback_s=lost[1] if lost else None,
    )


def _dip(within: Sequence[_Interval], usual: Sequence[_Interval], at_s: float) -> tuple[float, float]:
    """I/Os that were not done from a path's return on, against the rate before, and for how many seconds."""
    rate = median(one.iops for one in usual)
    floor = min(DIP * rate, *(one.iops for one in usual))
    rest = [one for one in within if one.end_s > at_s]
    if rest and rest[0].iops >= floor:
        rest = rest[1:]  # the return may fall on the last moment of its interval
    ios = seconds = 0.0
    for one in rest:
        if one.iops >= floor:
            break
        length = one.end_s - one.start_s
        ios += (rate - one.iops) * length
        seconds += length
    return ios, seconds


def _intervals(run: RunDirectory, step: str) -> list[_Interval]:
    """The measured intervals in order; one without any I/O has no rows and counts as one of none."""
    done = (
        run.measured_rows(step)
        .group_by("interval")
        .agg(pl.col("ios").sum(), pl.col("errors").sum(), pl.col("response_max_ns").max())
    )
    table = run.measured_usage(step).join(done, on="interval", how="left").sort("interval")
    columns = table.select("start_s", "end_s", "ios", "errors", "response_max_ns").fill_null(0)
    return [_Interval(*row) for row in columns.iter_rows() if row[1] > row[0]]


def _slow_ios(run: RunDirectory, step: str, intervals: Sequence[_Interval]) -> list[int]:
    """Of each interval: responses over a second, from its merged distribution."""
    slow = [0] * len(intervals)
    # A closed loop logs service times alone: they are the response times.
    times = run.latency_over_time(step, kind="response") or run.latency_over_time(step)
    for start_s, histogram in times:
        place = next(
            (at for at, one in enumerate(intervals) if abs(one.start_s - start_s) <= _TIME_SLACK_S), None
        )
        if place is not None:
            slow[place] += slow_count(histogram)
    return slow


def slow_count(histogram: LatencyHistogram) -> int:
    """Times of a distribution above `SLOW_NS`."""
    return sum(count for low, _, count in histogram.buckets() if low > SLOW_NS)


def paths_down(events: Iterable[TimedEvent]) -> tuple[tuple[str, str], ...]:
    """(volume, path) of those that failed and did not return; `events` in order."""
    down: dict[tuple[str, str], None] = {}
    for event in events:
        if event.kind == "path_failed":
            down[event.volume, event.path] = None
        elif event.kind == "path_restored":
            down.pop((event.volume, event.path), None)
    return tuple(down)


def _overlaps(interval: _Interval, start_s: float, end_s: float) -> bool:
    return interval.start_s < end_s and interval.end_s > start_s


def _median(intervals: Sequence[_Interval]) -> float | None:
    return median(one.iops for one in intervals) if intervals else None
