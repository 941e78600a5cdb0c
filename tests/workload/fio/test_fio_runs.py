"""What jobs become: streams, volumes, depths, times, ends; job files as administrators write them, as snapshots."""

from __future__ import annotations

from pathlib import Path

import pytest
from linerate._core import Run
from linerate.errors import UserError
from linerate.workload import LunMap, Overrides, load_workload
from linerate.workload.spec import OpenArrival, SizeMix, VolumeRegion
from syrupy.assertion import SnapshotAssertion

from tests.workload.test_snapshots import run_text

from .conftest import ReadFio, only_run, refusal

TIMED = "time_based\nruntime=9\n"
BASE = f"[global]\nfilename=x\nioengine=libaio\n{TIMED}"

FILES = {
    "random read": """
[global]
ioengine=libaio
direct=1
bs=4k
runtime=60
time_based
ramp_time=10s
group_reporting=1
filename=/dev/nvme0n1

[rand-read]
rw=randread
iodepth=32
numjobs=4
""",
    "four corners": """
; four corners
[global]
name=corners
filename=/dev/sdb:/dev/sdc
ioengine=io_uring
direct=1
size=50%
iodepth=64
[global]
time_based=1
runtime=1m
[seq-read]
rw=read
bs=1m
stonewall
[seq-write]
rw=write
bs=1m
stonewall
[rand-read]
rw=randread
bs=4k
stonewall
[mixed]
rw=randrw
rwmixread=70
bssplit=4k/60:8k/40
stonewall
""",
    "copies with parts of their own": """
[global]
ioengine=libaio
filename=/dev/sdb
direct=1
bs=128k
time_based
runtime=30
[stream]
rw=read
iodepth=4
numjobs=4
offset_increment=25%
size=25%
""",
    "a database": """
[global]
direct=1
ioengine=libaio
runtime=120
time_based
startdelay=5
[data]
filename=/dev/sdb
rw=randrw
rwmixwrite=30
bs=8k
iodepth=16
[log]
filename=/dev/sdc
rw=write
bs=16k
sync=dsync
rate_iops=200
rate_process=poisson
""",
    "files to their end": """
[global]
directory=/srv/test
size=1g
bs=64k
[fill]
rw=write
numjobs=2
end_fsync=1
[check]
stonewall
rw=randread
loops=2
""",
}


@pytest.mark.parametrize("name", FILES)
def test_plans_of_job_files(name: str, fio: ReadFio, snapshot: SnapshotAssertion) -> None:
    plan = fio(FILES[name])
    assert "\n".join([*map(str, plan.warnings), *map(run_text, plan.steps())]) == snapshot


def test_the_thinnest_job(fio: ReadFio) -> None:
    spec = only_run(fio(f"[a]\nfilename=x\nrw=randread\n{TIMED}"))
    (stream,) = spec.streams
    assert (stream.name, stream.volumes, stream.read_percent, stream.random_percent) == (
        "a",
        ("file1",),
        100,
        100,
    )
    assert stream.sizes == SizeMix.one(4096)
    assert (spec.volumes[0].outstanding, spec.volumes[0].url) == (1, "null:8589934592")
    assert (spec.elapsed_s, spec.warmup_s, spec.interval_s, spec.seed) == (9, 0, 1, 1)


@pytest.mark.parametrize(
    ("form", "read", "random"),
    [
        ("read", 100, 0),
        ("write", 0, 0),
        ("randread", 100, 100),
        ("randwrite", 0, 100),
        ("rw", 50, 0),
        ("readwrite", 50, 0),
        ("randrw", 50, 100),
    ],
)
def test_directions(fio: ReadFio, form: str, read: float, random: float) -> None:
    (stream,) = only_run(fio(f"{BASE}[a]\nrw={form}\n")).streams
    assert (stream.read_percent, stream.random_percent) == (read, random)


@pytest.mark.parametrize(
    ("lines", "read", "random"),
    [
        ("rwmixread=70", 70, 100),
        ("rwmixwrite=70", 30, 100),
        ("rwmixread=70\nrwmixwrite=60", 40, 100),
        ("rwmixwrite=60\nrwmixread=70", 70, 100),
        ("percentage_random=20", 50, 20),
        ("percentage_random=20,20", 50, 20),
    ],
)
def test_mixes(fio: ReadFio, lines: str, read: float, random: float) -> None:
    (stream,) = only_run(fio(f"{BASE}[a]\nrw=randrw\n{lines}\n")).streams
    assert (stream.read_percent, stream.random_percent) == (read, random)


