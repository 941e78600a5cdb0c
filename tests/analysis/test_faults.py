"""What an application noticed of a fault, from a run's events and counters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from linerate.analysis.faults import fault_figures
from linerate.results import (
    CounterRow,
    IntervalSample,
    LatencySample,
    RunDirectory,
    RunWriter,
    TimedEvent,
    WorkloadSource,
)

from tests.support.samples.hdr import PlainHistogram

INTERVAL_S = 0.5


def run_of(folder: Path, ios: Sequence[int], events: Sequence[TimedEvent], errors: int = 0) -> RunDirectory:
    """A run with so many I/Os in each interval; those of the last one took 2 s, the others 1 ms."""
    with RunWriter.create(folder / "run", name="r", workload=WorkloadSource(name="r")) as writer:
        writer.begin_step("r", spec={}, facts={})
        for index, count in enumerate(ios):
            took_ns = 2_000_000_000 if index == len(ios) - 1 else 1_000_000
            times = PlainHistogram()
            times.record(took_ns, count)
            row = CounterRow(
                "s", "v1", "read", count, 4096 * count, errors if index == 1 else 0, response_max_ns=took_ns
            )
            begins_s = index * INTERVAL_S
            writer.interval(
                IntervalSample(
                    index=index,
                    start_s=begins_s,
                    end_s=begins_s + INTERVAL_S,
                    warmup=False,
                    rows=(row,) if count else (),
                    latencies=(LatencySample("read", "response", times, stream="s"),) if count else (),
                    events=tuple(one for one in events if begins_s <= one.at_s < begins_s + INTERVAL_S),
                )
            )
        writer.end_step()
        return writer.close("complete")


def path_event(at_s: float, kind: str, path: str) -> TimedEvent:
    return TimedEvent(at_s, kind, "", volume="v1", path=path)


def test_what_a_pulled_cable_costs(tmp_path: Path) -> None:
    events = [
        TimedEvent(0.6, "fault", "cable h1.p0"),
        path_event(0.7, "path_failed", "p0"),
        path_event(1.85, "failover", "p1"),
        path_event(1.9, "failover", "p1"),
        TimedEvent(2.1, "healed", "cable h1.p0"),
        path_event(2.2, "path_restored", "p0"),
    ]
    run = run_of(tmp_path, [100, 50, 0, 0, 30, 2], events, errors=3)
    assert fault_figures(run, "r") == pytest.approx(
        {
            "io_errors": 3,
            "failover_s": 1.25,
            "slow_ios": 2,
            "response_max_ms": 2000,
            "stall_s": 1.0,
            "paths_down": 0,
        }
    )


def test_the_slowest_of_several_faults_and_a_path_that_stays_down(tmp_path: Path) -> None:
    events = [
        TimedEvent(0.1, "fault", "cable h1.p0"),
        path_event(0.2, "failover", "p1"),
        path_event(0.2, "path_failed", "p0"),
        path_event(0.3, "path_restored", "p0"),
        TimedEvent(0.6, "fault", "switch sw1"),
        path_event(0.7, "path_failed", "p0"),
        path_event(1.4, "failover", "p1"),
    ]
    figures = fault_figures(run_of(tmp_path, [10, 10, 10], events), "r")
    assert figures["failover_s"] == pytest.approx(0.8)
    assert (figures["paths_down"], figures["stall_s"]) == (1, 0)


def test_no_failover_is_not_a_fast_one(tmp_path: Path) -> None:
    figures = fault_figures(run_of(tmp_path, [10, 10], [TimedEvent(0.1, "fault", "mtu h1.p0 1500")]), "r")
    assert "failover_s" not in figures


def test_a_run_without_faults_has_no_such_figures(tmp_path: Path) -> None:
    assert fault_figures(run_of(tmp_path, [10], [path_event(0.1, "path_failed", "p0")]), "r") == {}
