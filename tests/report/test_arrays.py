"""Arrays with disks in the reports of runs and studies. All figures are planted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import altair as alt
import pytest
from linerate.report.panels import charts
from linerate.report.panels.arrays import array_panel, sets_over_time
from linerate.report.study import render_study
from linerate.report.study.disks import disks_table

from tests.report.test_page import assert_self_contained, report_of
from tests.support.samples.array_run import Disks, make_array_run
from tests.support.samples.path_run import PathLoad, Way, make_path_run
from tests.support.samples.study_page import sample_page

EVIL = '"><script>alert(1)</script>'


@pytest.mark.long
def test_a_run_tells_what_its_raid_sets_and_disks_did(tmp_path: Path) -> None:
    text, page = report_of(make_array_run(tmp_path / "run", [Disks(task="initialise", used=0.85)]))
    for words in (
        "RAID set",
        "raid50",
        "initialise 60.0 %",
        "1,980",  # I/Os of twelve disks
        "5.818",  # ms of work each
        "1,500",  # read-modify-writes in five seconds
        "each of 14 disks",
        "sas_10k_2_5",
        "disk i/o rate by RAID set",
        "read-modify-writes by RAID set",
        "progress of background tasks",
        "85.0 %",
        "add disks or delete snapshots",
    ):
        assert words in page.text, words
    assert "#fe00" not in text
    assert_self_contained(text)


@pytest.mark.long
def test_a_pool_with_room_is_not_warned_of(tmp_path: Path) -> None:
    _, page = report_of(make_array_run(tmp_path / "run", [Disks(used=0.5)]))
    assert "50.0 %" in page.text
    assert "add disks" not in page.text


@pytest.mark.long
def test_a_run_in_memory_has_no_such_panel(tmp_path: Path) -> None:
    run = make_path_run(tmp_path / "run", [PathLoad([Way("h1.p0-a1.p0")])])
    assert array_panel(run, "rd1", 100, brief=False) is None
    _, page = report_of(run)
    assert "RAID set" not in page.text


def test_lines_are_of_the_sets_and_neighbours_are_summed(tmp_path: Path) -> None:
    run = make_array_run(tmp_path / "run", [Disks(), Disks(name="r1", disk_reads=0, disk_writes=24)])
    points = sets_over_time(run, "random", 3, 8)
    assert [point["set"] for point in points] == ["r0"] * 3 + ["r1"] * 3
    assert [point["t"] for point in points[:3]] == [1.0, 3.0, 5.0]
    assert {point["iops"] for point in points} == {1980.0, 288.0}
    assert {point["queue"] for point in points} == {4.0}
    assert {point["parity"] for point in points} == {300.0}
    assert {point["done"] for point in points} == {None}
    kept = sets_over_time(run, "random", 3, 1)
    assert {point["set"] for point in kept} == {"r0"}


def test_sets_of_several_arrays_are_told_apart(tmp_path: Path) -> None:
    run = make_array_run(tmp_path / "run", [Disks(), Disks(array="a2")])
    panel = array_panel(run, "random", 100, brief=True)
    assert panel is not None
    assert [panel.name(part) for part in panel.use.raid_sets] == ["a1.r0", "a2.r0"]
    assert len(panel.charts) == 1
    assert {point["set"] for point in sets_over_time(run, "random", 9, 8)} == {"a1.r0", "a2.r0"}


@pytest.mark.parametrize("field", ["iops", "queue", "ms", "parity", "done"])
def test_the_charts_are_valid(tmp_path: Path, field: str) -> None:
    run = make_array_run(tmp_path / "run", [Disks(task="rebuild")])
    spec = charts.sets_chart(sets_over_time(run, "random", 9, 8), field, "IOPS", 1.0)
    alt.Chart.from_dict(spec, validate=True)


@pytest.mark.long
def test_names_of_disks_cannot_inject(tmp_path: Path) -> None:
    text, _ = report_of(make_array_run(tmp_path / "run", [Disks(name=EVIL, level=EVIL, task=EVIL)]))
    assert text.count("<script") == 1  # the page's own


@pytest.mark.long
def test_a_study_tells_what_an_io_cost_the_disks_in_each_case() -> None:
    page = sample_page()
    added = {"capacity_gib": 24.0, "disk_writes_per_write": 2.0, "pool_used_percent": 91.0}
    observations = tuple(
        replace(seen, values={**seen.values, **added})
        if (seen.case, seen.workload) == ("default", "8k-random")
        else seen
        for seen in page.observations
    )
    of_default = replace(page, observations=observations)
    table = disks_table(of_default, page.workloads[0])
    assert table is not None
    assert table.columns == ("capacity, GiB", "disk writes per host write", "pool full, %")
    ((case, cells),) = table.rows
    assert case.name == "default"
    assert [(cell.shown, cell.marked) for cell in cells] == [("24", False), ("2", False), ("91", True)]
    assert render_study(of_default).count("What the disks did") == 1
    assert disks_table(page, page.workloads[0]) is None
