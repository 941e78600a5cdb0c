"""filecreate, filestat and filedelete: the runs that they become, what is refused, and what is on disk."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from linerate.errors import UserError
from linerate.workload import Overrides, RunPlan, load_workload
from linerate.workload.files import FilesLoadSpec, FilesRunSpec

from tests.cli.conftest import linerate
from tests.support import need

HEAD = "[global]\ndirectory=d\nnrfiles=5\nfilesize=8k\nnumjobs=2\nfilename_format=f.$jobnum.$filenum\n"
FORMS = ("filecreate", "filestat", "filedelete")


def read(folder: Path, text: str) -> RunPlan:
    (folder / "w.fio").write_text(text)
    return load_workload(folder / "w.fio", overrides=Overrides())


def files_of(plan: RunPlan) -> list[FilesRunSpec]:
    specs = [run.spec for run in plan.steps()]
    assert all(isinstance(spec, FilesLoadSpec) for spec in specs)
    return [spec.files for spec in specs if isinstance(spec, FilesLoadSpec)]


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(UserError) as caught:
        read(folder, text)
    return caught.value.message


@pytest.mark.parametrize(
    ("engine", "operation", "steps"), [("filecreate", "create", 2), ("filestat", "getattr", 2)]
)
def test_a_job_is_one_operation_on_each_file(engine: str, operation: str, steps: int, tmp_path: Path) -> None:
    plan = read(tmp_path, f"{HEAD}[a]\nioengine={engine}\n")
    making, doing = files_of(plan)
    assert len(plan) == steps
    (work,), (structure,) = doing.workloads, doing.structures
    assert (work.operation, work.threads, work.select) == (operation, 2, "once")
    assert (structure.files, structure.depth, structure.width) == (10, 1, 1)
    assert structure.sizes == ((8192, 100.0),)
    assert structure.anchor.endswith("/d/f.jobnum.filenum")
    assert making.format is not None
    assert (making.format.delete, making.format.files) == (engine == "filecreate", engine != "filecreate")


def test_files_are_made_whole_before_they_are_looked_up_or_removed(tmp_path: Path) -> None:
    jobs = "".join(f"[{name}]\nstonewall\nioengine={name}\n" for name in FORMS)
    names = [run.name for run in read(tmp_path, HEAD + jobs).steps()]
    assert names == ["format_for_filecreate", "filecreate", "format_for_filestat", "filestat", "filedelete"]
    assert len(read(tmp_path, f"{HEAD}[a]\nioengine=filedelete\ncreate_on_open=1\n")) == 1


def test_a_time_goes_round_the_files(tmp_path: Path) -> None:
    text = f"{HEAD}[a]\nioengine=filestat\ntime_based\nruntime=9\nramp_time=2\n"
    _, doing = files_of(read(tmp_path, text))
    assert (doing.elapsed_s, doing.warmup_s, doing.workloads[0].select) == (9, 2, "sequential")
    _, doing = files_of(read(tmp_path, f"{text}file_service_type=random\n"))
    assert doing.workloads[0].select == "random"
    _, doing = files_of(read(tmp_path, f"{HEAD}[a]\nioengine=filestat\nruntime=9\n"))
    assert (doing.elapsed_s, doing.workloads[0].select) == (9, "once")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("rate_iops=5", "w.fio:9: rate_iops=5: is not supported: the engine has one operation for each file"),
        ("thinktime=5", "w.fio:9: thinktime=5: is not supported: the engine has one operation for each file"),
        ("loops=2", "w.fio:9: loops=2: is not supported: after one pass over its files fio opens files"),
        ("rw=write\nfsync=1", "w.fio:10: fsync=1: is not supported: new files are not flushed"),
        ("filename=x", "w.fio:9: filename=x: is not supported: a structure names its files itself"),
        ("directory=a:b", "w.fio:9: directory=a:b: is not supported: all files of a job are in one folder"),
        ("filename_format=x.$filenum", "is not supported: without $jobnum several files"),
        ("filename_format=x.$jobnum", "is not supported: without $filenum several files"),
        ("filename_format=$jobnum/$filenum", "is not supported: all files of a job are in one folder"),
        ("size=16k", "w.fio:9: size=16k: is not supported: it is less than nrfiles=5 files have"),
        ("bs=64k", "[a]: its files have 8192 bytes, fewer than a block of bs=: fio leaves them out"),
        ("file_service_type=random", "is not supported: each file has its turn once, in the order"),
        ("file_service_type=zipf:1.2", "is not supported: each file has its turn once, in the order"),
        ("time_based\nruntime=5", "w.fio:9: time_based: is not supported: after one pass over its files"),
    ],
)
def test_what_an_operation_on_files_does_not_do_is_refused(lines: str, message: str, tmp_path: Path) -> None:
    assert message in refusal(tmp_path, f"{HEAD}[a]\nioengine=filecreate\n{lines}\n")


def test_other_jobs_do_not_run_at_the_same_time(tmp_path: Path) -> None:
    text = f"{HEAD}[a]\nioengine=filecreate\n[b]\nrw=read\nfilename=x\nsize=1m\n"
    assert "w.fio:9: [b] runs at the same time as a job with filecreate" in refusal(tmp_path, text)
    assert len(read(tmp_path, text.replace("[b]\n", "[b]\nstonewall\n"))) == 3


AT_ONCE = "[a]\nioengine=filecreate\n[b]\nioengine=filecreate\n"


def test_jobs_at_the_same_time_are_one_run_with_files_of_each(tmp_path: Path) -> None:
    head = HEAD.replace("f.$jobnum", "$jobname.$jobnum")
    plan = read(tmp_path, head + AT_ONCE)
    assert [run.name for run in plan.steps()] == ["format_for_a+1", "a+1"]
    making, doing = files_of(plan)
    anchors = [f"{name}.jobnum.filenum" for name in "ab"]
    for run in (making, doing):
        assert [Path(one.anchor).name for one in run.structures] == anchors
        assert [(work.structure, work.share_percent) for work in run.workloads] == [(0, 50), (1, 50)]
    assert [(work.name, work.operation, work.threads) for work in doing.workloads] == [
        ("a", "create", 2),
        ("b", "create", 2),
    ]
    jobs = [(job.name, job.streams) for job in list(plan.steps())[1].jobs]
    assert jobs == [("a", ("a create",)), ("b", ("b create",))]
    ran = linerate("run", "w.fio", "--overwrite", "all", "--output", "run", "--no-report", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    for anchor in anchors:
        assert len(list((tmp_path / "d" / anchor).rglob("vdb_f*.file"))) == 10


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "nrfiles=6",
            "w.fio:9: jobs a and b run at the same time and differ in their engine, numjobs= or nrfiles=",
        ),
        ("numjobs=1", "differ in their engine, numjobs= or nrfiles="),
        ("ioengine=filestat", "differ in their engine, numjobs= or nrfiles="),
        ("startdelay=3", "w.fio:9: jobs a and b run at the same time and differ in their times"),
        (
            "filename_format=a.$jobnum.$filenum",
            "w.fio:9: jobs a and b run at the same time on the same files",
        ),
    ],
)
def test_jobs_at_the_same_time_do_the_same_with_files_of_their_own(
    line: str, message: str, tmp_path: Path
) -> None:
    head = HEAD.replace("f.$jobnum", "$jobname.$jobnum")
    assert message in refusal(tmp_path, f"{head}{AT_ONCE}{line}\n")
    assert len(read(tmp_path, f"{head}{AT_ONCE}stonewall\n{line}\n")) >= 3


def test_options_of_volumes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "w.fio").write_text(f"{HEAD}[a]\nioengine=filecreate\n")
    with pytest.raises(UserError, match="--size: goes with volumes"):
        load_workload(tmp_path / "w.fio", overrides=Overrides(size_bytes=4096))


@pytest.mark.parametrize("engine", FORMS)
@pytest.mark.parametrize("lines", ["", "numjobs=1", "rw=write\ncreate_on_open=0", "size=80k"])
def test_as_many_operations_as_in_fio(engine: str, lines: str, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "w.fio").write_text(f"{HEAD}group_reporting\n[a]\nioengine={engine}\n{lines}\n")
    command = [need.tool("fio"), "--output-format=json", "w.fio"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd=tmp_path)
    (theirs,) = json.loads(done.stdout[done.stdout.index("{") :])["jobs"]
    left = len(list((tmp_path / "d").iterdir()))
    words = ("--overwrite", "all", "--output", "run", "--no-report", "--fio-json", "out.json")
    ran = linerate("run", "w.fio", *words, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    jobs = json.loads((tmp_path / "out.json").read_text())["jobs"]
    (ours,) = [job for job in jobs if job["jobname"] == "a"]
    # fio counts one time of an operation for each file, and blocks as its I/Os.
    counts = [sum(job[way]["clat_ns"]["N"] for way in ("read", "write")) for job in (theirs, ours)]
    assert counts[0] == counts[1] == (5 if lines == "numjobs=1" else 10)
    assert len(list((tmp_path / "d").rglob("vdb_f*.file"))) == left