@pytest.mark.parametrize(
    ("lines", "depth"),
    [
        ("iodepth=8", 8),
        ("iodepth=8\nnumjobs=4", 32),
        ("iodepth=8\nioengine=psync\nnumjobs=3", 3),
        ("numjobs=(2*3)", 6),
    ],
)
def test_the_depth_is_of_all_copies(fio: ReadFio, lines: str, depth: int) -> None:
    spec = only_run(fio(f"{BASE}[a]\nrw=randread\n{lines}\n"))
    assert (spec.volumes[0].outstanding, len(spec.streams)) == (depth, 1)


def test_a_synchronous_engine_has_depth_1_with_a_notice(fio: ReadFio) -> None:
    plan = fio(f"[a]\nfilename=x\nrw=randread\niodepth=32\n{TIMED}")
    assert only_run(plan).volumes[0].outstanding == 1
    assert any("one I/O in flight for each copy" in str(notice) for notice in plan.warnings)


def test_sequential_copies_are_streams_of_their_own_over_the_same_blocks(fio: ReadFio) -> None:
    plan = fio(f"{BASE}[a]\nrw=read\nnumjobs=3\niodepth=2\n")
    spec = only_run(plan)
    assert [stream.name for stream in spec.streams] == ["a.1", "a.2", "a.3"]
    assert {stream.range for stream in spec.streams} == {None}
    assert spec.volumes[0].outstanding == 6
    assert any("3 copies go through the same blocks" in str(notice) for notice in plan.warnings)


def test_many_copies_are_read_soon(fio: ReadFio) -> None:
    spec = only_run(fio(f"{BASE}[a]\nrw=read\nnumjobs=4096\n"))
    assert (len(spec.streams), spec.volumes[0].outstanding) == (4096, 4096)
    error = refusal(fio, f"{BASE}[a]\nrw=read\nnumjobs=4096\nfilename=x:y\niodepth=2\n")
    assert error.message == "w.fio:6: [a]: 8,192 sequential copies on all files; at most 4,096"


def test_an_increment_gives_copies_parts_of_their_own(fio: ReadFio) -> None:
    spec = only_run(fio(f"{BASE}[a]\nrw=read\nnumjobs=2\noffset=1m\noffset_increment=4m\nsize=2m\n"))
    (volume,) = spec.volumes
    assert (volume.first_byte, volume.size_bytes) == (1 << 20, 6 << 20)
    assert [stream.range for stream in spec.streams] == [
        VolumeRegion(unit="bytes", start=0, end=2 << 20),
        VolumeRegion(unit="bytes", start=4 << 20, end=6 << 20),
    ]


def test_the_depth_is_shared_among_files(fio: ReadFio) -> None:
    spec = only_run(fio(f"{BASE}[a]\nrw=randread\nfilename=x:y\niodepth=8\nsize=8m\n"))
    assert [(volume.outstanding, volume.size_bytes) for volume in spec.volumes] == [
        (4, 4 << 20),
        (4, 4 << 20),
    ]
    error = refusal(fio, f"{BASE}[a]\nrw=randread\nfilename=x:y\niodepth=3\nrate_iops=9\n")
    assert error.message.startswith("w.fio:6: [a]: 1.5 I/Os in flight on each file")


def test_files_without_a_name_are_made_from_the_job(fio: ReadFio) -> None:
    luns = LunMap({"d/a.0.0": "null:1g", "e/a.1.0": "null:2g"})
    text = f"[a]\ndirectory=d:e\nrw=randread\nnumjobs=2\nsize=1m\n{TIMED}"
    spec = only_run(fio(text, luns=luns))
    assert [volume.url for volume in spec.volumes] == ["null:1073741824", "null:2147483648"]
    named = text.replace("rw=", "filename_format=f-$jobnum\nrw=")
    spec = only_run(fio(named, luns=LunMap({"d/f-0": "null:1g", "e/f-1": "null:2g"})))
    assert len(spec.volumes) == 2


def test_a_map_that_means_no_file_is_refused(fio: ReadFio) -> None:
    with pytest.raises(UserError, match="--map file7: no volume has this name or lun"):
        fio(f"{BASE}[a]\n", luns=LunMap({"file7": "null:1g"}))


def test_a_file_is_made_only_with_a_size_and_never_in_dev(fio: ReadFio) -> None:
    none = LunMap({})
    with pytest.raises(UserError, match=r"w\.fio:1: \[a\]: x does not exist"):
        fio(f"[a]\nfilename=x\n{TIMED}", luns=none)
    with pytest.raises(UserError, match=r"w\.fio:1: \[a\]: /dev/no-such: no such device"):
        fio(f"[a]\nfilename=/dev/no-such\nsize=1m\n{TIMED}", luns=none)
    spec = only_run(fio(f"[a]\nfilename=x\nsize=1m\n{TIMED}", luns=LunMap({})))
    assert (spec.volumes[0].create, spec.volumes[0].size_bytes) == (True, 1 << 20)
    assert not Path("x").exists()


