"""What paths carried, where senders met, and the sentence that is made of it: all figures are planted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from linerate.analysis.paths import PathLayout, explain, layout_of, merged_layout, over_time
from linerate.analysis.paths.layout import ports_of

from tests.support.samples.path_run import MIB, PathLoad, Way, make_path_run
from tests.support.samples.synthetic import make_run

CONTROL = PathLoad([Way("h1.p0-a1.p0", [220], service_ms=36.0)])
PARTIAL = PathLoad(
    [
        Way("h1.p0-a1.p0", [20], service_ms=300.0, retransmits=3),
        Way("h1.p1-a1.p1", [20], service_ms=300.0, retransmits=2),
        Way("h1.p2-a1.p0", [20, 0], service_ms=300.0, retransmits=4),
        Way("h1.p3-a1.p1", [20], service_ms=300.0),
    ],
    counters={
        "port.a1.p0.switch_drops": 40.0,
        "port.a1.p1.switch_drops": 1200.0,
        "port.h1.p0.switch_drops": 0.0,
    },
)


def layout(tmp_path: Path, load: PathLoad, name: str = "run") -> PathLayout:
    found = layout_of(make_path_run(tmp_path / name, [load]), "rd1")
    assert found is not None
    return found


def test_each_path_is_summed_up(tmp_path: Path) -> None:
    found = layout(
        tmp_path,
        PathLoad([Way("h1.p0-a1.p0", [300], 8.0, retransmits=1), Way("h1.p1-a1.p1", [100], 4.0)], op="read"),
    )
    first, second = found.paths
    assert (first.name, first.host_port, first.array_port) == ("h1.p0-a1.p0", "h1.p0", "a1.p0")
    assert (first.ios, first.bytes, first.retransmits) == (3000, 3000 * MIB // 4, 10)
    assert (first.iops, first.mib_s, first.share_percent) == (600, 150, 75)
    assert first.queue == pytest.approx(600 * 0.008)
    assert (second.service_ms, second.service_max_ms) == (4, 12)
    assert (found.seconds, found.interval_s, found.mib_s) == (5, 0.5, 200)
    assert found.service_ms == pytest.approx(7)
    assert found.read_percent == 100
    assert found.share_of("array") == {"a1.p0": 75, "a1.p1": 25}
    assert found.meetings == ()
    assert found.array_retransmits is None


def test_runs_add_up_and_do_not_meet_each_other(tmp_path: Path) -> None:
    """Two host ports that take turns run by run never met."""
    runs = [
        make_path_run(tmp_path / name, [PathLoad([Way(name, [100])])])
        for name in ("h1.p0-a1.p0", "h1.p1-a1.p0")
    ]
    found = merged_layout([(run, "rd1") for run in runs])
    assert found is not None
    assert [path.share_percent for path in found.paths] == [50, 50]
    assert found.seconds == 10
    assert found.meetings == ()


def test_sessions_of_one_path_are_one_sender(tmp_path: Path) -> None:
    found = layout(tmp_path, PathLoad([Way("h1.p0-a1.p0#1"), Way("h1.p0-a1.p0#2")]))
    assert found.meetings == ()
    assert found.share_of("host") == {"h1.p0": 100}


def test_senders_meet_where_the_data_goes(tmp_path: Path) -> None:
    """Writers meet at the array's port, readers' data at the host's."""
    writing = layout(tmp_path, PARTIAL, "w")
    assert [(one.port, one.side, one.senders, one.percent) for one in writing.meetings] == [
        ("a1.p1", "array", ("h1.p1", "h1.p3"), 100),
        ("a1.p0", "array", ("h1.p0", "h1.p2"), 10),
    ]
    assert layout(tmp_path, replace(PARTIAL, op="read"), "r").meetings == ()
    mesh = [Way(f"h1.p{ours}-a1.p{theirs}") for ours in range(2) for theirs in range(2)]
    reading = layout(tmp_path, PathLoad(mesh, op="read"), "m")
    assert {(one.port, one.side) for one in reading.meetings} == {("h1.p0", "host"), ("h1.p1", "host")}


def test_ends_of_a_path_come_from_its_name_or_its_addresses() -> None:
    spec = {
        "volumes": [
            {
                "url": "iscsi://10.0.0.1:3260/iqn/0",
                "paths": [
                    {"name": "left", "portal": "10.0.0.2:3260", "source_address": "10.0.0.9"},
                    {"name": "right", "interface": "eth1"},
                ],
            }
        ]
    }
    assert ports_of("h1.p0-a1.p1#2", spec) == ("h1.p0", "a1.p1")
    assert ports_of("left", spec) == ("10.0.0.9", "10.0.0.2:3260")
    assert ports_of("right#1", spec) == ("eth1", "10.0.0.1:3260")
    assert ports_of("elsewhere", spec) == ("", "")


