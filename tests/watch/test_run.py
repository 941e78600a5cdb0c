"""A run as it is watched: live and closed give the same, a dead path is a gap, an end is noticed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from linerate.analysis import summarise
from linerate.results import Planned, RunDirectory, RunWriter, WorkloadSource
from linerate.watch import DirectorySource
from linerate.watch.run import RunSource, source

from tests.support.samples.path_run import PathLoad, Way, write_path_step
from tests.support.samples.synthetic import Clock, Load, make_run
from tests.watch.conftest import kept, polled


def _last(updates: list[tuple[str, dict[str, Any]]], kind: str) -> dict[str, Any]:
    return [data for found, data in updates if found == kind][-1]


def _points(updates: list[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    return [data for kind, data in updates if kind == "point"]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def writer(tmp_path: Path, clock: Clock) -> Iterator[RunWriter]:
    source = WorkloadSource(name="live")
    planned = Planned(steps=2, seconds=10.0)
    with RunWriter.create(
        tmp_path / "run", name="live", workload=source, planned=planned, now=clock
    ) as writing:
        yield writing


LOAD = PathLoad([Way("p0"), Way("p1", [80])], intervals=4)


def test_what_is_followed_live_is_what_the_closed_run_holds(writer: RunWriter, clock: Clock) -> None:
    live = kept(RunSource(writer.path))
    followed = polled(live)
    for name in ("rd1", "rd2"):
        write_path_step(writer, PathLoad(LOAD.ways, name=name, intervals=4), clock)
        followed += polled(live)
    writer.close("complete")
    followed += polled(live)
    closed = polled(kept(RunSource(writer.path)))
    assert _points(followed) == _points(closed)
    assert len(_points(closed)) == 8
    assert _last(followed, "step") == _last(closed, "step")
    assert live.is_over


def test_the_figures_of_a_step_are_those_of_the_report(tmp_path: Path) -> None:
    run = make_run(
        tmp_path / "run", [Load(intervals=12, warmup=2), Load(name="rd2", iops=900.0, intervals=5)]
    )
    steps = [data for kind, data in polled(kept(RunSource(run.path))) if kind == "step"]
    for shown, summary in zip(steps, summarise(run), strict=True):
        p99 = summary.total.quantile(0.99)
        assert p99 is not None
        assert shown["seconds"] == pytest.approx(summary.seconds)
        assert shown["iops"] == pytest.approx(summary.total.iops, rel=1e-3)
        assert shown["mib_s"] == pytest.approx(summary.total.mib_s, rel=1e-3)
        assert shown["mean_ms"] == pytest.approx(summary.total.mean_ms, rel=1e-3)
        assert shown["p99_ms"] == pytest.approx(p99.value_ms, rel=1e-3)
        assert shown["queue"] == pytest.approx(summary.queue_depth, rel=1e-3)


def test_a_dead_path_is_a_gap_and_an_idle_path_is_zero(path_run: RunDirectory) -> None:
    points = _points(polled(kept(RunSource(path_run.path))))
    dead = [point["paths"]["p0"] for point in points[4:8]]
    assert [(one["mib_s"], one["ms"]) for one in dead] == [(None, None)] * 4
    assert all(point["paths"]["p0"]["mib_s"] > 0 for point in points[:4] + points[8:])
    assert all(point["paths"]["p1"]["mib_s"] > 0 for point in points)


def test_an_idle_standby_path_carries_nothing_but_is_there(writer: RunWriter) -> None:
    ways = [Way("p0"), Way("p1", [0], state="standby")]
    write_path_step(writer, PathLoad(ways, intervals=2), Clock())
    standby = [point["paths"]["p1"] for point in _points(polled(kept(RunSource(writer.path))))]
    assert [(one["mib_s"], one["ms"]) for one in standby] == [(0.0, None)] * 2


def test_an_interval_without_io_has_no_response_time(writer: RunWriter) -> None:
    write_path_step(writer, PathLoad([Way("p0", [100, 0, 100])], intervals=3), Clock())
    points = _points(polled(kept(RunSource(writer.path))))
    assert [point["mean_ms"] is None for point in points] == [False, True, False]
    assert [point["p99_ms"] is None for point in points] == [False, True, False]


def test_the_time_left_comes_from_the_plan(writer: RunWriter) -> None:
    live = kept(RunSource(writer.path))
    assert _last(polled(live), "progress")["left_s"] == 10.0
    writer.begin_step("rd1", spec={"warmup_s": 1.0, "elapsed_s": 4.0}, facts={})
    assert _last(polled(live), "progress") == {"done_s": 0.0, "left_s": 10.0, "left_of_step_s": 5.0}
    writer.end_step()
    assert _last(polled(live), "progress") == {"done_s": 5.0, "left_s": 5.0, "left_of_step_s": 0.0}
    writer.close("failed", "the array went away")
    updates = polled(live)
    assert _last(updates, "progress")["left_s"] == 0.0
    assert (_last(updates, "run")["state"], _last(updates, "run")["reason"]) == (
        "failed",
        "the array went away",
    )


def test_a_torn_line_is_shown_when_it_is_whole(writer: RunWriter) -> None:
    write_path_step(writer, LOAD, Clock())
    spool = writer.path / "intervals.spool"
    whole = spool.read_bytes()
    spool.write_bytes(whole[:-10])
    live = kept(RunSource(writer.path))
    assert len(_points(polled(live))) == 3
    with spool.open("ab") as file:
        file.write(whole[-10:])
    assert len(_points(polled(live))) == 1


def test_a_run_whose_process_died_is_noticed(path_run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    path = path_run.path / "manifest.json"
    path.chmod(0o644)
    path.write_text(path.read_text().replace('"state": "complete"', '"state": "running"'))
    monkeypatch.setattr(source, "SILENCE_S", 0.0)
    live = kept(RunSource(path_run.path))
    assert _last(polled(live), "run")["state"] == "interrupted"


def test_a_directory_is_what_it_turns_out_to_be(tmp_path: Path) -> None:
    watched = kept(DirectorySource(tmp_path / "run"))
    assert polled(watched) == [("waiting", {"directory": str(tmp_path / "run")})]
    assert polled(watched) == []
    make_run(tmp_path / "run", [Load(intervals=3, warmup=0)])
    kinds = [kind for kind, _ in polled(watched)]
    assert kinds[:2] == ["clear", "run"]
    assert kinds.count("point") == 3
