"""Each reader: figures of files in the form of the tool, compared with values worked out by hand."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from linerate.errors import UserError
from linerate.imported import read_file
from linerate.imported.record import ToolRun, ToolStep

from tests.imported import files


def run_of(folder: Path, text: str, name: str = "result.txt") -> ToolRun:
    path = folder / name
    path.write_bytes(text.encode())
    return read_file(path).run


def step_of(folder: Path, text: str) -> ToolStep:
    (step,) = run_of(folder, text).steps
    return step


def test_fio_rates_are_bytes_and_times_are_ns(tmp_path: Path) -> None:
    job = files.fio_job("night", read=files.READS, job_start=1_700_000_001_000)
    run = run_of(tmp_path, files.fio_text(job))
    (step,) = run.steps
    total = step.given.total
    assert (run.tool, run.version, step.name, step.given.seconds) == ("fio", "3.33", "night", 10.0)
    assert (total.ios, total.bytes, total.errors) == (30_000, 122_880_000, 0)
    assert (total.iops, total.mib_s) == (3000.0, 11.71875)
    assert (total.mean_ms, total.stddev_ms, total.max_ms) == pytest.approx((0.3330005, 0.02, 9.0))
    assert total.percentiles_ms == pytest.approx({"50": 0.3, "95": 0.5, "99": 1.0, "99.9": 2.5})
    assert step.given.read == total.model_copy(update={"errors": None})
    assert step.given.write is None
    assert step.given.outstanding == 8
    assert step.given.load["filename"] == "/dev/sdb"
    assert step.started_at == datetime.fromtimestamp(1_700_000_001, UTC)
    assert (step.given.cpu_busy_percent, step.given.cpu_system_percent) == (None, None)


def test_fio_a_mixed_job_has_no_percentiles_over_both(tmp_path: Path) -> None:
    step = step_of(tmp_path, files.fio_text(files.fio_job("mix", read=files.READS, write=files.WRITES)))
    total = step.given.total
    assert (total.ios, total.iops, total.mib_s) == (40_000, 4000.0, 19.53125)
    assert total.mean_ms == pytest.approx((3 * 0.3330005 + 1.0) / 4)
    assert (total.max_ms, total.stddev_ms, total.percentiles_ms) == (12.0, None, {})
    assert step.given.write is not None
    assert step.given.write.percentiles_ms == {"99": 4.0}


def test_fio_jobs_of_one_group_are_one_step(tmp_path: Path) -> None:
    late = files.fio_side(5000, 20_480_000, 5_000, mean=2e6, stddev=0.0, min=1, max=3e6, N=5000)
    jobs = [
        files.fio_job("a", read=files.READS),
        files.fio_job("b", read=late),
        files.fio_job("c", 1, read=late),
    ]
    both, alone = run_of(tmp_path, files.fio_text(*jobs)).steps
    assert (both.name, alone.name) == ("a + b", "c")
    assert (both.given.total.ios, both.given.seconds) == (35_000, 10.0)
    assert (both.given.total.iops, alone.given.total.iops) == (3500.0, 1000.0)
    assert both.given.total.mean_ms == pytest.approx((30_000 * 0.3330005 + 5000 * 2) / 35_000)
    assert both.given.total.percentiles_ms == {}


def test_fio_mixed_beside_reads_and_writes_counts_once(tmp_path: Path) -> None:
    mixed = files.fio_side(40_000, 204_800_000, 10_000, mean=5e5, stddev=1.0, min=1, max=2e6, N=40_000)
    job = files.fio_job("both", read=files.READS, write=files.WRITES, mixed=mixed)
    given = step_of(tmp_path, files.fio_text(job)).given
    assert (given.total.ios, given.total.iops, given.total.mean_ms) == (40_000, 4000.0, 0.5)
    assert given.write is not None
    assert given.write.ios == 10_000


def test_fio_groups_without_a_start_end_one_after_the_other(tmp_path: Path) -> None:
    jobs = [files.fio_job("a", read=files.READS), files.fio_job("b", 1, write=files.WRITES)]
    first, second = run_of(tmp_path, files.fio_text(*jobs)).steps
    assert second.ended_at == datetime.fromtimestamp(1_700_000_011.5, UTC)
    assert first.ended_at == second.started_at == datetime.fromtimestamp(1_700_000_001.5, UTC)


def test_fio_text_before_and_interim_documents(tmp_path: Path) -> None:
    first = files.fio_text(files.fio_job("x", read=files.WRITES))
    last = files.fio_text(files.fio_job("x", read=files.READS))
    run = run_of(tmp_path, f"fio: this platform does not support\nnote: {{\n{first}{last}fio: done\n")
    assert [step.given.total.ios for step in run.steps] == [30_000]
    assert "2 documents" in run.notes[0]


def test_fio_2_has_kib_and_us(tmp_path: Path) -> None:
    side = {
        **{"io_bytes": 120_000, "bw": 12_000, "iops": 3000.0, "runtime": 10_000, "total_ios": 30_000},
        "clat": {"min": 50, "max": 9000, "mean": 333.5, "stddev": 20.0, "percentile": {"99.000000": 1000}},
        "lat": {"min": 51, "max": 9001, "mean": 334.5, "stddev": 20.0},
    }
    step = step_of(tmp_path, files.fio_text(files.fio_job("old", read=side), **{"fio version": "fio-2.21"}))
    total = step.given.total
    assert (total.bytes, total.mib_s) == (122_880_000, 11.71875)
    assert (total.mean_ms, total.max_ms, total.percentiles_ms) == (0.3335, 9.0, {"99": 1.0})


def test_fio_percentiles_of_lat_come_with_the_mean_of_lat(tmp_path: Path) -> None:
    lat = {**files.READS["clat_ns"], "mean": 400_000.0}
    side = {**files.READS, "clat_ns": {**files.NO_TIMES, "mean": 333_000.0, "N": 30_000}, "lat_ns": lat}
    total = step_of(tmp_path, files.fio_text(files.fio_job("lat", read=side))).given.total
    assert (total.mean_ms, total.percentiles_ms["99"]) == pytest.approx((0.4, 1.0))


def test_fio_an_error_makes_the_step_a_failed_one(tmp_path: Path) -> None:
    ended = files.fio_job("bad", read=files.READS, error=5)
    step = step_of(tmp_path, files.fio_text(ended))
    assert "Input/output error" in step.failed
    assert step.given.total.errors is None
    counted = step_of(tmp_path, files.fio_text({**ended, "total_err": 7, "first_error": 5}))
    assert counted.given.total.errors == 7


def test_vdbench_counts_follow_from_rates_and_the_time_between_rows(tmp_path: Path) -> None:
    run = run_of(tmp_path, files.FLAT)
    (step,) = run.steps
    given = step.given
    assert (run.tool, run.version, step.name, given.seconds) == ("vdbench", "50406", "rd1", 10.0)
    assert (given.total.ios, given.total.bytes) == (20_000, 163_840_000)
    assert (given.total.iops, given.total.mib_s, given.total.mean_ms) == (2000.0, 15.625, 2.5)
    assert (given.total.max_ms, given.total.stddev_ms) == (40.25, 0.75)
    assert (given.total.errors, given.total.percentiles_ms) == (None, {})
    assert given.read is not None
    assert given.write is not None
    assert (given.read.ios, given.read.mib_s, given.read.mean_ms) == (14_000, 10.9375, 3.0)
    assert (given.write.ios, given.write.mean_ms) == (6000, 1.3333)
    assert (given.cpu_busy_percent, given.cpu_system_percent) == (10.5, 6.5)
    assert step.started_at == datetime(2026, 11, 21, 10, 0, 0, tzinfo=UTC)
    assert given.load["threads"] == "8.0000"


def test_vdbench_mixed_sizes_leave_reads_and_writes_unknown(tmp_path: Path) -> None:
    more = {**files.MIXED, "xfersize": "n/a"}
    lines = [
        files.flat_line("23:59:59.500", 1, **more),
        files.flat_line("00:00:00.501", 2, **more),
        files.flat_line("00:00:00.502", "avg_1-2", **more),
        files.flat_line("00:00:02.502", 1, run="rd2", **more),
    ]
    run = run_of(tmp_path, files.flat_text(*lines))
    (step,) = run.steps
    assert (step.given.seconds, step.given.read, step.given.write) == (2.0, None, None)
    assert step.given.read_percent == 70.0
    assert run.notes == ("line 9: rd2 has no line of averages and is left out",)


def test_vdbench_summary_reads_the_flat_file_next_to_it(tmp_path: Path) -> None:
    summary = "<title>Vdbench output/summary.html</title><pre>\n10:00:00.000 Starting RD=rd1\n"
    with pytest.raises(UserError, match=r"without flatfile\.html next to it"):
        run_of(tmp_path, summary, "summary.html")
    (tmp_path / "flatfile.html").write_text(files.FLAT)
    assert run_of(tmp_path, summary, "summary.html").steps[0].given.total.ios == 20_000


@pytest.mark.parametrize("columns", [None, files.IOMETER_2006])
def test_iometer_row_all(tmp_path: Path, columns: tuple[str, ...] | None) -> None:
    text = files.iometer_text(files.ALL, columns=columns) if columns else files.iometer_text(files.ALL)
    run = run_of(tmp_path, text)
    (step,) = run.steps
    given = step.given
    assert (run.tool, run.version, run.host, step.name) == ("Iometer", "1.1.0", "LOADHOST", "8K; 75% Read")
    assert (given.seconds, given.total.ios, given.total.bytes) == (30.0, 48_000, 393_216_000)
    assert (given.total.iops, given.total.mib_s, given.total.mean_ms) == (1600.0, 12.5, 5.0)
    assert (given.total.max_ms, given.total.errors) == (80.5, 3)
    assert given.read is not None
    assert (given.read.ios, given.read.mib_s, given.read.mean_ms, given.read.errors) == (
        36_000,
        9.375,
        6.0,
        2,
    )
    assert given.total.stddev_ms is None
    assert given.total.percentiles_ms == {}
    assert (given.outstanding, given.cpu_busy_percent, given.cpu_system_percent) == (8, 12.25, 7.5)
    assert given.load["access specification"] == "8192,100,75,100,0,1,0,0"
    assert step.started_at is not None
    assert step.ended_at is not None
    assert (step.ended_at - step.started_at).total_seconds() == 60


def test_iometer_a_step_begins_where_the_one_before_ended(tmp_path: Path) -> None:
    unlike = {**files.ALL, "Queue Depth": "-1"}
    first, second = run_of(tmp_path, files.iometer_text(files.ALL, unlike)).steps
    assert second.started_at == first.ended_at
    assert second.given.outstanding is None


def test_diskspd_sums_threads_and_reads_latencies_of_the_span(tmp_path: Path) -> None:
    run = run_of(tmp_path, files.DISKSPD_L)
    (step,) = run.steps
    given = step.given
    assert (run.tool, run.version, run.host, given.seconds) == ("diskspd", "2.2.0", "LOADHOST", 20.0)
    assert (given.total.ios, given.total.iops, given.total.mib_s) == (20_000, 1000.0, 62.5)
    assert (given.total.mean_ms, given.total.stddev_ms, given.total.max_ms) == (7.0, 2.25, 55.5)
    assert given.total.percentiles_ms == {"99": 19.5, "99.9": 29.0}
    assert given.write is not None
    assert (given.write.ios, given.write.iops, given.write.mean_ms, given.write.stddev_ms) == (
        5000,
        250.0,
        4.0,
        0.5,
    )
    assert (given.cpu_busy_percent, given.cpu_system_percent) == (22.5, 20.0)
    assert (given.load["BlockSize"], given.load["Path"]) == ("65536", "E:\\t.dat")
    assert step.started_at == datetime(2026, 11, 21, 9, 30, tzinfo=UTC)


def test_diskspd_without_l_has_no_times(tmp_path: Path) -> None:
    total = step_of(tmp_path, files.DISKSPD_PLAIN).given.total
    assert (total.iops, total.mean_ms, total.max_ms, total.percentiles_ms) == (1000.0, None, None, {})


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_redirects_of_windows_are_read(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "result.xml"
    path.write_bytes(files.DISKSPD_L.replace("LOADHOST", "B\u00fcro").replace("\n", "\r\n").encode(encoding))
    assert read_file(path).run.host == "B\u00fcro"
    path.write_bytes(
        json.dumps(files.fio_document(files.fio_job("\u00fc", read=files.READS))).encode(encoding)
    )
    assert read_file(path).run.steps[0].given.total.ios == 30_000
