"""`linerate import` and the verbs that read what it writes."""

from __future__ import annotations

import csv
import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from linerate.analysis import summarise
from linerate.report import write_diskspd_xml, write_fio_json, write_iometer_csv, write_vdbench_output
from linerate.results import RunDirectory

from tests.cli.conftest import linerate
from tests.imported import files
from tests.support.need import tool
from tests.support.samples.synthetic import Load, make_run

FIO = files.fio_text(files.fio_job("night", read=files.READS, job_start=1_700_000_001_000))
TEXTS = {
    "fio": FIO,
    "vdbench": files.FLAT,
    "iometer": files.iometer_text(files.ALL),
    "diskspd": files.DISKSPD_L,
    "diskspd-plain": files.DISKSPD_PLAIN,
}
NOT_A_FIGURE = re.compile(r"\b(nan|None|inf)\b")


def imported(folder: Path, text: str, name: str) -> RunDirectory:
    file = folder / f"{name}.txt"
    file.write_text(text)
    done = linerate("import", file, "--output", folder / name)
    assert done.returncode == 0, done.stderr
    return RunDirectory.open(folder / name)


@pytest.mark.parametrize("name", TEXTS)
def test_every_verb_reads_an_import(tmp_path: Path, name: str) -> None:
    run = imported(tmp_path, TEXTS[name], name)
    check = linerate("check", run.path)
    assert check.returncode == 0
    assert check.stdout.count("no histograms") == 1
    assert "result: valid with cautions" in check.stdout
    report = linerate("report", run.path)
    page = (run.path / "report.html").read_text()
    text = re.sub(r"<(style|script)>.*?</\1>|<[^>]*>", " ", page, flags=re.DOTALL)
    history = linerate("history", tmp_path)
    for shown in (check.stdout, report.stdout, history.stdout, text):
        assert not NOT_A_FIGURE.search(shown)
    assert "imported from" in text
    assert history.returncode == 0
    assert "iops" in history.stdout


def test_figures_that_a_tool_does_not_give_are_absent(tmp_path: Path) -> None:
    run = imported(tmp_path, files.DISKSPD_PLAIN, "plain")
    (step,) = summarise(run)
    assert (step.total.iops, step.total.mib_s) == (1000.0, 62.5)
    assert (step.total.mean_ms, step.total.max_ms, step.queue_depth, step.total.errors) == (None,) * 4
    assert (step.usage.cpu_busy_percent, step.usage.retransmits, step.usage.load_cores) == (22.5, None, None)
    assert run.intervals.is_empty()
    assert linerate("report", run.path).stdout.splitlines()[1].split()[6:14] == ["-"] * 7 + ["22.5"]
    assert (
        linerate("export", run.path, "--csv", "--table", "steps", "--out", tmp_path / "out").returncode == 0
    )
    (row,) = csv.DictReader((tmp_path / "out" / "plain-steps.csv").read_text().splitlines())
    assert (row["iops"], row["service_mean_ms"], row["errors"], row["load_cpu_s"]) == ("1000.0", "", "", "")


def test_the_record_says_where_the_figures_come_from(tmp_path: Path) -> None:
    run = imported(tmp_path, FIO, "night")
    record = run.manifest.imported
    assert record is not None
    assert (run.manifest.format_version, record.words, record.file) == (3, "fio 3.33", "night.txt")
    assert len(record.sha256) == 64
    assert record.figures == (
        "ios",
        "bytes",
        "iops",
        "mib_s",
        "mean_ms",
        "stddev_ms",
        "max_ms",
        "errors",
        "read",
        "outstanding",
    )
    assert record.percentiles == ("50", "95", "99", "99.9")
    assert f"{run.manifest.started_at:%Y-%m-%dT%H:%M:%S}" == "2023-11-14T22:13:21"
    assert run.manifest.ended_at is not None
    assert (run.manifest.ended_at - run.manifest.started_at).total_seconds() == 10


