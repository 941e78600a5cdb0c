"""Response curves: one line per workload, labelled points, the knee; and the rows of events."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from linerate.analysis import summarise
from linerate.analysis.knee import knee
from linerate.report.page.curves import response_curves
from linerate.report.page.events import event_rows
from linerate.results import TimedEvent

from tests.support.samples.synthetic import Load, make_run

LOAD = Load(intervals=3, warmup=0, volumes=1, points=5)


def test_a_sweep_is_a_line_of_its_own_with_labels_and_a_knee(tmp_path: Path) -> None:
    """IOPS per ms: 10, 16.7, 8.8, 3.1: the knee is the second point."""
    sweep = [(1, 10_000, 1.0), (4, 20_000, 1.2), (16, 22_000, 2.5), (64, 22_500, 7.0)]
    loads = [
        replace(LOAD, name="rand", for_loops=f"threads={n}", outstanding=n, iops=iops, latency_ms=ms)
        for n, iops, ms in sweep
    ]
    other = replace(LOAD, name="seq", iops=100, latency_ms=87)
    curves = response_curves(summarise(make_run(tmp_path / "run", [*loads, other])))
    assert curves.keys() == {"rand"}, "a single run is no curve, and squashes none"
    assert [point["label"] for point in curves["rand"]] == ["1", "4 (knee)", "16", "64"]
    assert [point["knee"] for point in curves["rand"]] == [False, True, False, False]
    assert "rand, threads=16\n22,2" in curves["rand"][2]["say"]


def test_the_points_of_a_curve_are_in_the_order_of_their_rates(tmp_path: Path) -> None:
    """The run that finds the largest rate is left out: it had no rate to keep."""
    loads = [replace(LOAD, name="c", iops=50_000)]
    for percent in (100, 10, 50):
        paced = {"arrival": {"kind": "open", "process": "poisson", "rate_iops": 400.0 * percent}}
        loads.append(
            replace(LOAD, name=f"c_({percent}%)", iops=400 * percent, spec=paced, wait_ms=percent / 10)
        )
    (points,) = response_curves(summarise(make_run(tmp_path / "run", loads))).values()
    assert [point["label"] for point in points] == ["10%", "50%", "100%"]
    assert points[-1]["ms"] > 10, "with the wait"


def test_loops_besides_threads_make_lines_of_one_chart(tmp_path: Path) -> None:
    loads = [
        replace(LOAD, name="r", for_loops=f"xfersize={size} threads={n}", outstanding=n)
        for size in ("4k", "64k")
        for n in (1, 2, 4)
    ]
    curves = response_curves(summarise(make_run(tmp_path / "run", loads)))
    assert curves.keys() == {"r"}
    assert {point["of"] for point in curves["r"]} == {"r xfersize=4k", "r xfersize=64k"}


@pytest.mark.parametrize(
    ("points", "place"),
    [
        ([(100, 1.0), (180, 1.2), (200, 3.0)], 1),
        ([(100, 1.0), (150, 2.0), (160, 9.0)], None),
        ([(100, 1.0), (200, 1.0), (300, 1.0)], None),
        ([(100, 1.0), (200, 1.0)], None),
    ],
)
def test_the_knee_is_between_the_ends_or_not_known(
    points: list[tuple[float, float]], place: int | None
) -> None:
    assert knee(points) == place


def test_what_fails_during_a_planned_fault_is_laid_to_the_fault() -> None:
    events = [
        TimedEvent(1.0, "path_failed", "reset", blame="peer", step="a"),
        TimedEvent(4.0, "fault", "cable h1.p0", step="a"),
        TimedEvent(4.1, "path_failed", "the link is down", blame="peer", step="a"),
        TimedEvent(4.2, "wrong_block", "a block has other data", blame="us", step="a"),
        TimedEvent(8.0, "healed", "cable h1.p0", step="a"),
        TimedEvent(8.5, "path_failed", "no answer", blame="host", step="a"),
        TimedEvent(30.0, "path_failed", "reset", blame="host", step="a"),
        TimedEvent(4.1, "path_failed", "reset", blame="peer", step="b"),
    ]
    assert [row.cause for row in event_rows(events)] == [
        "array or network",
        "planned fault",
        "planned fault",
        "Linerate",
        "planned fault",
        "planned fault",
        "load host",
        "array or network",
    ]
