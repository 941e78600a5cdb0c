"""Jobs of one run that begin and end at times of their own, flushes between writes, and files with one queue."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from linerate.workload import LunMap, Overrides, RunPlan
from linerate.workload.fio import load_fio
from linerate.workload.plan import UNTIL_DONE_S
from linerate.workload.spec import RunSpec

from tests.cli.conftest import linerate
from tests.support import need

from .conftest import ReadFio, only_run, refusal
from .test_runs_against_fio import totals

BASE = "[global]\nsize=1m\nbs=4k\ndirect=1\n"


def run_of(text: str, folder: Path) -> RunSpec:
    (folder / "w.fio").write_text(text)
    overrides = Overrides(luns=LunMap({"*": "null:1g"}))
    (run,) = load_fio(folder / "w.fio", overrides=overrides).steps()
    return run.spec


def test_jobs_begin_and_end_at_times_of_their_own(fio: ReadFio) -> None:
    timed = "time_based\nruntime=4\nstartdelay=2\n[b]\nfilename=y\ntime_based\nruntime=9\nstartdelay=5\n"
    plan = fio(f"{BASE}[a]\nfilename=x\n{timed}[c]\nfilename=z\nstartdelay=3\nruntime=2\n")
    (run,) = plan.steps()
    times = {one.name: (one.start_after_s, one.stop_after_s, one.stop_at_end) for one in run.spec.streams}
    assert times == {"a": (0, 4, False), "b": (3, 12, False), "c": (1, 3, True)}
    assert (run.pause_s, run.spec.elapsed_s, run.ends_when_done) == (2, 12, False)


def test_a_job_that_ends_after_an_amount_runs_beside_one_with_a_time(fio: ReadFio) -> None:
    plan = fio(f"{BASE}[a]\nfilename=x\ntime_based\nruntime=4\n[b]\nfilename=y\nrw=write\n")
    (run,) = plan.steps()
    assert [(one.stop_after_s, one.stop_at_end) for one in run.spec.streams] == [(4, False), (None, True)]
    assert (run.spec.elapsed_s, run.ends_when_done) == (UNTIL_DONE_S, True)


def test_jobs_with_times_of_their_own_have_volumes_of_their_own(fio: ReadFio) -> None:
    text = f"{BASE}filename=x\nrate_iops=9\ntime_based\n[a]\nruntime=4\n[b]\nruntime=5\n"
    spec = only_run(fio(text))
    assert [one.name for one in spec.volumes] == ["file1.a", "file1.b"]
    assert [one.rate_iops for one in spec.streams] == [9, 9]


def test_exitall_ends_all_with_the_first(fio: ReadFio) -> None:
    error = refusal(fio, f"{BASE}exitall\n[a]\nruntime=4\ntime_based\n[b]\nruntime=5\ntime_based\n")
    assert "exitall is not supported" in error.message


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.one_of(st.none(), st.integers(1, 9)), st.booleans()),
        min_size=1,
        max_size=4,
    )
)
def test_each_job_has_the_time_that_fio_gives_it(
    tmp_path: Path, jobs: list[tuple[int, int | None, bool]]
) -> None:
    lines = [BASE]
    for nth, (delay, runtime, by_time) in enumerate(jobs):
        lines.append(f"[j{nth}]\nfilename=f{nth}\nrw=write\nstartdelay={delay}\n")
        lines.append(f"runtime={runtime}\n" if runtime else "")
        lines.append("time_based\n" if runtime and by_time else "")
    spec = run_of("".join(lines), tmp_path)
    first = min(delay for delay, *_ in jobs)
    for stream, (delay, runtime, by_time) in zip(spec.streams, jobs, strict=True):
        assert stream.start_after_s == delay - first
        assert stream.stop_at_end is not bool(runtime and by_time)
        end = stream.stop_after_s if stream.stop_after_s else spec.elapsed_s
        assert runtime is None or end == delay - first + runtime
    if all(runtime for _, runtime, _ in jobs):
        assert spec.elapsed_s == max(delay - first + (runtime or 0) for delay, runtime, _ in jobs)


@pytest.mark.parametrize(
    ("lines", "flush"),
    [
        ("fsync=8", (8, True)),
        ("fdatasync=1\niodepth=4\nioengine=libaio", (1, True)),
        ("fsync=3\niodepth=4\nioengine=io_uring", (3, False)),
        ("fsync=8\nnumjobs=4\nrw=randwrite", (8, False)),
        ("fsync=0", None),
    ],
)
def test_flushes(fio: ReadFio, lines: str, flush: tuple[int, bool] | None) -> None:
    (volume,) = only_run(fio(f"{BASE}[a]\nrw=write\nfilename=x\n{lines}\n")).volumes
    assert (volume.flush and (volume.flush.after_writes, volume.flush.blocks)) == flush
    assert not volume.durable_writes


def test_copies_that_wait_for_their_flushes_have_queues_of_their_own(fio: ReadFio) -> None:
    text = f"{BASE}[a]\nrw=randwrite\nfilename=x\nfsync=8\nnumjobs=3\niodepth=4\nioengine=libaio\n"
    volumes = only_run(fio(text)).volumes
    assert [(one.outstanding, one.shares_device) for one in volumes] == [(4, True)] * 3
    assert all(one.flush and one.flush.blocks for one in volumes)


@pytest.mark.parametrize("lines", ["fsync=2\nnrfiles=3", "fdatasync=2\nfilename=x:y"])
def test_flushes_of_several_files_are_refused(fio: ReadFio, lines: str) -> None:
    error = refusal(fio, f"{BASE}[a]\nrw=write\n{lines}\n")
    assert "fio flushes the next file of a job" in error.message


@pytest.mark.parametrize(
    ("engine", "lines", "more"),
    [
        ("psync", "fsync=3", 0),
        ("psync", "fdatasync=1\nio_size=200k", 0),
        ("psync", "fsync=4\nnumjobs=2\noffset_increment=512k\nsize=512k", 1),
        ("libaio", "fsync=5\niodepth=4", 0),
        ("psync", "rw=randwrite\nfsync=16", 0),
    ],
)
def test_as_many_flushes_as_fio(engine: str, lines: str, more: int, tmp_path: Path) -> None:
    """Copies that count their writes together flush once more per copy but one. Of `io_uring` fio 3.33 counts a flush
    several times."""
    text = (
        f"[global]\nfilename=x\nsize=1m\nbs=4k\nrw=write\ngroup_reporting\nioengine={engine}\n[a]\n{lines}\n"
    )
    (tmp_path / "w.fio").write_text(text)
    calls = tmp_path / "calls"
    command = [need.tool("fio"), "--output-format=json", "w.fio"]
    if engine == "psync":
        # fio 3.33 counts no fdatasync, so its system calls are counted.
        command = [need.tool("strace"), "-f", "-o", str(calls), "-e", "trace=fsync,fdatasync", *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd=tmp_path)
    document = json.loads(done.stdout[done.stdout.index("{") :])
    words = ("--overwrite", "all", "--output", "run", "--no-report", "--fio-json", "out.json")
    ran = linerate("run", "w.fio", *words, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    ours = json.loads((tmp_path / "out.json").read_text())
    assert totals(ours) == totals(document)
    of_fio = (
        len(re.findall(r"^\d+ +f(?:data)?sync\(", calls.read_text(), re.M))
        if engine == "psync"
        else sum(job["sync"]["total_ios"] for job in document["jobs"])
    )
    assert sum(job["sync"]["total_ios"] for job in ours["jobs"]) == of_fio + more > more


@pytest.mark.parametrize(
    ("lines", "depth", "files"),
    [
        ("nrfiles=4", 1, 4),
        ("nrfiles=3\niodepth=16\nioengine=libaio", 16, 3),
        ("filename=x:y:z\niodepth=4\nnumjobs=2\nioengine=io_uring\nrw=randread", 8, 3),
    ],
)
def test_files_share_a_queue_where_the_depth_does_not_go_into_them(
    fio: ReadFio, lines: str, depth: int, files: int
) -> None:
    spec = only_run(fio(f"{BASE}[a]\n{lines}\n"))
    assert [one.outstanding for one in spec.volumes] == [depth] * files
    assert len({one.queue.name for one in spec.volumes if one.queue}) == 1
    assert all(one.queue for one in spec.volumes)


def test_copies_with_files_of_their_own_have_a_queue_each(fio: ReadFio) -> None:
    spec = only_run(fio(f"{BASE}[a]\nnrfiles=3\nnumjobs=2\niodepth=4\nioengine=libaio\n"))
    queues = [one.queue.name for one in spec.volumes if one.queue]
    assert sorted(queues) == ["queue1"] * 3 + ["queue2"] * 3
    assert all(one.outstanding == 4 for one in spec.volumes)


AT_TIMES = "[a]\nruntime=2\n[b]\nnumjobs=2\nstartdelay=1\nruntime=1\n"
"""Two jobs, one of them with two copies; each copy has a queue."""


def test_queues_begin_and_end_with_their_jobs(fio: ReadFio) -> None:
    spec = only_run(fio(f"{BASE}nrfiles=3\niodepth=4\nioengine=libaio\ntime_based\n{AT_TIMES}"))
    assert spec.elapsed_s == 2
    depths = {one.queue.name: one.outstanding for one in spec.volumes if one.queue}
    assert depths == {"queue1": 4, "queue2": 4, "queue3": 4}
    queue_of = {one.name: one.queue.name for one in spec.volumes if one.queue}
    times = {
        queue_of[volume]: (stream.start_after_s, stream.stop_after_s)
        for stream in spec.streams
        for volume in stream.volumes
    }
    assert times == {"queue1": (0, 2), "queue2": (1, 2), "queue3": (1, 2)}


def test_a_queue_with_times_has_its_depth_while_its_job_runs(tmp_path: Path) -> None:
    text = f"{BASE}size=768k\nnrfiles=3\nrw=randread\ntime_based\n{AT_TIMES}"
    (tmp_path / "w.fio").write_text(text)
    ran = linerate("run", "w.fio", "--output", "run", "--no-report", "--fio-json", "out.json", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    jobs = {job["jobname"]: job for job in json.loads((tmp_path / "out.json").read_text())["jobs"]}
    for name, copies, runtime_s in (("a", 1, 2), ("b", 2, 1)):
        reads = jobs[name]["read"]
        assert reads["total_ios"] > 1000
        # By Little's law the I/Os in flight are rate times response time; one for each copy, less the time between.
        in_flight = reads["total_ios"] / runtime_s * reads["lat_ns"]["mean"] / 1e9
        assert 0.1 * copies < in_flight <= 1.05 * copies, name


@pytest.mark.parametrize("more", ["rate_iops=5", "fsync=1\nrw=write", "verify=crc32c\nrw=write"])
def test_a_depth_that_does_not_go_into_the_files_is_refused_otherwise(fio: ReadFio, more: str) -> None:
    error = refusal(fio, f"{BASE}[a]\nnrfiles=3\niodepth=4\nioengine=libaio\n{more}\n")
    assert "I/Os in flight on each file" in error.message or "fio flushes the next file" in error.message


def test_ios_of_a_shared_queue_are_as_many_as_in_fio(tmp_path: Path) -> None:
    text = "[a]\nrw=randread\nnrfiles=3\nsize=768k\nbs=4k\niodepth=4\nioengine=libaio\n"
    (tmp_path / "w.fio").write_text(text)
    command = [need.tool("fio"), "--output-format=json", "w.fio"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd=tmp_path)
    ran = linerate("run", "w.fio", "--output", "run", "--no-report", "--fio-json", "out.json", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    theirs = json.loads(done.stdout[done.stdout.index("{") :])
    assert totals(json.loads((tmp_path / "out.json").read_text())) == totals(theirs)


def plan_notices(plan: RunPlan) -> str:
    return " ".join(str(notice) for notice in plan.warnings)


def test_a_shared_queue_says_that_files_are_drawn(fio: ReadFio) -> None:
    assert "the file of each I/O is drawn" in plan_notices(fio(f"{BASE}[a]\nnrfiles=3\n"))
