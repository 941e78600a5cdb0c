"""`linerate run JOB.fio`: it runs, and asks before it overwrites."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from linerate.results import RunDirectory

from tests.cli.conftest import linerate

JOBS = """\
[global]
ioengine=libaio
direct=1
filename=${DISK}
size=4m
time_based
runtime=300ms
[reads]
rw=randread
iodepth=4
numjobs=2
[writes]
stonewall
rw=write
bs=64k
"""


def test_a_job_file_runs(tmp_path: Path) -> None:
    (tmp_path / "w.fio").write_text(JOBS)
    words = ("DISK=x", "--map", "x=null:64m", "--output", "run", "--no-report")
    done = linerate("run", "w.fio", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    run = RunDirectory.open(tmp_path / "run")
    assert [step.label for step in run.manifest.steps] == ["reads", "writes"]
    assert [step.spec["volumes"][0]["outstanding"] for step in run.manifest.steps] == [8, 1]


@pytest.mark.long
def test_results_as_fios_json(tmp_path: Path) -> None:
    (tmp_path / "w.fio").write_text(JOBS.replace("rw=write", "rw=randrw\nrate_iops=500"))
    words = ("DISK=x", "--map", "x=null:64m", "--output", "run", "--no-report", "--fio-json", "out.json")
    done = linerate("run", "w.fio", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    reads, mix = json.loads((tmp_path / "out.json").read_text())["jobs"]
    assert (reads["jobname"], reads["job options"]["iodepth"], reads["job options"]["numjobs"]) == (
        "reads",
        "4",
        "2",
    )
    assert reads["read"]["total_ios"] > 0
    assert mix["job options"]["filename"] == "x"
    # Both directions of a job are one entry, and each has its rate.
    assert [mix[op]["iops"] for op in ("read", "write")] == pytest.approx([500, 500], rel=0.3)
    again = linerate("report", "run", "--fio-json", "again.json", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert json.loads((tmp_path / "again.json").read_text())["jobs"] == [reads, mix]


def test_different_jobs_load_one_file_at_the_same_time(tmp_path: Path) -> None:
    (tmp_path / "w.fio").write_text(JOBS.replace("stonewall\n", "").replace("direct=1\n", ""))
    words = ("DISK=disk.img", "--output", "run", "--no-report", "--overwrite", "all")
    done = linerate("run", "w.fio", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    run = RunDirectory.open(tmp_path / "run")
    moved = run.intervals.group_by("volume", "op").agg(pl.col("ios").sum()).filter(pl.col("ios") > 0)
    assert set(moved.select("volume", "op").iter_rows()) == {
        ("file1.reads", "read"),
        ("file1.writes", "write"),
    }


def test_a_folder_is_no_json_file(tmp_path: Path) -> None:
    (tmp_path / "w.fio").write_text(JOBS)
    done = linerate("run", "w.fio", "DISK=x", "--map", "x=null:64m", "--fio-json", ".", cwd=tmp_path)
    assert done.returncode == 2
    assert "--fio-json .: this is a folder" in done.stderr
    assert not (tmp_path / "runs").exists()


def test_data_is_not_overwritten_without_consent(tmp_path: Path) -> None:
    data = bytes(range(256)) * (4 << 12)
    (tmp_path / "disk.img").write_bytes(data)
    (tmp_path / "w.fio").write_text(JOBS)
    done = linerate("run", "w.fio", "DISK=disk.img", "--no-report", cwd=tmp_path)
    assert done.returncode == 2
    assert "file1" in done.stderr
    assert "overwrite" in done.stderr
    assert (tmp_path / "disk.img").read_bytes() == data