def test_the_engine_null_needs_no_file(fio: ReadFio) -> None:
    spec = only_run(
        fio(
            f"[a]\nioengine=null\niodepth=4\nsize=16m\n{TIMED}",
            luns=LunMap({}),
        )
    )
    assert (spec.volumes[0].url, spec.volumes[0].outstanding) == ("null:16777216", 4)


@pytest.mark.parametrize(
    ("lines", "direct", "durable"),
    [
        ("", False, False),
        ("direct=1", True, False),
        ("buffered=0", True, False),
        ("direct=1\nbuffered=1", False, False),
        ("sync=1", False, True),
        ("sync=dsync", False, True),
        ("sync=0", False, False),
    ],
)
def test_opening(fio: ReadFio, lines: str, direct: bool, durable: bool) -> None:
    Path("x").write_bytes(bytes(1 << 20))
    plan = fio(f"{BASE}[a]\nrw=write\n{lines}\n", luns=LunMap({}))
    (volume,) = only_run(plan).volumes
    assert (volume.direct, volume.durable_writes) == (direct, durable)
    assert any("page cache" in str(notice) for notice in plan.warnings) is not direct


def test_a_rate_is_an_open_loop(fio: ReadFio) -> None:
    plan = fio(
        f"{BASE}[a]\nrw=randread\nrate_iops=100\nnumjobs=2\n[b]\nrw=randread\nbs=8k\nrate=400k\nnumjobs=2\n"
    )
    run = plan.next(None)
    assert run is not None
    assert run.spec.arrival == OpenArrival(process="deterministic", rate_iops=300)
    assert [stream.share_percent for stream in run.spec.streams] == pytest.approx([200 / 3, 100 / 3])
    assert len(run.spec.volumes) == 1


def test_a_rate_beside_a_job_without_one(fio: ReadFio) -> None:
    plan = fio(f"{BASE}[a]\nrw=randread\nrate_iops=100\n[b]\nfilename=y\nrw=randread\n")
    run = plan.next(None)
    assert run is not None
    assert [stream.rate_iops for stream in run.spec.streams] == [100, None]
    assert run.spec.arrival.kind == "closed"


def test_reads_and_writes_of_different_sizes(fio: ReadFio) -> None:
    text = f"{BASE}[a]\nrw=randrw\nrwmixread=70\nbs=4k,8k\n[b]\nfilename=y\nrw=read\n"
    spec = only_run(fio(text))
    assert [(s.name, s.read_percent, s.sizes, s.write_sizes) for s in spec.streams] == [
        ("a", 70, SizeMix.one(4096), SizeMix.one(8192)),
        ("b", 100, SizeMix.one(4096), None),
    ]
    (stream,) = only_run(fio(f"{BASE}[a]\nrw=randwrite\nbs=4k,8k\n")).streams
    assert (stream.sizes, stream.write_sizes) == (SizeMix.one(8192), None)


def test_different_jobs_on_separate_parts_have_a_volume_each(fio: ReadFio) -> None:
    spec = only_run(fio(f"{BASE}[a]\nrw=read\nsize=1m\n[b]\nrw=randwrite\noffset=1m\nsize=1m\niodepth=4\n"))
    assert [(v.name, v.first_byte, v.size_bytes, v.outstanding) for v in spec.volumes] == [
        ("file1.a", 0, 1 << 20, 1),
        ("file1.b", 1 << 20, 1 << 20, 4),
    ]


def test_different_jobs_on_one_part_have_a_queue_each_as_in_fio(fio: ReadFio) -> None:
    spec = only_run(fio(f"{BASE}[a]\nrw=read\n[b]\nrw=randwrite\niodepth=4\n[b]\nrw=write\n"))
    assert [(v.name, v.url, v.outstanding) for v in spec.volumes] == [
        ("file1.a", "null:8589934592", 1),
        ("file1.b", "null:8589934592", 4),
        ("file1.b-2", "null:8589934592", 1),
    ]
    assert [stream.volumes for stream in spec.streams] == [("file1.a",), ("file1.b",), ("file1.b-2",)]
    assert {stream.range for stream in spec.streams} == {None}


def test_equal_jobs_on_one_part_share_a_volume(fio: ReadFio) -> None:
    spec = only_run(fio(f"{BASE}iodepth=4\nrw=randread\n[a]\n[a]\n"))
    assert [stream.name for stream in spec.streams] == ["a", "a-2"]
    assert spec.volumes[0].outstanding == 8


