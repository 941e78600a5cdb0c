"""Histories of folders: the same workload is one line, changes are marked, broken directories are named."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest
from linerate.errors import UserError
from linerate.history import INDEX, Gathered, History, gather, judge_history
from linerate.results import Validity

from tests.cli.conftest import linerate
from tests.report.test_page import Page, assert_self_contained
from tests.support.samples.history import LOAD, VERSIONS, dated_run, make_history
from tests.support.samples.study_directory import make_study_directory
from tests.support.samples.synthetic import ENVIRONMENT


def history(folder: Path, *metrics: str) -> History:
    return judge_history(str(folder), gather(folder).entries, metrics or ("iops",))


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 daily runs; from run 12 on 8 % slower, under another kernel."""
    folder = tmp_path_factory.mktemp("history") / "runs"
    make_history(folder, 24, change_at=12)
    return folder


# ---- lines ----


@pytest.mark.long
def test_a_change_is_found_with_its_size_and_what_changed_near_it(changed: Path) -> None:
    found = history(changed)
    (line,) = found.lines
    assert (line.workload, line.metric, len(line.points)) == ("rd1", "iops", 24)
    (change,) = line.level_changes
    assert change.index == 12
    assert change.change_percent == pytest.approx(-8, abs=0.5)
    (kernel,) = found.changes_near(line, change)
    assert (kernel.kind, kernel.before, kernel.after, kernel.path) == (
        "kernel",
        "6.18.2",
        "6.19.1",
        "run-0012",
    )


def test_first_last_and_change_are_those_of_the_runs(tmp_path: Path) -> None:
    """Figures by hand: 1,000 and 900 I/Os per second; the second run is in a folder of its own."""
    exact = replace(LOAD, jitter=0.0, read_percent=100.0, iops=1000)
    dated_run(tmp_path / "a", 0, exact)
    dated_run(tmp_path / "deep" / "er" / "b", 3, replace(exact, iops=900), seed=9)
    (line,) = history(tmp_path).lines
    assert [(point.value, point.path) for point in line.points] == [(1000, "a"), (900, "deep/er/b")]
    assert line.change_percent == pytest.approx(-10)
    assert line.level_changes == ()


def test_workloads_are_sorted_by_the_numbers_in_their_names(tmp_path: Path) -> None:
    names = [f"rnd (threads={threads})" for threads in (16, 2, 1)]
    for day, name in enumerate(names):
        dated_run(tmp_path / str(day), day, replace(LOAD, name=name))
    assert [line.workload for line in history(tmp_path).lines] == names[::-1]


def test_the_seed_and_settings_do_not_make_another_workload_but_the_load_does(tmp_path: Path) -> None:
    dated_run(tmp_path / "a", 0, LOAD, seed=1)
    dated_run(tmp_path / "b", 1, replace(LOAD, spec={"workers": 4}), seed=2)
    dated_run(tmp_path / "c", 2, replace(LOAD, session={"congestion_control": "bbr"}), seed=3)
    dated_run(tmp_path / "d", 3, replace(LOAD, outstanding=16))
    found = history(tmp_path)
    assert sorted(len(line.points) for line in found.lines) == [1, 3]
    assert len({line.workload for line in found.lines}) == 2, "names differ where titles are the same"
    assert {(change.path, change.kind, change.key) for change in found.environment} == {
        ("b", "settings", "asked.workers"),
        ("c", "settings", "asked.workers"),
        ("c", "settings", "used.volumes.session.congestion_control"),
    }


def test_curve_points_of_different_maxima_are_one_workload(tmp_path: Path) -> None:
    for number, rate in enumerate((1000.0, 1100.0)):
        arrival = {"arrival": {"kind": "open", "rate_iops": rate}}
        dated_run(tmp_path / f"{number}", number, replace(LOAD, name="rd1_(50%)", spec=arrival))
    (line,) = history(tmp_path).lines
    assert len(line.points) == 2


def test_host_kernel_version_and_settings_are_told_apart(tmp_path: Path) -> None:
    other = {
        **ENVIRONMENT,
        "host.name": "another",
        "host.kernel": "7.0",
        "port.eth1.mtu_bytes": 1500,
        "host.load_average_1m": 3.5,
    }
    dated_run(tmp_path / "a", 0)
    dated_run(tmp_path / "b", 1, environment=other, versions={**VERSIONS, "linerate": "0.2.0"})
    kinds = {change.key: change.kind for change in history(tmp_path).environment}
    assert kinds == {
        "host.name": "host",
        "host.kernel": "kernel",
        "port.eth1.mtu_bytes": "settings",
        "version.linerate": "version",
    }


