"""`linerate run JOB.fio`: it runs, and asks before it overwrites."""

from __future__ import annotations

from pathlib import Path

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


def test_data_is_not_overwritten_without_consent(tmp_path: Path) -> None:
    data = bytes(range(256)) * (4 << 12)
    (tmp_path / "disk.img").write_bytes(data)
    (tmp_path / "w.fio").write_text(JOBS)
    done = linerate("run", "w.fio", "DISK=disk.img", "--no-report", cwd=tmp_path)
    assert done.returncode == 2
    assert "file1" in done.stderr
    assert "overwrite" in done.stderr
    assert (tmp_path / "disk.img").read_bytes() == data
