"""What the command line changes: maps, times, sizes, session options; presets from their files."""

from __future__ import annotations

from pathlib import Path

import linerate
import pytest
from linerate.errors import UserError
from linerate.workload import PRESETS, LunMap, Overrides, RunSpec, SessionSpec, load_workload
from linerate.workload.toml_file import parse_toml

from .conftest import NULL, Read

THERE = str(Path(linerate.__file__).parent / "studies" / "anvil.toml")
TEXT = "sd=sd1,lun=x,size=1g\nwd=wd1,sd=sd1\nrd=rd1,wd=wd1,elapsed=1200,interval=5{}\n"


def changed(read: Read, extra: str = "", **changes: object) -> RunSpec:
    overrides = Overrides(luns=NULL, **changes)  # type: ignore[arg-type]
    return next(read(TEXT.format(extra), overrides=overrides).steps()).spec


@pytest.mark.parametrize(
    ("name", "lun", "url"),
    [
        ("sd1", "x", "exact"),
        ("sd2", "\\\\.\\PhysicalDrive7", "lun"),
        ("sd3", "\\\\.\\physicaldrive2", "drive 1"),
        ("sd4", "x", "sd 4"),
        ("disk9", "x", "any 10"),
        ("data", "/dev/sdb2", "any 3"),
    ],
)
def test_lun_map(name: str, lun: str, url: str) -> None:
    entries = {
        "sd1": "exact",
        "\\\\.\\PhysicalDrive7": "lun",
        "\\\\.\\PhysicalDrive*": "drive {n-2}",
        "sd*": "sd {n}",
        "*": "any {n+1}",
    }
    assert LunMap(entries).resolve(name, lun) == url


def test_lun_map_errors() -> None:
    assert LunMap({"a": "x"}).resolve("b", "") is None
    with pytest.raises(UserError, match="neither data nor /dev/sdb has a number"):
        LunMap({"*": "null:{n}g"}).resolve("data", "/dev/sdb")
    with pytest.raises(UserError, match="became negative"):
        LunMap({"*": "iscsi://h/x/{n-1}"}).resolve("sd0", "")
    with pytest.raises(UserError, match="--map sd1: no target"):
        LunMap.parse(["sd1"])
    assert LunMap.parse(["*=null:8g"]).entries == {"*": "null:8g"}


@pytest.mark.parametrize("key", ["sd9", "SD1", "sd1*x", "disk*", "y"])
def test_a_map_that_means_no_volume_is_refused(read: Read, tmp_path: Path, key: str) -> None:
    luns = LunMap({"*": "null:8g", key: "null:1g"})
    with pytest.raises(UserError) as caught:
        read(
            "sd=sd1,lun=x,size=1g\nsd=sd2,lun=z\nwd=wd1,sd=sd1\nrd=rd1,wd=wd1\n",
            overrides=Overrides(luns=luns),
        )
    assert caught.value.message == f"--map {key}: no volume has this name or lun"
    assert caught.value.hint == "there is sd1 (x), sd2 (z)"
    text = '[[volume]]\nname = "v"\ncount = 30\ntarget = "x"\n[[stream]]\nname = "s"\n'
    with pytest.raises(UserError, match="no volume has this name or lun") as caught:
        parse_toml(text, "w.toml", name="w", overrides=Overrides(luns=luns))
    assert caught.value.hint.endswith("v19 (x), v20 (x) and 10 more")


@pytest.mark.parametrize("key", ["sd2", "z", "sd*", "*d2", "Z*"])
def test_a_map_may_name_a_volume_that_is_not_used(read: Read, key: str) -> None:
    luns = LunMap({"*": "null:8g", key: "null:1g"})
    text = "sd=sd1,lun=x,size=1g\nsd=sd2,lun=z\nwd=wd1,sd=sd1\nrd=rd1,wd=wd1\n"
    assert len(read(text, overrides=Overrides(luns=luns))) == 1


def test_a_volume_is_mapped_once() -> None:
    with pytest.raises(UserError, match="--map sd1: mapped to two targets"):
        LunMap.parse(["sd1=null:1g", "sd1=null:2g"])


def test_times_are_scaled_to_whole_intervals(read: Read) -> None:
    spec = changed(read, time_scale=0.01)
    assert (spec.warmup_s, spec.elapsed_s, spec.interval_s) == (1, 12, 1)


def test_times_given_outright(read: Read) -> None:
    spec = changed(read, elapsed_s=10.0, interval_s=2.0)
    assert (spec.warmup_s, spec.elapsed_s, spec.interval_s) == (2, 10, 2)
    spec = changed(read, ",warmup=60", elapsed_s=4.5, warmup_s=0.0, interval_s=1.0)
    assert (spec.warmup_s, spec.elapsed_s) == (0, 5)