@pytest.mark.long
def test_a_study_is_one_point_per_workload_and_case_the_median_of_its_blocks(tmp_path: Path) -> None:
    study = make_study_directory(tmp_path / "one", blocks=3)
    make_study_directory(tmp_path / "two", blocks=3)
    lines = {line.workload: line for line in history(tmp_path, "iops", "mib_s").lines}
    line = lines["nic-sample: 8k-random, default"]
    values = sorted(
        step.values["iops"]
        for step in study.measured.values()
        if (step.workload, step.case) == ("8k-random", "default")
    )
    assert [point.value for point in line.points] == [values[1], values[1]]
    assert [point.path for point in line.points] == ["one", "two"]
    assert not any("isoe" in name for name in lines)
    shutil.rmtree(tmp_path / "two" / "runs")
    (tmp_path / INDEX).unlink()
    assert {item.workload: item.points for item in history(tmp_path).lines}[line.workload] == line.points


def test_a_metric_that_there_is_not(changed: Path) -> None:
    with pytest.raises(UserError, match="no metric called iop") as caught:
        history(changed, "iop")
    assert "iops" in caught.value.hint


# ---- what is left out ----


def test_broken_and_unfinished_directories_are_named_and_left_out(tmp_path: Path) -> None:
    for number in range(3):
        dated_run(tmp_path / f"good{number}", number)
    dated_run(tmp_path / "failed", 4, state="failed")
    dated_run(tmp_path / "void", 5, judge=lambda _: Validity(stamp="void"))
    for name, file, content in (
        ("json", "manifest.json", b"{"),
        ("binary", "manifest.json", bytes(range(256))),
        ("parquet", "intervals.parquet", b"PAR1 no table"),
        ("log", "latency.hlog", b"Tag=rd1|x,0.1,z,w,!!!!\n" * 3),
        ("tag", "latency.hlog", b"\x00\xff\n"),
    ):
        dated_run(tmp_path / name, 6)
        os.chmod(tmp_path / name / file, 0o644)
        (tmp_path / name / file).write_bytes(content)
    dated_run(tmp_path / "gone", 7)
    (tmp_path / "gone" / "usage.parquet").unlink()
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "manifest.json").symlink_to("nowhere")
    make_study_directory(tmp_path / "left", blocks=1, state="interrupted")
    make_study_directory(tmp_path / "torn", blocks=1)
    (tmp_path / "torn" / "journal.jsonl").write_bytes(b"no journal\nat all\n")
    found = history(tmp_path)
    left_out = dict(found.left_out)
    assert [len(line.points) for line in found.lines] == [3]
    expected = {"failed", "void", "json", "binary", "parquet", "gone", "link", "left", "torn", "log", "tag"}
    assert set(left_out) == expected
    assert all("\n" not in reason and reason for reason in left_out.values())
    assert left_out["failed"] == "the run is failed"
    assert history(tmp_path) == found, "the same from the index"


def test_a_folder_that_is_none_or_a_single_run_is_refused(tmp_path: Path) -> None:
    dated_run(tmp_path / "run", 0)
    for place, message in ((tmp_path / "none", "is not a folder"), (tmp_path / "run", "is a single result")):
        with pytest.raises(UserError, match=message):
            gather(place)
    assert not (tmp_path / "run" / INDEX).exists()


# ---- the index ----


def results(gathered: Gathered) -> list[tuple[str, str]]:
    return [(entry.path, repr(entry.results)) for entry in gathered.entries]


def test_the_index_loses_nothing_and_is_made_again(tmp_path: Path) -> None:
    make_history(tmp_path, 4)
    first = gather(tmp_path)
    assert (first.read, first.saved) == (4, True)
    second = gather(tmp_path)
    assert second.read == 0
    assert results(second) == results(first)
    (tmp_path / INDEX).unlink()
    assert results(gather(tmp_path)) == results(first)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format": "other"}', b"\xff\x00"])
