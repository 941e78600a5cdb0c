"""A run directory: written as the run proceeds, readable after a kill, closed for good."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from linerate.errors import InternalError
from linerate.results import (
    NotARunError,
    PathRow,
    RunClosedError,
    RunDirectory,
    RunExistsError,
    RunWriter,
    TimedEvent,
    WorkloadSource,
    files,
)
from linerate.results.manifest import Finding, Validity

from tests.support.samples.synthetic import Clock, Load, facts_of, intervals_of, make_run, spec_of, write_step

SOURCE = WorkloadSource(name="demo.parm", format="vdbench", text="sd=sd1,lun=/dev/sdb\n")


def open_writer(path: Path, clock: Clock | None = None) -> RunWriter:
    return RunWriter.create(path, name="demo", workload=SOURCE, now=clock or Clock())


def test_everything_written_is_read_back(tmp_path: Path) -> None:
    load = Load(volumes=3, intervals=4, warmup=2)
    run = make_run(tmp_path / "run", [load])
    assert run.state == "complete"
    assert [step.key for step in run.manifest.steps] == ["rd1"]
    assert run.intervals.height == 6 * 3 * 2
    assert run.measured_rows("rd1").height == 4 * 3 * 2
    wanted = list(intervals_of(load, random.Random("1/0")))
    assert run.intervals["ios"].sum() == sum(interval.ios for interval in wanted)
    assert run.usage["load_cpu_user_s"].to_list() == [interval.usage.load_cpu_user_s for interval in wanted]
    latency = run.latency("rd1", op="read")
    assert latency is not None
    measured = [interval for interval in wanted if not interval.warmup]
    assert latency.count == sum(row.ios for interval in measured for row in interval.rows if row.op == "read")
    assert run.damage() == []


def test_latency_can_be_asked_by_stream_volume_and_kind(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [Load(volumes=2, intervals=3, warmup=1)])
    both, read, write = (run.latency("rd1", op=op) for op in (None, "read", "write"))
    assert both
    assert read
    assert write
    assert both.count == read.count + write.count
    one = run.latency("rd1", volume="sd2", op="read")
    assert one
    assert one.count == 20_000
    response = run.latency("rd1", kind="response")
    assert response
    assert response.count == both.count
    assert run.latency("rd1", stream="nobody") is None
    over_time = run.latency_over_time("rd1", op="read")
    assert [start_s for start_s, _ in over_time] == pytest.approx([1.0, 2.0, 3.0])
    assert sum(histogram.count for _, histogram in over_time) == read.count


def test_step_keys_are_unique_and_repeatable(tmp_path: Path) -> None:
    loads = [
        Load(intervals=2, warmup=0, for_loops=loops) for loops in ("threads=1", "threads=2", "threads=2")
    ]
    run = make_run(tmp_path / "run", loads)
    keys = [step.key for step in run.manifest.steps]
    assert keys == ["rd1 (threads=1)", "rd1 (threads=2)", "rd1 (threads=2) #2"]
    assert all(run.latency(key) is not None for key in keys)


def test_a_closed_run_is_read_only(tmp_path: Path) -> None:
    writer = open_writer(tmp_path / "run")
    write_step(writer, Load(intervals=2, warmup=0), random.Random(1), Clock())
    verdict = Validity(stamp="caution", findings=(Finding(rule="x", severity="caution", reason="because"),))
    run = writer.close("complete", judge=lambda run: verdict)
    assert run.manifest.validity == verdict
    assert not (run.path / files.SPOOL).exists()
    for name in (*files.DATA_FILES, files.MANIFEST):
        assert (run.path / name).stat().st_mode & 0o222 == 0
    with pytest.raises(RunClosedError):
        writer.event(TimedEvent(0.0, "late", "too late"))
    with pytest.raises(RunClosedError):
        writer.close("complete")
    with pytest.raises(RunExistsError):
        open_writer(tmp_path / "run")


def test_a_run_that_is_left_with_its_spool_reads_like_a_closed_one(tmp_path: Path) -> None:
    load = Load(volumes=2, intervals=4, warmup=1)
    left, closed = open_writer(tmp_path / "left"), open_writer(tmp_path / "closed")
    for writer in (left, closed):
        write_step(writer, load, random.Random(3), Clock())
    left.leave("failed", "no more volume")
    run, other = RunDirectory.open(left.path), closed.close("failed", "no more volume")
    assert (run.state, run.manifest.reason) == ("failed", "no more volume")
    assert run.manifest.ended_at is not None
    assert (left.path / files.SPOOL).exists()
    assert not (left.path / files.INTERVALS).exists()
    assert run.intervals.equals(other.intervals)
    assert run.usage.equals(other.usage)
    with pytest.raises(RunClosedError):
        left.leave("complete")


def test_paths_are_kept_path_by_path(tmp_path: Path) -> None:
    writer = open_writer(tmp_path / "run")
    load = Load(volumes=1, intervals=2, warmup=1)
    writer.begin_step("rd1", spec=spec_of(load), facts=facts_of(load))
    for interval in intervals_of(load, random.Random(5)):
        fast = PathRow("sd1", "h1.p0-a1.p0", "active_optimized", read_ios=3, read_bytes=3 << 20)
        slow = PathRow("sd1", "h1.p1-a1.p1", "failed", write_ios=1, requeued=2, service_sum_ns=7)
        event = TimedEvent(0.5, "path_failed", "no answer", volume="sd1", path="h1.p1-a1.p1")
        writer.interval(replace(interval, paths=(fast, slow), events=(event,)))
    writer.end_step()
    running = RunDirectory.open(writer.path).paths
    run = writer.close("complete")
    assert run.paths.equals(running)
    assert run.paths.columns[:7] == ["step", "interval", "start_s", "end_s", "warmup", "volume", "path"]
    measured = run.paths.filter(~pl.col("warmup"))
    assert measured["path"].to_list() == ["h1.p0-a1.p0", "h1.p1-a1.p1"] * 2
    assert measured["read_ios"].to_list() == [3, 0] * 2
    assert measured["requeued"].to_list() == [0, 2] * 2
    assert {event.path for event in run.events} == {"h1.p1-a1.p1"}
    assert files.PATHS in run.manifest.files
    assert run.damage() == []


def test_a_run_without_paths_has_an_empty_table(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [Load(intervals=2, warmup=0)])
    assert not (run.path / files.PATHS).exists()
    assert run.paths.is_empty()
    assert "requeued" in run.paths.columns


def test_a_changed_file_is_noticed(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [Load(intervals=2, warmup=0)])
    log = run.path / files.LATENCY
    log.chmod(0o600)
    log.write_text(log.read_text() + "# one more line\n")
    (run.path / files.EVENTS).unlink()
    assert run.damage() == [
        "latency.hlog was changed after the run was closed",
        "events.jsonl cannot be read: No such file or directory",
    ]


KILLED = """
import os, random, sys
from pathlib import Path
from tests.support.samples.synthetic import Clock, Load, intervals_of, facts_of, spec_of
from linerate.results import RunWriter, WorkloadSource
load = Load(volumes=2, intervals=6, warmup=1)
writer = RunWriter.create(Path(sys.argv[1]), name="x", workload=WorkloadSource(name="x"), now=Clock())
writer.begin_step("rd1", spec=spec_of(load), facts=facts_of(load))
for interval in list(intervals_of(load, random.Random(5)))[:5]:
    writer.interval(interval)
