"""What an application noticed of the faults of a run: errors, waits, and how long until its I/O found another way.

The instants of the faults and of what the paths did stand among the run's events, on one clock; the waits are in the
counters and distributions of the measured time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from linerate.analysis.paths.faults import paths_down, slow_count
from linerate.analysis.summary import NS_PER_MS
from linerate.results import RunDirectory, TimedEvent


def fault_figures(run: RunDirectory, step: str) -> dict[str, float]:
    """The figures of one step; empty for one without faults.

    `io_errors`: errors that the application got.
    `failover_s`: from a fault to the end of the first requeued I/O on another path; the longest of all faults,
    and absent if no I/O was requeued.
    `slow_ios`: I/Os with a response time above 1 s. `response_max_ms`: the longest.
    `stall_s`: the longest time, in whole intervals, in which no I/O ended.
    `paths_down`: paths that failed and were not back at the end.
    """
    events = [event for event in run.events if event.step == step]
    if not any(event.kind == "fault" for event in events):
        return {}
    rows = run.measured_rows(step)
    figures = {
        "io_errors": float(rows["errors"].sum()),
        "response_max_ms": max(rows["response_max_ns"], default=0) / NS_PER_MS,
        "stall_s": _stall_s(rows, run.measured_usage(step)),
        "paths_down": float(len(paths_down(events))),
    }
    # Response times stand in the log where they are not the service times.
    times = run.latency(step, kind="response") or run.latency(step)
    if times is not None:
        figures["slow_ios"] = float(slow_count(times))
    if failovers := list(_failovers_s(events)):
        figures["failover_s"] = max(failovers)
    return figures


def _stall_s(rows: pl.DataFrame, usage: pl.DataFrame) -> float:
    """Of intervals that lie side by side; one without any I/O has no rows."""
    busy = set(rows.filter(pl.col("ios") > 0)["interval"])
    longest = now = 0.0
    for interval, start_s, end_s in usage.select("interval", "start_s", "end_s").iter_rows():
        now = 0.0 if interval in busy else now + end_s - start_s
        longest = max(longest, now)
    return longest


def _failovers_s(events: Sequence[TimedEvent]) -> Iterator[float]:
    """For each fault, until the first failover that follows it and no later fault."""
    waiting: TimedEvent | None = None
    for event in sorted(events, key=lambda event: event.at_s):
        if event.kind == "fault":
            waiting = event
        elif event.kind == "failover" and waiting is not None:
            yield event.at_s - waiting.at_s
            waiting = None