def test_an_index_that_makes_no_sense_is_ignored(tmp_path: Path, content: bytes) -> None:
    make_history(tmp_path, 2)
    expected = results(gather(tmp_path))
    (tmp_path / INDEX).write_bytes(content)
    again = gather(tmp_path)
    assert (again.read, results(again)) == (2, expected)
    assert json.loads((tmp_path / INDEX).read_bytes())["format"] == "linerate-history-index"


def test_an_index_of_another_version_is_ignored(tmp_path: Path) -> None:
    make_history(tmp_path, 2)
    gather(tmp_path)
    text = (tmp_path / INDEX).read_text()
    (tmp_path / INDEX).write_text(text.replace('"linerate":"', '"linerate":"9', 1))
    assert gather(tmp_path).read == 2


def test_what_changed_is_read_again_and_what_is_gone_is_gone(tmp_path: Path) -> None:
    make_history(tmp_path, 3)
    gather(tmp_path)
    shutil.rmtree(tmp_path / "run-0000")
    os.utime(tmp_path / "run-0001" / "manifest.json", ns=(1, 1))
    dated_run(tmp_path / "run-0009", 9)
    again = gather(tmp_path)
    assert again.read == 2
    assert [entry.path for entry in again.entries] == ["run-0001", "run-0002", "run-0009"]
    assert gather(tmp_path).read == 0


def test_no_rest_of_a_write_stays_behind(tmp_path: Path) -> None:
    make_history(tmp_path, 2)
    gather(tmp_path)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == [INDEX]


def test_a_folder_that_cannot_be_written_is_read_all_the_same(tmp_path: Path) -> None:
    """A folder in the place of the index refuses the rename, for root too."""
    make_history(tmp_path, 2)
    (tmp_path / INDEX / "x").mkdir(parents=True)
    done = linerate("history", tmp_path)
    assert done.returncode == 0
    assert "cannot be written" in done.stderr
    assert len([path for path in tmp_path.iterdir() if path.name.startswith(INDEX)]) == 1


@pytest.mark.long
def test_three_hundred_runs_are_read_once(tmp_path: Path) -> None:
    """By CPU time, which tests beside it do not change much."""
    make_history(tmp_path, 300)
    began_s = time.process_time()
    assert gather(tmp_path).read == 300
    first_s = time.process_time() - began_s
    began_s = time.process_time()
    assert gather(tmp_path).read == 0
    assert time.process_time() - began_s < first_s / 10


# ---- the verb ----


@pytest.mark.long
def test_the_verb_tells_lines_changes_and_the_page(changed: Path, tmp_path: Path) -> None:
    page = tmp_path / "history.html"
    done = linerate("history", changed, "--report", page)
    assert done.returncode == 0
    words = done.stdout.splitlines()[1].split()
    assert words[:3] == ["rd1", "iops", "24"]
    assert re.search(r"^  worse    rd1  iops: -(7\.[5-9]|8\.[0-5]) % ", done.stdout, re.MULTILINE)
    assert "near it: Kernel: 6.18.2 -> 6.19.1" in done.stdout
    text = page.read_text()
    assert_self_contained(text)
    assert Page(text).count("svg") == 4
    refused = linerate("history", changed, "--report", page)
    assert refused.returncode == 2
    assert page.read_text() == text
    assert linerate("history", changed, "--report", page, "--overwrite").returncode == 0


def test_json_has_everything(changed: Path) -> None:
    found = json.loads(linerate("history", changed, "--json", "--metric", "iops").stdout)
    (line,) = found["lines"]
    (change,) = line["level_changes"]
    assert (change["index"], change["path"], len(line["points"])) == (12, "run-0012", 24)
    assert found["environment"][0]["kind"] == "kernel"


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    name = '=1,"<script>alert(1)</script>\n\x1b[2J@'
    folder = tmp_path / "<b>&amp;\x1b[31m"
    for number in range(2):
        dated_run(folder / f"run\n{number}", number, replace(LOAD, name=name), source="a\x1b[0m\n.vdb")
    page = tmp_path / "page.html"
    done = linerate("history", folder, "--report", page)
    assert done.returncode == 0
    assert "\x1b" not in done.stdout.replace(str(page), "")
    assert "<script>alert" not in page.read_text()
    assert len([line for line in done.stdout.splitlines() if "=1," in line]) == 4


def test_nothing_in_a_folder_is_said(tmp_path: Path) -> None:
    done = linerate("history", tmp_path)
    assert done.returncode == 2
    assert "no run or study in it" in done.stderr
