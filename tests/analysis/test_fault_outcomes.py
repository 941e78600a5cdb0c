"""What each fault of a run cost, from planted events and intervals."""

from __future__ import annotations

from pathlib import Path

import pytest
from linerate.analysis.paths import fault_outcomes
from linerate.results import TimedEvent

from tests.support.samples.path_run import PathLoad, Way, make_path_run

WAYS = [Way("h1.p0-a1.p0", [50]), Way("h1.p1-a1.p1", [50])]


def of_path(at_s: float, kind: str, path: str = "h1.p0-a1.p0") -> TimedEvent:
    return TimedEvent(at_s, kind, "", volume="v1", path=path)


@pytest.mark.parametrize("open_loop", [False, True])
def test_a_pulled_cable_from_fault_to_failback(tmp_path: Path, *, open_loop: bool) -> None:
    # 100 I/Os an interval, none in the one of the fault, 60 on one path, 20 when it comes back, then 110
    ios = [100, 100, 100, 10, 0, 60, 62, 58, 20, 30, 110, 110]
    load = PathLoad(
        [Way("h1.p0-a1.p0", ios)],
        intervals=len(ios),
        events=[
            TimedEvent(1.6, "fault", "cable h1.p0"),
            of_path(1.7, "path_failed"),
            of_path(2.45, "failover", "h1.p1-a1.p1"),
            TimedEvent(3.9, "healed", "cable h1.p0"),
            of_path(4.1, "path_restored"),
        ],
        errors={4: 1},
        slow={3: 4, 5: 3},
        open_loop=open_loop,
    )
    (found,) = fault_outcomes(make_path_run(tmp_path / "run", [load]), "rd1")
    assert (found.what, found.at_s, found.healed_s) == ("cable h1.p0", 1.6, 3.9)
    assert (found.failed, found.down, found.no_path) == (("h1.p0-a1.p0",), (), False)
    assert found.detected_s == pytest.approx(0.1)
    assert found.failover_s == pytest.approx(0.85)
    assert (found.slow_ios, found.errors, found.response_max_ms) == (7, 1, 2000)
    assert (found.iops_before, found.iops_failed, found.iops_after) == (200, 120, 220)
    assert found.back_s == pytest.approx(0.2)
    assert found.failback_ios == pytest.approx(40 + 30)
    assert found.failback_s == pytest.approx(1)


def test_a_return_that_costs_nothing_costs_nothing(tmp_path: Path) -> None:
    load = PathLoad(
        [Way("h1.p0-a1.p0", [100, 100, 60, 60, 60, 60, 100])],
        events=[
            TimedEvent(0.9, "fault", "port a1.p0"),
            of_path(0.95, "path_failed"),
            of_path(0.99, "failover"),
            of_path(3.0, "path_restored"),
        ],
    )
    (found,) = fault_outcomes(make_path_run(tmp_path / "run", [load]), "rd1")
    assert (found.failback_ios, found.failback_s) == (0, 0)
    assert (found.healed_s, found.back_s) == (None, None)


def test_a_fault_that_no_path_felt_says_nothing_of_failover(tmp_path: Path) -> None:
    load = PathLoad(WAYS, events=[TimedEvent(1.0, "fault", "mtu h1.p0 1500")])
    (found,) = fault_outcomes(make_path_run(tmp_path / "run", [load]), "rd1")
    assert (found.failed, found.detected_s, found.failover_s) == ((), None, None)
    assert (found.slow_ios, found.errors, found.failback_ios, found.iops_failed) == (0, 0, None, None)
    assert found.iops_before == 200


def test_faults_are_told_apart(tmp_path: Path) -> None:
    load = PathLoad(
        WAYS,
        events=[
            TimedEvent(1.0, "fault", "cable h1.p0"),
            of_path(1.1, "path_failed"),
            of_path(1.3, "failover", "h1.p1-a1.p1"),
            TimedEvent(3.0, "fault", "switch sw1"),
            of_path(3.2, "path_failed", "h1.p1-a1.p1"),
            of_path(3.2, "no_path", ""),
        ],
        slow={2: 1, 7: 5},
    )
    first, second = fault_outcomes(make_path_run(tmp_path / "run", [load]), "rd1")
    assert (first.failover_s, second.failover_s) == (pytest.approx(0.3), None)
    assert (first.slow_ios, second.slow_ios) == (1, 5)
    assert (first.no_path, second.no_path) == (False, True)
    assert (first.down, second.down) == (("h1.p0-a1.p0",), ("h1.p1-a1.p1",))


def test_a_run_without_faults_has_no_outcomes(tmp_path: Path) -> None:
    load = PathLoad(WAYS, events=[of_path(1.0, "path_failed")])
    assert fault_outcomes(make_path_run(tmp_path / "run", [load]), "rd1") == ()
