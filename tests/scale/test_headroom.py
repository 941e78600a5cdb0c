"""Headroom: 70, 80 and 90 % of the rate at the largest load, in repeated runs of a SAN whose response is known."""

from __future__ import annotations

from linerate.scale import Parts, Reached, ScaleTask, SearchLimits, Threshold, headroom, runs_planned
from linerate.scale.words import headroom_lines

from tests.scale.simulated import LIMIT_MS, Disks, carried_out, open_response_ms


def test_each_share_is_of_the_rate_at_the_largest_load() -> None:
    procedure = carried_out(Disks(noise=0.01, bursts=1.5).run)
    kept = procedure.capacity().kept
    at_largest = [run.iops for run in procedure.runs if run.purpose == "up" and run.load == kept]
    rate = sum(at_largest) / len(at_largest)
    rows = list(headroom(procedure.runs, procedure.limits))
    assert [row.share_percent for row in rows] == [70, 80, 90]
    for row in rows:
        assert abs(row.asked_iops / rate - row.share_percent / 100) < 1e-9
        assert row.runs >= 3
        true_ms = 1.5 * open_response_ms(row.asked_iops, 24, 5.0)
        assert row.mean_ms is not None
        assert row.p99_ms is not None
        assert row.mean_ms.low < true_ms < row.mean_ms.high
        assert row.p99_ms.low < 4.6 * true_ms < row.p99_ms.high
        assert row.standing == ("below" if true_ms < LIMIT_MS else "above")
    assert {row.standing for row in rows} == {"below", "above"}, "the case has both"


def test_a_share_that_is_hard_to_decide_is_repeated() -> None:
    disks = Disks(noise=0.03, seed=5)

    def run(task: ScaleTask) -> Reached:
        """80 % of the largest rate has a response of the limit itself."""
        reached = disks.run(task)
        return reached.model_copy(update={"iops": 3000.0}) if task.purpose == "up" else reached

    limits = SearchLimits(open_response_ms(0.8 * 3000, 24, 5.0), most=8)
    by_share = {row.share_percent: row for row in headroom(carried_out(run, limits=limits).runs, limits)}
    assert by_share[80].standing == "undecided"
    assert by_share[80].runs == limits.repeats_most
    assert by_share[70].runs < limits.repeats_most
    assert by_share[70].standing == "below"


def test_it_can_be_left_out_and_is_planned() -> None:
    without, with_it = Parts(headroom=False), Parts()
    assert all(run.purpose != "headroom" for run in carried_out(Disks().run, without).runs)
    limits = SearchLimits(LIMIT_MS)
    planned, shorter = runs_planned(limits, with_it), runs_planned(limits, without)
    assert planned.headroom_most == 3 * limits.repeats_most
    assert planned.most - shorter.most == planned.headroom_most


def test_without_a_largest_load_there_is_none() -> None:
    procedure = carried_out(Disks(service_ms=30.0).run)
    assert procedure.capacity().kept is None
    assert all(run.purpose == "up" for run in procedure.runs)


def test_in_words() -> None:
    procedure = carried_out(Disks(noise=0.01, bursts=1.5).run)
    kept = procedure.capacity().kept
    assert kept is not None
    threshold = Threshold("mean", LIMIT_MS)
    lines = list(headroom_lines("threads", threshold, procedure.runs, procedure.limits, kept))
    assert f"rate at {kept} threads" in lines[0]
    assert lines[2].split()[0] == "70"
    assert lines[2].endswith("kept")
    assert lines[4].endswith("missed")
    late = [
        run.model_copy(update={"iops": 0.5 * run.iops}) if run.share_percent == 90 else run
        for run in procedure.runs
    ]
    assert (
        "the rate was not reached"
        in list(headroom_lines("threads", threshold, late, procedure.limits, kept))[4]
    )