print("ready", flush=True)
sys.stdin.read()
"""


def test_a_killed_run_is_readable(tmp_path: Path) -> None:
    path = tmp_path / "run"
    root = Path(__file__).parents[2]
    env = {**os.environ, "PYTHONPATH": f"{root / 'python'}:{root}"}
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        assert RunDirectory.open(path).state == "running"
        child.kill()
    run = RunDirectory.open(path)
    assert run.state == "interrupted"
    assert run.usage["interval"].to_list() == [0, 1, 2, 3, 4]
    histogram = run.latency("rd1")
    assert histogram
    assert histogram.count == run.measured_rows("rd1")["ios"].sum()


@pytest.mark.parametrize("name", [files.SPOOL, files.LATENCY, files.EVENTS])
@pytest.mark.parametrize("lost_bytes", [1, 7, 150])
def test_a_torn_last_line_costs_only_that_line(tmp_path: Path, name: str, lost_bytes: int) -> None:
    writer = open_writer(tmp_path / "run")
    load = Load(volumes=1, intervals=3, warmup=0)
    writer.begin_step("rd1", spec=spec_of(load), facts={})
    for interval in intervals_of(load, random.Random(1)):
        writer.interval(interval)
        writer.event(TimedEvent(interval.start_s, "note", "x" * 200))
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    writer.close("failed")
    torn = tmp_path / "copy" / name
    torn.write_bytes(torn.read_bytes()[:-lost_bytes])
    run = RunDirectory.open(tmp_path / "copy")
    assert run.usage.height == (2 if name == files.SPOOL else 3)
    assert len(run.events) == (2 if name == files.EVENTS else 3)
    assert run.latency("rd1") is not None


def test_leaving_without_close_marks_the_run(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="gone"), open_writer(tmp_path / "failed"):
        raise OSError("the array is gone")
    failed = RunDirectory.open(tmp_path / "failed").manifest
    assert (failed.state, failed.reason) == ("failed", "the array is gone")
    writer = open_writer(tmp_path / "stopped")
    writer.begin_step("rd1", spec={}, facts={})
    with pytest.raises(KeyboardInterrupt), writer:
        raise KeyboardInterrupt
    stopped = RunDirectory.open(tmp_path / "stopped").manifest
    assert stopped.state == "interrupted"
    assert stopped.steps[0].state == "interrupted"


def test_misuse_is_an_internal_error(tmp_path: Path) -> None:
    writer = open_writer(tmp_path / "run")
    with pytest.raises(InternalError):
        writer.end_step()
    writer.begin_step("rd1", spec={}, facts={})
    with pytest.raises(InternalError):
        writer.begin_step("rd2", spec={}, facts={})
    writer.close("complete")


def test_what_is_no_run_is_refused_with_a_reason(tmp_path: Path) -> None:
    with pytest.raises(NotARunError, match=r"manifest\.json: No such file"):
        RunDirectory.open(tmp_path)
    run = make_run(tmp_path / "run", [Load(intervals=2, warmup=0)])
    with pytest.raises(NotARunError) as caught:
        RunDirectory.open(tmp_path)
    assert str(run.path) in caught.value.hint
    manifest = json.loads((run.path / files.MANIFEST).read_text())
    (run.path / files.MANIFEST).chmod(0o600)
    (run.path / files.MANIFEST).write_text(json.dumps({**manifest, "format_version": 99}))
    with pytest.raises(NotARunError, match="run format 99"):
        RunDirectory.open(run.path)
    (run.path / files.MANIFEST).write_text("{")
    with pytest.raises(NotARunError, match="Invalid JSON"):
        RunDirectory.open(run.path)
    (tmp_path / "file").write_text("")
    with pytest.raises(RunExistsError, match="is a file"):
        open_writer(tmp_path / "file")


def test_a_newer_writer_may_add_columns_and_keys(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [Load(intervals=2, warmup=0)])
    table = run.path / files.INTERVALS
    table.chmod(0o600)
    pl.read_parquet(table).with_columns(new_column=pl.lit(1)).drop("service_sumsq_ns2").write_parquet(table)
    manifest = json.loads((run.path / files.MANIFEST).read_text())
    (run.path / files.MANIFEST).chmod(0o600)
    (run.path / files.MANIFEST).write_text(json.dumps({**manifest, "new_key": {"a": 1}}))
    again = RunDirectory.open(run.path)
    assert again.intervals.columns == run.intervals.columns
    assert again.intervals["service_sumsq_ns2"].null_count() == again.intervals.height


def test_secrets_never_reach_the_disk(tmp_path: Path) -> None:
    secret = "Sup3rS3cretWord"
    text = (
        f'lun=iscsi://joe%{secret}@10.0.0.1/iqn.x/0\nsecret = "{secret}"\nmutual_secret={secret},user=joe\n'
    )
    writer = RunWriter.create(
        tmp_path / "run",
        name="x",
        workload=WorkloadSource(name="x.toml", text=text),
        command=("linerate", "run", f"iscsi://joe%{secret}@10.0.0.1/iqn.x/0"),
    )
    spec = {"volumes": [{"url": f"iscsi://joe%{secret}@h/iqn.x/0", "user": "joe", "secret": secret}]}
    writer.begin_step("rd1", spec=spec, facts={"volumes": [{"mutual_secret": secret}]})
    writer.event(TimedEvent(0.0, "login", f"login to iscsi://joe%{secret}@10.0.0.1 failed"))
    run = writer.close("failed", f"cannot log in to iscsi://joe%{secret}@10.0.0.1")
    for file in run.path.iterdir():
        assert secret.encode() not in file.read_bytes(), file.name
    assert "joe%***@10.0.0.1" in run.manifest.workload.text
    assert run.manifest.steps[0].spec["volumes"][0]["user"] == "joe"


def test_a_file_that_does_not_fit_leaves_nothing_beside_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import resource, signal, sys\n"
            "from pathlib import Path\n"
            "from linerate.errors import HostError\n"
            "from linerate.results import files\n"
            "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
            "try: files.write_result(Path(sys.argv[1]), bytes(5000))\n"
            "except HostError as error: print(error.message, error.hint)\n",
            str(tmp_path / "new" / "figures.csv"),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "figures.csv: File too large" in done.stdout
    assert "another place" in done.stdout
    assert list((tmp_path / "new").iterdir()) == []