def test_two_imports_of_one_job_are_one_line_of_a_history(tmp_path: Path) -> None:
    faster = {**files.READS, "iops": 3300.0}
    imported(tmp_path, FIO, "a")
    imported(
        tmp_path, files.fio_text(files.fio_job("night", read=faster), timestamp_ms=1_700_100_000_000), "b"
    )
    other = files.fio_job("night", read=files.READS, options={"rw": "randread", "bs": "64k", "iodepth": "8"})
    imported(tmp_path, files.fio_text(other), "c")
    found = json.loads(linerate("history", tmp_path, "--json").stdout)
    iops = [
        [point["value"] for point in line["points"]] for line in found["lines"] if line["metric"] == "iops"
    ]
    assert sorted(iops, key=len) == [[3000.0], [3000.0, 3300.0]]


def test_compare_of_two_imports_has_the_figures_of_both(tmp_path: Path) -> None:
    a = imported(tmp_path, FIO, "a")
    b = imported(tmp_path, files.DISKSPD_L.replace("<Percentile>99<", "<Percentile>98<"), "b")
    done = linerate("compare", a.path, b.path)
    rows = {line.split("  ")[0]: line for line in done.stdout.splitlines()}
    assert "0.333" in rows["i/o rate IOPS"]  # 1000 of 3000
    assert rows["p99 ms"].endswith("measured on one side only")
    assert "p99.9 ms" not in rows  # both have it, with fewer than 100 I/Os beyond
    assert "night / time span 1" in rows
    assert "which does not give" in done.stdout
    assert "p50, p95, p99, p99 with wait" in done.stdout.partition("side B: ")[2]
    assert linerate("compare", a.path, b.path, "--fail-if", "iops < -50%").returncode == 3


EXPORTS = {
    "fio": lambda run, place: write_fio_json(run, place),
    "iometer": lambda run, place: write_iometer_csv(run, place),
    "diskspd": lambda run, place: write_diskspd_xml(run, place),
    "vdbench": lambda run, place: write_vdbench_output(run, place.parent),
}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    load = Load(intervals=4, warmup=1, volumes=2, points=20, size_bytes=8192)
    return make_run(tmp_path_factory.mktemp("own") / "run", [replace(load, errors=0)], seed=3)


@pytest.mark.parametrize("kind", EXPORTS)
def test_what_we_write_as_a_tool_does_is_read_back(own: RunDirectory, tmp_path: Path, kind: str) -> None:
    place = tmp_path / "out" / "flatfile.html"
    EXPORTS[kind](own, place)
    done = linerate("import", place, "--as", kind, "--output", tmp_path / "back")
    assert done.returncode == 0, done.stderr
    (ours,), (back,) = summarise(own), summarise(RunDirectory.open(tmp_path / "back"))
    assert back.total.ios == pytest.approx(ours.total.ios, rel=1e-6)
    assert back.total.bytes == pytest.approx(ours.total.bytes, rel=1e-6)
    assert (back.total.iops, back.total.mib_s) == pytest.approx((ours.total.iops, ours.total.mib_s), rel=1e-5)
    assert back.seconds == pytest.approx(ours.seconds)
    histogram = own.latency(ours.step)
    assert histogram is not None
    of_histogram = kind in ("fio", "diskspd")  # whose times are those of the histograms
    mean_ms = histogram.mean / 1e6 if of_histogram else ours.total.mean_ms
    max_ms = histogram.max / 1e6 if of_histogram else ours.total.max_ms
    assert (back.total.mean_ms, back.total.max_ms) == pytest.approx((mean_ms, max_ms), rel=2e-3)
    assert back.read is not None
    assert ours.read is not None
    assert back.read.ios == pytest.approx(ours.read.ios, rel=1e-5)
    if of_histogram:
        found, known = back.read.quantile(0.99), ours.read.quantile(0.99)
        assert found is not None
        assert known is not None
        assert (found.value_ms, found.beyond) == pytest.approx((known.value_ms, known.beyond), rel=2e-3)
    compared = linerate("compare", own.path, tmp_path / "back").stdout
    assert re.search(r"^i/o rate IOPS .*1\.000 ", compared, re.MULTILINE)


