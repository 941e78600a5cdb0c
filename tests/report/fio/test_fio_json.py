"""Results as fio's JSON: the run's figures, all keys that fio writes, and fio's own reader."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from linerate.analysis import summarise
from linerate.report import write_fio_json
from linerate.report.fio.latency import bin_of, coarse_tables
from linerate.results import JobRecord, RunDirectory, RunWriter, WorkloadSource

from tests.support import need
from tests.support.samples.hdr import PlainHistogram
from tests.support.samples.synthetic import Load, make_run, spec_of

MIXED = Load(name="rd1", intervals=8, warmup=2, volumes=3, points=40)
READS = Load(name="rd2", intervals=5, warmup=0, volumes=3, read_percent=100, size_bytes=262144, iops=4000)
RATE = Load(
    name="rd3", volumes=1, errors=4, wait_ms=7.0, spec={"arrival": {"kind": "open", "rate_iops": 2500.0}}
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return make_run(tmp_path_factory.mktemp("fio") / "run", [MIXED, READS, RATE])


@pytest.fixture(scope="module")
def file(run: RunDirectory) -> Path:
    path = run.path.parent / "deep" / "out.json"
    write_fio_json(run, path)
    return path


@pytest.fixture(scope="module")
def document(file: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(file.read_text())
    return loaded


def test_jobs_hold_the_runs_figures(run: RunDirectory, document: dict[str, Any]) -> None:
    steps = summarise(run)
    assert [job["jobname"] for job in document["jobs"]] == ["rd1", "rd2", "rd3"]
    assert [job["groupid"] for job in document["jobs"]] == [0, 1, 2]
    for step, job in zip(steps, document["jobs"], strict=True):
        for name, part in (("read", step.read), ("write", step.write)):
            if part is None:
                assert job[name]["total_ios"] == job[name]["runtime"] == 0
                continue
            entry = job[name]
            assert entry["total_ios"] == part.ios
            assert entry["io_bytes"] == part.bytes
            assert entry["iops"] == pytest.approx(part.iops, rel=1e-6)
            assert entry["bw"] == pytest.approx(part.mib_s * 1024, abs=1)
            assert entry["runtime"] == round(step.seconds * 1000)
            assert entry["iops_samples"] == step.intervals
            assert entry["iops_min"] <= entry["iops_mean"] <= entry["iops_max"]
            assert entry["bw_agg"] == 100


def test_percentiles_are_those_of_the_histograms(run: RunDirectory, document: dict[str, Any]) -> None:
    for step, job in zip(run.manifest.steps, document["jobs"], strict=True):
        for op in ("read", "write"):
            service = run.latency(step.key, op=op)
            if service is None:
                continue
            entry = job[op]["clat_ns"]
            assert (entry["N"], entry["min"], entry["max"]) == (service.count, service.min, service.max)
            assert sum(entry["bins"].values()) == service.count
            values = [entry["percentile"][key] for key in sorted(entry["percentile"], key=float)]
            assert len(values) == 17
            assert values == sorted(values)
            assert values[-1] <= entry["max"]
            assert entry["percentile"]["99.000000"] == min(service.quantile(0.99), service.max)


def test_lat_is_response_time_where_there_is_a_rate(document: dict[str, Any]) -> None:
    rated = document["jobs"][2]["read"]
    assert rated["lat_ns"]["mean"] - rated["clat_ns"]["mean"] == pytest.approx(7e6, rel=0.05)


def test_errors_are_told(document: dict[str, Any]) -> None:
    assert [job["error"] for job in document["jobs"]] == [0, 0, 5]
    assert document["jobs"][2]["total_err"] == 4
    assert "total_err" not in document["jobs"][0]


def test_streams_of_other_workloads_have_the_options_that_fio_would_need(document: dict[str, Any]) -> None:
    assert document["jobs"][0]["job options"] == {
        "rw": "randrw",
        "bs": "8192",
        "iodepth": "15",
        "numjobs": "1",
        "runtime": "8",
        "ramp_time": "2",
        "rwmixread": "67",
    }


def test_fios_own_reader_takes_it(file: Path, tmp_path: Path) -> None:
    reader = need.tool("fio_jsonplus_clat2csv")
    for more in ([], ["--validate"]):
        command = ["/usr/bin/python3", reader, str(file), str(tmp_path / "out.csv"), *more]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        if "No module named 'six'" in done.stderr:
            need.missing("six is not installed (Debian: python3-six)")
        assert done.returncode == 0, done.stderr
        assert "mismatch" not in done.stdout
    assert (tmp_path / "out_job2.csv").read_text().count("\n") > 10


def kinds(value: Any, place: str = "") -> dict[str, str]:
    """Type by place of every key; numbers are one type, and keys of percentiles and bins are left out."""
    if isinstance(value, dict):
        if place.endswith(("percentile", "bins", "job options", "global options")):
            return {place: "object"}
        parts = [kinds(item, f"{place}/{key}") for key, item in value.items()]
        return {key: kind for part in parts for key, kind in part.items()}
    if isinstance(value, list):
        return kinds(value[0], f"{place}[]") if value else {}
    return {place: "number" if isinstance(value, int | float) else type(value).__name__}


def test_every_key_of_fio_is_there(document: dict[str, Any], tmp_path: Path) -> None:
    job = tmp_path / "w.fio"
    job.write_text("[a]\nioengine=null\nrw=randrw\nsize=1m\nbs=4k\nlat_percentiles=1\n")
    command = [need.tool("fio"), "--output-format=json+", str(job)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd=tmp_path)
    theirs = kinds(json.loads(done.stdout[done.stdout.index("{") :]))
    ours = kinds(document)
    # slat_ns and trim are empty here; disk_util is that of real disks.
    wanted = {key: kind for key, kind in theirs.items() if "disk_util" not in key}
    assert len(wanted) > 100
    assert {key: ours.get(key) for key in wanted} == wanted


def test_what_fio_plot_looks_for_is_there(document: dict[str, Any]) -> None:
    # fio-plot 1.1.21, fiolib/jsonimport.py and jsonparsing_support.py.
    assert {"fio version", "global options", "jobs"} <= document.keys()
    for job in document["jobs"]:
        assert {"rw", "iodepth", "numjobs", "bs"} <= job["job options"].keys()
        assert int(job["job options"]["iodepth"]) > 0
        assert {"usr_cpu", "sys_cpu", "latency_ns", "latency_us", "latency_ms"} <= job.keys()
        for op in ("read", "write"):
            assert {"bw", "iops", "iops_stddev"} <= job[op].keys()
            assert {"mean", "stddev"} <= job[op]["lat_ns"].keys()


@pytest.mark.parametrize(
    ("time_ns", "name"),
    [
        (0, 0),
        (60, 60),
        (127, 127),
        (128, 129),
        (872, 876),
        (1709, 1704),
        (1720, 1720),
        (3_712_404, 3_719_168),
    ],
)
def test_bins_are_those_of_fio(time_ns: int, name: int) -> None:
    # The last four were printed by fio 3.33 for these times.
    assert bin_of(time_ns) == name


def test_the_last_bin_takes_what_is_longer() -> None:
    assert bin_of(10**15) == bin_of(3_600_000_000_000) == 17_112_760_320


def test_the_coarse_tables_share_out_all_ios() -> None:
    histogram = PlainHistogram()
    for value, count in ((1, 10), (2, 20), (1500, 30), (990_000, 15), (3_000_000_000, 25)):
        histogram.record(value, count)
    tables = coarse_tables(histogram)
    assert (tables["latency_ns"]["2"], tables["latency_ns"]["4"]) == (10, 20)
    assert tables["latency_us"]["2"] == 30
    assert tables["latency_us"]["1000"] == 15
    assert tables["latency_ms"][">=2000"] == 25
    assert sum(share for table in tables.values() for share in table.values()) == 100
    assert sum(share for table in coarse_tables(None).values() for share in table.values()) == 0


def test_jobs_of_a_job_file_come_with_their_options_and_without_secrets(tmp_path: Path) -> None:
    options = {"rw": "read", "bs": "4k", "filename": "iscsi://me%hush@10.0.0.5/iqn.2026-11.lab:d/0"}
    options["exec_prerun"] = "login --password=hush"
    with RunWriter.create(tmp_path / "run", name="w", workload=WorkloadSource(name="w.fio")) as writer:
        jobs = [JobRecord(name="a", options={**options, "percentile_list": "50:99.5"}, streams=("wd1",))]
        writer.begin_step("a", spec=spec_of(MIXED), facts={}, jobs=jobs)
    run = RunDirectory.open(tmp_path / "run")
    assert "hush" not in (tmp_path / "run" / "manifest.json").read_text()
    write_fio_json(run, tmp_path / "out.json")
    (job,) = json.loads((tmp_path / "out.json").read_text())["jobs"]
    assert (job["jobname"], job["job options"]["bs"], job["read"]["clat_ns"]["N"]) == ("a", "4k", 0)


def test_no_bins_of_nothing_divide_by_zero(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [Load(iops=0.0, volumes=1)])
    write_fio_json(run, tmp_path / "out.json")
    (job,) = json.loads((tmp_path / "out.json").read_text())["jobs"]
    assert job["read"]["iops"] == job["usr_cpu"] == 0
    assert sys.float_info.max > job["read"]["bw_dev"] == 0