def test_an_interval_longer_than_half_the_run_is_shortened_and_said(read: Read) -> None:
    plan = read(TEXT.format(""), overrides=Overrides(luns=NULL, elapsed_s=4.0))
    run = next(plan.steps())
    assert run.spec.interval_s == 2
    assert "interval 2 s, not 5 s" in str(run.warnings[0])
    assert run.banner.endswith("elapsed=4 warmup=2; For loops: None")


def test_times_must_be_above_zero(read: Read) -> None:
    with pytest.raises(UserError, match="elapsed 0: out of range"):
        changed(read, elapsed_s=0.0)
    with pytest.raises(UserError, match="outstanding 0: out of range"):
        Overrides(outstanding=0)


def test_everything_else(read: Read) -> None:
    spec = changed(
        read,
        size_bytes=1 << 20,
        outstanding=3,
        seed=9,
        verify="on",
        workers=2,
        cpus=(0, 1),
        driver="epoll",
        wait="spin",
        session="shared",
        iscsi=SessionSpec(nodelay=False),
    )
    volume = spec.volumes[0]
    assert (volume.size_bytes, volume.outstanding, volume.session) == (1 << 20, 3, "shared")
    assert volume.iscsi == SessionSpec(nodelay=False)
    assert (spec.seed, spec.verify, spec.workers, spec.cpus) == (9, "on", 2, (0, 1))
    assert (spec.driver, spec.wait) == ("epoll", "spin")


def test_session_options_without_a_value_stay_out_of_the_json() -> None:
    assert SessionSpec(nodelay=True).model_dump() == {"nodelay": True}
    merged = SessionSpec(nodelay=True, max_burst_bytes=1).merged(SessionSpec(max_burst_bytes=2))
    assert merged == SessionSpec(nodelay=True, max_burst_bytes=2)


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_presets_run_on_the_volumes_they_say(name: str) -> None:
    plan = load_workload(name, overrides=Overrides(luns=NULL))
    runs = list(plan.steps())
    assert len({run.label for run in runs}) == len(runs) > 0
    assert max(len(run.spec.volumes) for run in runs) == PRESETS[name].volumes
    for run in runs:
        RunSpec.model_validate_json(run.spec.model_dump_json())


def test_anvil_follows_its_rules() -> None:
    runs = {run.label: run.spec for run in load_workload("anvil", overrides=Overrides(luns=NULL)).steps()}
    read, write = runs["read-seq-4m"], runs["write-seq-4m"]
    assert (read.elapsed_s, read.volumes[0].outstanding, read.limits.bytes) == (8, 1, None)
    assert (write.elapsed_s, write.limits.written_bytes, write.warmup_s) == (90, 1 << 30, 0)
    assert runs["read-4k-qd16"].volumes[0].outstanding == 16


def test_chelsio_and_dlink() -> None:
    ladder = load_workload("chelsio", overrides=Overrides(luns=NULL))
    labels = [run.label for run in ladder.steps()]
    assert len(labels) == 33
    assert (labels[0], labels[-1]) == ("read size=1k", "mixed size=1m")
    read, write = load_workload("dlink", overrides=Overrides(luns=NULL)).steps()
    assert [(s.read_percent, s.random_percent) for s in (*read.spec.streams, *write.spec.streams)] == [
        (100, 0),
        (0, 0),
    ]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("no-such", "no-such: no such file"),
        ([], "no workload file is given"),
        (["a.toml", "b.vdb"], "a.toml: no such file"),
        ([THERE, "ms"], "ms: no such file"),
        ([THERE, THERE], "only vdbench files can be read together"),
        ("none.toml", "none.toml: No such file"),
        (".", "not a file"),
        ("iscsi://user%secret@array/iqn/0", r"^iscsi://\*\*\*@array/iqn/0: a volume, not a workload"),
        (["null:1g", "ms"], "null:1g: a volume, not a workload"),
    ],
)
def test_sources_that_cannot_be_read(source: str | list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        load_workload(source)


def test_several_vdbench_files_are_one(tmp_path: Path) -> None:
    disks, runs = tmp_path / "disks.vdb", tmp_path / "runs.vdb"
    disks.write_text("sd=sd1,lun=x\n")
    runs.write_text("wd=wd1,sd=sd1\nrd=rd1,wd=wd1,threads=$t\n")
    plan = load_workload([disks, runs], substitutions={"t": "4"}, overrides=Overrides(luns=NULL))
    assert next(plan.steps()).spec.volumes[0].outstanding == 4


def test_presets_take_no_substitutions() -> None:
    with pytest.raises(UserError, match="preset dlink: size cannot be substituted"):
        load_workload("dlink", substitutions={"size": "1k"})
