"""Vdbench's own reports: an independent parser reads them and finds the run's figures."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from linerate.analysis import summarise
from linerate.report import write_vdbench_output
from linerate.report.vdbench.flatfile import COLUMNS
from linerate.results import RunDirectory, RunWriter, WorkloadSource

from tests.report import vdbench_parser as parser
from tests.support.samples.synthetic import WORKLOAD, Load, intervals_of, make_run, spec_of

MIXED = Load(name="rd1", intervals=8, warmup=2, volumes=3, points=40, spec={"arrival": {"kind": "closed"}})
READS = replace(MIXED, name="rd2", read_percent=100, warmup=0, iops=4000, size_bytes=262144)
RATE = replace(
    MIXED, name="rd3", spec={"arrival": {"kind": "open", "rate_iops": 2500.0}}, usage={"host_cpu_idle_s": 0.0}
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return make_run(tmp_path_factory.mktemp("vdbench") / "run", [MIXED, READS, RATE])


@pytest.fixture(scope="module")
def output(run: RunDirectory) -> Path:
    write_vdbench_output(run, run.path.parent / "output")
    return run.path.parent / "output"


def test_the_files_that_tools_look_for_are_there(run: RunDirectory, output: Path) -> None:
    wanted = {"summary", "totals", "logfile", "parmfile", "flatfile", "histogram", "sd1", "sd2", "sd3"}
    wanted |= {"skew", "status"}
    assert {path.name for path in output.iterdir()} == {f"{name}.html" for name in wanted}
    assert "\n".join(parser.text_lines(output / "parmfile.html")[1:]).rstrip() == WORKLOAD.rstrip()


def test_summary_rows_hold_the_runs_figures(run: RunDirectory, output: Path) -> None:
    report = parser.interval_report(output / "summary.html")
    assert list(report) == ["rd1", "rd2", "rd3"]
    for step in summarise(run):
        rows = report[step.name]
        intervals, average = rows[:-1], rows[-1]
        warmup = 2 if step.name != "rd2" else 0
        assert [row["interval"] for row in intervals] == [str(n + 1) for n in range(8 + warmup)]
        assert average["interval"] == f"avg_{warmup + 1}-{warmup + 8}"
        assert float(average["i/o rate"]) == pytest.approx(step.total.iops, abs=0.01)
        assert float(average["MB/sec 1024**2"]) == pytest.approx(step.total.mib_s, abs=0.01)
        assert float(average["resp time"]) == pytest.approx(step.total.mean_ms, abs=0.001)
        assert float(average["resp max"]) == pytest.approx(step.total.max_ms, abs=0.001)
        assert float(average["resp stddev"]) == pytest.approx(step.total.stddev_ms, abs=0.001)
        assert float(average["queue depth"]) == pytest.approx(step.queue_depth, abs=0.06)
        assert float(average["cpu% sys+u"]) == pytest.approx(step.usage.cpu_busy_percent, abs=0.06)
        assert float(average["read pct"]) == pytest.approx(step.read_percent, abs=0.01)


def test_the_index_of_a_report_leads_to_its_runs(output: Path) -> None:
    for name in ("summary", "totals", "skew", "sd2"):
        text = (output / f"{name}.html").read_text()
        links = re.findall(r'<A HREF="#(_\d+)">(\S+)', text)
        starts = re.findall(r'<a name="(_\d+)"></a><i><b>\S+ Starting RD=(\w+);', text)
        assert [one[0] for one in links] == [one[0] for one in starts] == ["_1", "_2", "_3"]
        assert [one[1] for one in starts] == ["rd1", "rd2", "rd3"]
        assert "Link to Run Definitions:" in text


def test_the_status_is_what_programs_read(run: RunDirectory, output: Path) -> None:
    lines = [line.split("\t") for line in parser.text_lines(output / "status.html") if "\t" in line]
    assert [line[1:] for line in lines if len(line) == 2] == [
        ["Starting slaves"],
        ["Slaves connected"],
        ["Shutting down slaves"],
        ["Vdbench complete"],
    ]
    of_first = [line[1] for line in lines if line[2:] == ["rd=rd1", "For loops: None"]]
    assert of_first == ["Starting", "Warmup done", "Workload done", "Slaves done"]
    assert [line[1] for line in lines if line[2:3] == ["rd=rd2"]] == [
        "Starting",
        "Workload done",
        "Slaves done",
    ]
    times = [datetime.strptime(line[0].strip(), "%m/%d/%Y-%H:%M:%S-%Z") for line in lines]
    assert times == sorted(times)
    assert times[0] == run.manifest.started_at.replace(microsecond=0, tzinfo=None)


def test_the_skew_of_volumes_adds_up(run: RunDirectory, output: Path) -> None:
    text = (output / "skew.html").read_text()
    rows = re.findall(r"^(sd\d|Total) +(\d+\.\d\d) ", text, re.MULTILINE)
    assert [name for name, _ in rows] == ["sd1", "sd2", "sd3", "Total"] * 3
    rates = [float(rate) for _, rate in rows]
    for at, step in zip((0, 4, 8), summarise(run), strict=True):
        assert sum(rates[at : at + 3]) == pytest.approx(rates[at + 3], abs=0.05)
        assert rates[at + 3] == pytest.approx(step.total.iops, abs=0.01)


def test_read_and_write_response_times_are_apart(run: RunDirectory, output: Path) -> None:
    report = parser.interval_report(output / "totals.html")
    assert all(len(rows) == 1 for rows in report.values())
    mixed, reads = report["rd1"][0], report["rd2"][0]
    assert float(mixed["write resp"]) > float(mixed["read resp"]) > 0
    assert float(reads["write resp"]) == 0
    assert reads["bytes i/o"] == "262144"


def test_volume_reports_add_up_to_the_summary(run: RunDirectory, output: Path) -> None:
    total = parser.interval_report(output / "summary.html")
    parts = [parser.interval_report(output / f"sd{number}.html") for number in (1, 2, 3)]
    for name, rows in total.items():
        for place, row in enumerate(rows):
            rates = [float(part[name][place]["i/o rate"]) for part in parts]
            assert sum(rates) == pytest.approx(float(row["i/o rate"]), abs=0.05)
    assert "cpu% sys" not in parts[0]["rd1"][0]


def test_flatfile_columns_and_rows(run: RunDirectory, output: Path) -> None:
    rows = parser.flatfile(output / "flatfile.html")
    assert tuple(rows[0]) == COLUMNS
    averages = {row["Run"]: row for row in rows if row["Interval"].startswith("avg_")}
    assert list(averages) == ["rd1", "rd2", "rd3"]
    assert averages["rd1"]["Interval"] == "avg_3-10"
    assert averages["rd1"]["reqrate"] == "9999988"
    assert averages["rd3"]["reqrate"] == "2500"
    assert averages["rd1"]["xfersize"] == "8192"
    assert averages["rd1"]["threads"] == "5"
    assert averages["rd1"]["compratio"] == "n/a"
    (first, *_) = summarise(run)
    assert float(averages["rd1"]["rate"]) == pytest.approx(first.total.iops, abs=0.001)
    assert len(rows) == 11 + 9 + 11


def test_histogram_buckets_hold_every_io(run: RunDirectory, output: Path) -> None:
    found = parser.histogram(output / "histogram.html")
    assert [section for name, section in found if name == "rd1"] == ["Reads and writes", "Reads", "Writes"]
    assert [section for name, section in found if name == "rd2"] == ["Only reads done"]
    step = summarise(run)[0]
    buckets = found["rd1", "Reads and writes"]
    assert sum(count for _, _, count in buckets) == step.total.ios
    assert [low for low, _, _ in buckets[:4]] == [0.0, 0.02, 0.04, 0.06]
    assert buckets[-1][1] == float("inf")
    reads = found["rd1", "Reads"]
    writes = found["rd1", "Writes"]
    assert all(a[2] + b[2] == c[2] for a, b, c in zip(reads, writes, buckets, strict=True))


def test_histogram_has_the_limits_of_the_workload_file(tmp_path: Path) -> None:
    with RunWriter.create(tmp_path / "run", name="x", workload=WorkloadSource(name="x")) as writer:
        writer.begin_step("rd1", spec=spec_of(MIXED), facts={}, histogram_us=(500, 1_000, 2_000_000))
        for interval in intervals_of(MIXED, random.Random(1)):
            writer.interval(interval)
        writer.end_step()
        run = writer.close("complete")
    write_vdbench_output(run, tmp_path / "out")
    buckets = parser.histogram(tmp_path / "out" / "histogram.html")["rd1", "Reads and writes"]
    assert [(low, high) for low, high, _ in buckets] == [
        (0.0, 0.5),
        (0.5, 1.0),
        (1.0, 2000.0),
        (2000.0, float("inf")),
    ]
    assert sum(count for _, _, count in buckets) == summarise(run)[0].total.ios


def test_a_glued_label_is_what_the_parser_can_read(tmp_path: Path) -> None:
    """Real reports drop the blank before long labels; ours never do, but the parser must not depend on it."""
    path = tmp_path / "summary.html"
    path.write_text(
        "<pre>\n11:03:54.347 Starting RD=rd1; I/O rate: 100; elapsed=1200; For loops: None\n"
        "Nov 21, 2026  interval  i/o  resp\n              rate  time\n11:23:54.347avg_2-1200 100.0 1.5\n</pre>"
    )
    (row,) = parser.interval_report(path)["rd1"]
    assert (row["interval"], row["i/o rate"]) == ("avg_2-1200", "100.0")


def test_strange_names_stay_inside_the_directory_and_the_text(tmp_path: Path) -> None:
    load = replace(MIXED, name="<b>rd</b>", intervals=2, warmup=0, volumes=1)
    run = make_run(tmp_path / "run", [load], workload="<script>alert(1)</script>")
    write_vdbench_output(run, tmp_path / "out")
    for path in (tmp_path / "out").iterdir():
        assert "<script" not in path.read_text()
        assert "<b>rd" not in path.read_text()


def test_a_run_without_steps_still_has_its_files(tmp_path: Path) -> None:
    from linerate.results import RunWriter, WorkloadSource

    with RunWriter.create(tmp_path / "run", name="x", workload=WorkloadSource(name="x")) as writer:
        run = writer.close("failed", "no such volume")
    write_vdbench_output(run, tmp_path / "out")
    assert "no such volume" in (tmp_path / "out" / "logfile.html").read_text()
    assert parser.flatfile(tmp_path / "out" / "flatfile.html") == []