def test_a_run_without_paths_has_no_layout(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    assert layout_of(run, "rd1") is None
    assert over_time(run, "rd1").is_empty()


def test_paths_over_time(tmp_path: Path) -> None:
    run = make_path_run(tmp_path / "run", [PathLoad([Way("a", [10, 20], 50.0), Way("b")], intervals=2)])
    table = over_time(run, "rd1").sort("path", "interval")
    assert table["ios"].to_list() == [10, 20, 100, 100]
    assert table["queue"].to_list()[:2] == [1, 2]


# ---- the sentence ----


def test_a_collapse_is_explained_by_what_was_seen(tmp_path: Path) -> None:
    said = explain(layout(tmp_path, PARTIAL), layout(tmp_path, CONTROL, "control"))
    for words in (
        "a1.p1 carried 65 %, a1.p0 carried 35 %",
        "Two host ports shared array port a1.p1 in 100 % of the intervals of 0.5 s",
        "Two host ports shared array port a1.p0 in 10 % of the intervals",
        "The switch dropped frames on the way: 1,200 to a1.p1 and 40 to a1.p0.",
        "TCP retransmits: 54 by the host.",
        "An I/O took 300 ms, 8.3 times as long as in the control, the longest 900 ms.",
        "consistent with senders that together overflow",
        "it does not prove it",
    ):
        assert words in said, said


def test_without_loss_there_is_no_mechanism(tmp_path: Path) -> None:
    quiet = PathLoad(
        [Way("h1.p0-a1.p0", [110], 72.0), Way("h1.p1-a1.p0", [110], 72.0)],
        counters={"port.a1.p0.switch_drops": 0.0},
    )
    control = layout(tmp_path, CONTROL, "control")
    said = explain(layout(tmp_path, quiet), control)
    assert "Two host ports shared array port a1.p0 in 100 %" in said
    assert "No frame was dropped there, and there were no TCP retransmits." in said
    assert said.endswith("Sharing a port by itself cost no throughput here.")
    unwatched = explain(layout(tmp_path, replace(quiet, counters={}), "blind"), control)
    assert "dropped" not in unwatched
    assert "consistent" not in unwatched
    assert "cost no throughput" not in unwatched


def test_a_few_lost_segments_explain_nothing(tmp_path: Path) -> None:
    ways = [replace(way, retransmits=0) for way in PARTIAL.ways]
    few = replace(PARTIAL, ways=ways, counters={"port.a1.p1.switch_drops": 3.0})
    said = explain(layout(tmp_path, few), layout(tmp_path, CONTROL, "control"))
    assert "3 to a1.p1" in said
    assert "consistent" not in said


def test_loss_without_a_control_is_told_and_not_interpreted(tmp_path: Path) -> None:
    said = explain(layout(tmp_path, PARTIAL))
    assert "1,200 to a1.p1" in said
    assert "consistent" not in said
    assert "control" not in said


def test_loss_that_costs_nothing_explains_nothing(tmp_path: Path) -> None:
    fast = replace(PARTIAL, ways=[replace(way, ios=[120], service_ms=30.0) for way in PARTIAL.ways])
    said = explain(layout(tmp_path, fast), layout(tmp_path, CONTROL, "control"))
    assert "1,200 to a1.p1" in said
    assert "consistent" not in said


def test_the_slow_path_of_round_robin_is_named(tmp_path: Path) -> None:
    pair = PathLoad([Way("h1.p0-a1.p0", [50], 10.0), Way("h1.p1-a1.p1", [50], 90.0)])
    said = explain(layout(tmp_path, pair))
    assert "h1.p1-a1.p1 dragged: an I/O took 9 times as long there as on h1.p0-a1.p0" in said
    assert "round robin gave it as many I/Os as the others" in said
    fair = replace(pair, policy="least_queue_depth", ways=[pair.ways[0], replace(pair.ways[1], ios=[5])])
    said = explain(layout(tmp_path, fair, "fair"))
    assert "dragged" not in said
    assert "which got 9 % of the I/Os" in said


def test_one_path_and_its_standby(tmp_path: Path) -> None:
    pair = PathLoad([Way("h1.p0-a1.p0", [200], 40.0), Way("h1.p1-a1.p1", [0], state="standby")])
    said = explain(layout(tmp_path, pair))
    assert said == (
        "h1.p0-a1.p0 carried all 100 MB/s, with 16 I/Os in flight of 40 ms each. "
        "h1.p1-a1.p1 carried nothing (standby)."
    )


def test_ports_without_a_byte_are_named_once(tmp_path: Path) -> None:
    ways = [
        Way("h1.p0-a1.p0", [100]),
        Way("h1.p1-a1.p1", [50]),
        Way("h1.p0-a1.p2", [0], state="active_non_optimized"),
    ]
    said = explain(layout(tmp_path, PathLoad(ways)))
    assert "a1.p0 carried 67 %, a1.p1 carried 33 %, and h1.p0 carried 67 %, h1.p1 carried 33 %." in said
    assert "carried 0 %" not in said
    assert "h1.p0-a1.p2 carried nothing (active_non_optimized)." in said


def test_equal_shares_are_told_once(tmp_path: Path) -> None:
    ways = [Way("h1.p0-a1.p0", [100]), Way("h1.p1-a1.p1", [101])]
    said = explain(layout(tmp_path, PathLoad(ways)))
    assert "a1.p0 and a1.p1 carried 50 % each, and h1.p0 and h1.p1 carried 50 % each." in said


def test_where_nothing_moved_nothing_is_said(tmp_path: Path) -> None:
    assert explain(layout(tmp_path, PathLoad([Way("h1.p0-a1.p0", [0]), Way("h1.p1-a1.p1", [0])]))) == ""


def test_paths_whose_ends_nobody_knows_are_counted_only(tmp_path: Path) -> None:
    said = explain(layout(tmp_path, PathLoad([Way("x"), Way("y")], paths=[])))
    assert said == "Two paths carried 100 MB/s."