@pytest.mark.parametrize(
    ("lines", "elapsed", "warmup", "interval"),
    [("runtime=60\nramp_time=1m", 60, 60, 1), ("runtime=1500ms", 1.5, 0, 0.5), ("runtime=1s", 1, 0, 0.5)],
)
def test_times(fio: ReadFio, lines: str, elapsed: float, warmup: float, interval: float) -> None:
    spec = only_run(fio(f"[a]\nfilename=x\ntime_based\n{lines}\n"))
    assert (spec.elapsed_s, spec.warmup_s, spec.interval_s) == (elapsed, warmup, interval)


def test_how_runs_without_time_based_end(fio: ReadFio) -> None:
    def end(text: str) -> tuple[bool, int | None, float]:
        spec = only_run(fio(f"[a]\nfilename=x\n{text}\n"))
        assert spec.limits.bytes is None
        return spec.streams[0].stop_at_end, spec.streams[0].stop_after_bytes, spec.elapsed_s

    assert end("rw=write\nsize=1m") == (True, None, 360_000)
    assert end("rw=randread\nsize=1m\nloops=3\nnumjobs=2\nruntime=60") == (False, 6 << 20, 60)
    assert end("rw=read\nsize=1m\nio_size=8m") == (False, 8 << 20, 360_000)
    error = refusal(fio, "[a]\nfilename=/dev/sdx\nrw=read:8k\n")
    assert error.message == "w.fio:1: [a]: neither a time nor an amount says when it ends"


@pytest.mark.parametrize(
    ("one", "other", "what"),
    [
        ("runtime=4\ntime_based\nramp_time=1", "runtime=4\ntime_based", "ramp_time="),
        (
            "runtime=4\ntime_based\nramp_time=1\nstartdelay=1",
            "runtime=4\ntime_based\nramp_time=1",
            "startdelay=",
        ),
    ],
)
def test_jobs_of_a_run_have_the_same_warm_up(fio: ReadFio, one: str, other: str, what: str) -> None:
    error = refusal(fio, f"[a]\nfilename=x\n{one}\n[b]\nfilename=y\n{other}\n")
    assert f"jobs a and b run at the same time and differ in {what}: not supported" in error.message
    assert len(fio(f"[a]\nfilename=x\n{one}\n[b]\nstonewall\nfilename=y\n{other}\n")) == 2


def test_runs_have_labels_of_their_own(fio: ReadFio) -> None:
    plan = fio(f"{BASE}stonewall\n[a]\n[a]\n[b]\n")
    assert [run.label for run in plan.steps()] == ["a", "a 2", "b"]


def test_commands_errors_seed_and_compression(fio: ReadFio) -> None:
    plan = fio(
        f"{BASE}[a]\nrw=write\nexec_prerun=sync\nexec_postrun=true\nrandseed=7\nbuffer_compress_percentage=50\n"
        "[b]\nstonewall\ncontinue_on_error=all\n"
    )
    first, second = plan.steps()
    assert (first.start_commands, first.end_commands, first.error_limit) == (("sync",), ("true",), 1)
    assert (first.spec.seed, first.spec.streams[0].compression_ratio) == (7, 2)
    assert second.error_limit is None


FOREIGN = {
    "x.xml": ("<Results>\n<System>\n", "an XML result of diskspd"),
    "x.json": ('{"fio version": "fio-3.33"}', "a JSON file"),
    "x.html": ("<!DOCTYPE html>\n", "an XML or HTML file"),
    "x.sh": ("#!/bin/sh\nfio --name=a\n", "a script"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_files_of_other_tools_are_named(name: str, tmp_path: Path) -> None:
    text, what = FOREIGN[name]
    (tmp_path / name).write_text(text)
    with pytest.raises(UserError) as caught:
        load_workload(tmp_path / name)
    assert caught.value.message == f"{tmp_path / name}: {what}, which Linerate does not read"


@pytest.mark.parametrize("name", ["job", "w.fio", "w.txt", "w.job"])
def test_a_job_file_is_known_by_its_first_section(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(f"; a comment\n# another\n\n[global] ; defaults\nfilename=x\n[a]\n{TIMED}")
    plan = load_workload(tmp_path / name, overrides=Overrides(luns=LunMap({"*": "null:1g"})))
    assert len(plan) == 1


def test_job_files_are_read_one_at_a_time(tmp_path: Path) -> None:
    for name in ("a.fio", "b.fio"):
        (tmp_path / name).write_text(f"[a]\n{TIMED}")
    with pytest.raises(UserError, match="only vdbench files can be read together"):
        load_workload([tmp_path / "a.fio", tmp_path / "b.fio"])


@pytest.mark.parametrize("name", FILES)
def test_the_data_plane_accepts_what_jobs_become(name: str, fio: ReadFio) -> None:
    for run in fio(FILES[name]).steps():
        Run.prepare(run.spec.seam_json()).discard()