def test_fio_itself(tmp_path: Path) -> None:
    words = ["--name=one", "--rw=randread", "--bs=4k", "--size=1m", "--filename=f", "--ioengine=psync"]
    words += ["--runtime=1", "--output-format=json", "--output=out.json"]
    subprocess.run([tool("fio"), *words], cwd=tmp_path, check=True, capture_output=True, timeout=60)
    assert linerate("import", "out.json", "--output", "run", cwd=tmp_path).returncode == 0
    (step,) = summarise(RunDirectory.open(tmp_path / "run"))
    written = json.loads((tmp_path / "out.json").read_text())["jobs"][0]["read"]
    assert (step.step, step.total.ios, step.total.bytes) == ("one", 256, 1 << 20)
    assert step.total.iops == written["iops"]
    assert step.total.mean_ms == pytest.approx(written["clat_ns"]["mean"] / 1e6)
    assert step.total.quantile(0.99) is not None


def test_nothing_that_exists_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("one", "two"):
        (tmp_path / "in" / f"{name}.json").write_text(FIO)
    assert linerate("import", "in/one.json", "--output", "out/one", cwd=tmp_path).returncode == 0
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    again = linerate("import", "in/two.json", "in/one.json", "--output", "out", cwd=tmp_path)
    assert again.returncode == 2
    assert "one exists" in again.stderr
    assert {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()} == before
    assert linerate("import", "in/one.json", "in/one.json", "--output", "x", cwd=tmp_path).returncode == 2
    both = linerate("import", "in/one.json", "in/two.json", "--output", "both", cwd=tmp_path)
    assert both.returncode == 0
    assert sorted(path.name for path in (tmp_path / "both").iterdir()) == ["one", "two"]
    assert linerate("import", "in/one.json", cwd=tmp_path).returncode == 0
    assert [path.name.partition("-fio-")[2] for path in (tmp_path / "runs").iterdir()] == ["one"]


def test_a_bad_file_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "good.json").write_text(FIO)
    (tmp_path / "bad.json").write_text(FIO[:-50])
    done = linerate("import", "good.json", "bad.json", "--output", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert re.match(r"linerate: bad\.json:\d+: no JSON", done.stderr)
    assert not (tmp_path / "out").exists()


def test_a_job_that_failed_is_a_void_result(tmp_path: Path) -> None:
    run = imported(tmp_path, files.fio_text(files.fio_job("bad", read=files.READS, error=5)), "bad")
    done = linerate("check", run.path)
    assert done.returncode == 1
    assert "Input/output error (error 5)" in done.stdout


def test_names_and_secrets_of_a_file_do_no_harm(tmp_path: Path) -> None:
    options = {"rw": "read", "filename": "iscsi://me%hunter2@10.0.0.1/iqn.x/0"}
    hostile = files.fio_job("a\x1b[31m\n<b>\ud800", read=files.READS, options=options)
    run = imported(tmp_path, files.fio_text(hostile), "odd")
    assert run.manifest.steps[0].key == "a?[31m <b>?"
    assert linerate("report", run.path).returncode == 0
    for path in run.path.iterdir():
        assert b"hunter2" not in path.read_bytes()
    assert "<b>?" not in (run.path / "report.html").read_text()


def test_an_import_is_not_written_as_another_tools_file(tmp_path: Path) -> None:
    run = imported(tmp_path, FIO, "night")
    for option in ("--fio-json", "--iometer-csv", "--diskspd-xml", "--vdbench-output"):
        done = linerate("report", run.path, option, tmp_path / "other")
        assert done.returncode == 2
        assert "an imported run has no" in done.stderr
    assert not (tmp_path / "other").exists()
