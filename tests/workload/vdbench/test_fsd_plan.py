"""FSDs, FWDs and their RDs: which runs a file asks for, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from linerate.errors import UserError
from linerate.workload import Overrides
from linerate.workload.spec import SmbSpec

from tests.workload.conftest import Read
from tests.workload.vdbench.file_plans import read_plan, runs_of

FSD = "fsd=fsd1,anchor=/data/a,depth=2,width=3,files=5,size=(4k,50,16k,50)\n"
FWD = "fwd=fwd1,fsd=fsd1,operation=read,xfersize=8k,threads=8\n"
RD = "rd=rd1,fwd=fwd1,fwdrate=max,elapsed=60,interval=5\n"


def test_a_run_has_the_structure_and_the_threads_of_the_file(read: Read) -> None:
    (run,) = runs_of(read_plan(read, FSD + FWD + RD))
    (structure,) = run.files.structures
    assert (structure.depth, structure.width, structure.files) == (2, 3, 5)
    assert structure.sizes == ((4096, 50.0), (16384, 50.0))
    (work,) = run.files.workloads
    assert (work.operation, work.threads, work.sizes, work.share_percent) == (
        "read",
        8,
        ((8192, 100.0),),
        100.0,
    )
    assert [stream.name for stream in run.files.streams] == ["fwd1 read", "fwd1 open", "fwd1 close"]
    assert (run.warmup_s, run.elapsed_s, run.files.format) == (5, 55, None)


def test_a_format_is_a_run_before_each_pass(read: Read) -> None:
    text = FSD + FWD + RD.replace("elapsed", "format=yes,fordepth=(1,2),forthreads=(1,4),elapsed")
    plan = read_plan(read, text)
    assert [step.label for step in plan.steps()][:4] == [
        "format_for_rd1 depth=1 threads=1",
        "rd1 depth=1 threads=1",
        "format_for_rd1 depth=1 threads=4",
        "rd1 depth=1 threads=4",
    ]
    runs = runs_of(plan)
    assert len(runs) == 8
    first = runs[0].files
    assert first.elapsed_s is None
    assert first.format is not None
    assert (first.format.delete, first.format.folders, first.format.files) == (True, True, True)
    assert [(work.threads, work.sizes) for work in first.workloads] == [(8, ((131072, 100.0),))]
    assert [run.files.structures[0].depth for run in runs] == [1, 1, 1, 1, 2, 2, 2, 2]
    assert [run.files.workloads[0].threads for run in runs[1::2]] == [1, 4, 1, 4]


@pytest.mark.parametrize(
    ("words", "runs", "parts"),
    [
        ("no", 1, None),
        ("only", 1, (True, True, True)),
        ("restart", 2, (False, True, True)),
        ("clean", 1, (True, False, False)),
        ("directories", 2, (True, True, False)),
        ("(only,restart)", 1, (False, True, True)),
        ("(yes,no)", 1, None),
    ],
)
def test_words_of_format(read: Read, words: str, runs: int, parts: tuple[bool, ...] | None) -> None:
    found = runs_of(read_plan(read, FSD + FWD + RD.replace("elapsed", f"format={words},elapsed")))
    assert len(found) == runs
    made = found[0].files.format
    assert (made and (made.delete, made.folders, made.files)) == parts


def test_once_formats_before_the_first_pass_only(read: Read) -> None:
    plan = read_plan(read, FSD + FWD + RD.replace("elapsed", "format=once,forxfersize=(4k,8k),elapsed"))
    assert [step.name for step in plan.steps()] == ["format_for_rd1", "rd1", "rd1"]


def test_threads_and_skew_are_divided_over_structures_and_operations(read: Read) -> None:
    text = (
        "fsd=fsd1,anchor=/data/a\nfsd=fsd2,anchor=/data/b\n"
        "fwd=fwd1,fsd=fsd*,operation=read,threads=9,skew=60\nfwd=fwd2,fsd=fsd1,operation=write,threads=1\n"
        "rd=rd1,fwd=fwd*,fwdrate=100,operations=(read,getattr)\n"
    )
    (run,) = runs_of(read_plan(read, text))
    found = [(w.name, w.structure, w.operation, w.threads, w.share_percent) for w in run.files.workloads]
    assert found == [
        ("fwd1", 0, "read", 2, 15.0),
        ("fwd1", 0, "getattr", 2, 15.0),
        ("fwd1", 1, "read", 2, 15.0),
        ("fwd1", 1, "getattr", 2, 15.0),
        ("fwd2", 0, "read", 1, 20.0),
        ("fwd2", 0, "getattr", 1, 20.0),
    ]
    assert run.files.rate is not None
    assert run.files.rate.per_s == 100


def test_a_loop_over_operations_has_one_at_a_time(read: Read) -> None:
    plan = read_plan(read, FSD + FWD + RD.replace("elapsed", "foroperations=(read,getattr),elapsed"))
    assert [step.label for step in plan.steps()] == ["rd1 operation=read", "rd1 operation=getattr"]
    assert [run.files.workloads[0].operation for run in runs_of(plan)] == ["read", "getattr"]


def test_rates_are_innermost(read: Read) -> None:
    plan = read_plan(read, FSD + FWD + RD.replace("fwdrate=max", "fwdrate=(10,20),forfiles=(1,2)"))
    rates = [
        (run.files.structures[0].files, run.files.rate and run.files.rate.per_s) for run in runs_of(plan)
    ]
    assert rates == [(1, 10), (1, 20), (2, 10), (2, 20)]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ("depth=2,width=2,files=3,size=8k", "until it has 12 files, 96k"),
        ("depth=2,width=2,files=3,size=8k,distribution=all", "until it has 18 files, 144k"),
        ("depth=1,width=1,files=1000,size=(4k,50,12345,50)", "until it has 1,000 files, about 7.84m"),
        ("depth=1,width=1,files=1000,size=8k,totalsize=1m", "until it has 128 files, about 1m"),
    ],
)
def test_a_format_has_no_length_and_says_what_it_makes(read: Read, fields: str, told: str) -> None:
    plan = read_plan(
        read, f"fsd=fsd1,anchor=/data/a,{fields}\n" + FWD + RD.replace("elapsed", "format=yes,elapsed")
    )
    making, measuring = plan.steps()
    assert f"; {told}; " in making.banner
    assert (making.ends_when_done, measuring.ends_when_done, plan.seconds) == (True, False, 60)
    (making, _) = Overrides(elapsed_s=5).apply(plan).steps()
    assert f"; {told}; " in making.banner
    assert making.ends_when_done


def test_an_anchor_on_a_share_has_its_secret_in_the_seam_alone(
    read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINERATE_SMB_PASSWORD", "hunter2")
    text = FSD.replace("/data/a", "smb://LAB;joe@nas/share/a%20b/") + FWD + RD
    plan = read(text, overrides=Overrides(smb=SmbSpec(signing="on")))
    (run,) = runs_of(plan)
    (structure,), (volume,) = run.files.structures, run.volumes
    assert structure.anchor == volume.url == "smb://nas:445/share/a%20b"
    assert "hunter2" not in run.model_dump_json()
    (told,) = json.loads(run.seam_json())["structures"]
    assert (told["user"], told["secret"], told["smb"]) == ("LAB\\joe", "hunter2", {"signing": "on"})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            FSD.replace("/data/a", "nfs://nas/x") + FWD + RD,
            "w.vdb:1: fsd=fsd1: structures on nfs:// are not",
        ),
        (
            FSD.replace("/data/a", "smb:///share/a") + FWD + RD,
            "w.vdb:1: fsd=fsd1: smb:///share/a: '' is not a host",
        ),
        (FSD + FWD.replace("=read", "=copy") + RD, "w.vdb:2: fwd=fwd1: operation=copy needs target="),
        (FSD + FWD.replace("threads", "target=fsd1,threads") + RD, "goes with operation=copy or move"),
        (FSD + FWD.replace("=read", "=copy,target=fsd2") + RD, "target=fsd2: there is no such fsd"),
        (FSD + FWD.replace("=read", "=copy,target=fsd1") + RD, "needs the structure of fsd=fsd1, in another"),
        (
            FSD
            + FSD.replace("fsd1", "fsd2").replace("/a", "/b").replace("depth=2", "depth=1")
            + FWD.replace("=read", "=move,target=fsd2")
            + RD,
            "target=fsd2 needs the structure of fsd=fsd1",
        ),
        (
            FSD + FWD + RD.replace("elapsed", "operations=(read,move),elapsed"),
            "operations=move needs target=",
        ),
        (FSD + FWD.replace("threads", "rdpct=50,threads") + RD, "rdpct= needs fileio=random"),
        (FSD + FWD.replace("threads", "stopafter=5,threads") + RD, "stopafter= with fileio=sequential"),
        (FSD + FWD.replace("threads", "fileselect=skewed,threads") + RD, "fileselect=skewed: not supported"),
        (FSD + FWD + RD.replace("max", "curve"), "curve is not supported for FWDs"),
        (FSD + FWD + RD.replace("max", "50%"), "fwdrate=50%: a rate in percent is not supported for FWDs"),
        (FSD + FWD + RD.replace("fwdrate=max,", ""), "rd=rd1: no fwdrate"),
        (FSD + FWD + RD.replace("elapsed", "format=complete,elapsed"), "complete is not supported"),
        (FSD + FWD + RD.replace("elapsed", "iorate=5,elapsed"), "goes with WDs"),
        (FSD + FWD.replace("fsd=fsd1", "fsd=fsd9") + RD, "there is no such fsd"),
        ("sd=sd1,lun=/data/x,size=1m\n" + FSD + FWD + RD, "SDs and WDs do not go with FSDs and FWDs"),
        ("sd=sd1,lun=x\nwd=wd1,sd=sd1\nrd=rd1,wd=wd1,fwdrate=5\n", "goes with FWDs"),
        ("validate=yes\n" + FSD + FWD.replace("8k", "1000") + RD, "data are checked in blocks of 512 bytes"),
        (
            "validate=yes\n" + FSD + FWD.replace("threads", "fileio=(random,shared),threads") + RD,
            "two threads may use one block at once",
        ),
        (
            "validate=yes\n" + FSD + FWD + RD.replace("elapsed", "forcompratio=(1,2),elapsed"),
            "do not compress",
        ),
        (
            FSD + FWD + RD.replace("elapsed", "forcompratio=(1,30),elapsed"),
            "forcompratio=(1,30): a value is out of range",
        ),
        (
            FSD + "fsd=fsd2,anchor=/data/a/b\n" + FWD.replace("fsd=fsd1", "fsd=*") + RD,
            "inside that of fsd=fsd1",
        ),
    ],
)
def test_what_is_not_done_is_refused_by_name(read: Read, text: str, told: str) -> None:
    with pytest.raises(UserError) as caught:
        read_plan(read, text)
    assert told in f"{caught.value.message}"


def test_one_folder_under_two_names_is_refused_with_line_and_both_names(read: Read, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "other").symlink_to(tmp_path / "missing")
    first = f"fsd=fsd1,anchor={tmp_path}/a\n"
    workload = FWD.replace("fsd=fsd1", "fsd=*") + RD
    for anchor in (f"{tmp_path}/link", f"{tmp_path}/other/../a/"):
        with pytest.raises(UserError) as caught:
            read_plan(read, f"{first}fsd=fsd2,anchor={anchor}\n{workload}")
        message = caught.value.message
        assert ":2:" in message
        assert f"fsd=fsd1 and fsd=fsd2 have the same folder, {tmp_path}/a" in message
        assert f"anchor={tmp_path}/a and anchor={anchor}" in message
    with pytest.raises(UserError, match=r"fsd=fsd2: its folder .*/a/b is inside that of fsd=fsd1"):
        read_plan(read, f"{first}fsd=fsd2,anchor={tmp_path}/link/b\n{workload}")
    assert read_plan(read, f"{first}fsd=fsd2,anchor={tmp_path}/other\n{workload}")


def test_a_copy_has_the_structures_of_both_ends_and_a_format_only_its_own(read: Read) -> None:
    text = (
        FSD
        + FSD.replace("fsd1", "fsd2").replace("/a", "/b")
        + FWD.replace("operation=read", "operation=copy,target=fsd2")
        + RD.replace("elapsed", "format=yes,fordepth=(1,2),elapsed")
    )
    making, copying = runs_of(read_plan(read, text))[:2]
    assert [structure.name for structure in making.files.structures] == ["fsd1"]
    assert [(one.name, one.depth) for one in copying.files.structures] == [("fsd1", 1), ("fsd2", 1)]
    (work,) = copying.files.workloads
    assert (work.operation, work.structure, work.target, work.threads) == ("copy", 0, 1, 8)
    changed = {name for one in copying.streams if one.read_percent < 100 for name in one.volumes}
    assert changed == {"fsd2"}, "a copy changes nothing in its source"
    volumes = {one.name: one.volumes for one in copying.streams}
    assert volumes["fwd1 read"] == ("fsd1",)
    assert volumes["fwd1 copy"] == volumes["fwd1 write"] == volumes["fwd1 delete"] == ("fsd2",)
    (moving,) = runs_of(
        read_plan(read, text.replace("copy", "move").replace("format=yes,fordepth=(1,2),", ""))
    )
    changed = {name for one in moving.streams if one.read_percent < 100 for name in one.volumes}
    assert changed == {"fsd1", "fsd2"}


def test_data_are_checked_in_the_largest_block_that_fits_all_sizes(read: Read) -> None:
    sweep = RD.replace("elapsed", "format=yes,forxfersize=(3k,8k),elapsed")
    runs = runs_of(read_plan(read, "validate=yes\n" + FSD + FWD + sweep))
    assert [(run.verify, run.files.verify_unit_bytes) for run in runs] == [("on", 1024)] * 4
    (run,) = runs_of(read(FSD + FWD + RD, overrides=Overrides(verify="on")))
    assert (run.verify, run.files.verify_unit_bytes) == ("on", 4096)
    (run,) = runs_of(read_plan(read, FSD + FWD + RD))
    assert (run.verify, run.files.verify_unit_bytes) == ("off", None)


def test_data_compress_and_repeat_as_asked_in_formats_too(read: Read) -> None:
    text = "compratio=2\ndedupratio=3,dedupunit=8k,dedupsets=10\n" + FSD + FWD
    making, reading = runs_of(read_plan(read, text + RD.replace("elapsed", "format=yes,elapsed")))
    for run in (making, reading):
        assert run.files.compression_ratio == 2
        assert run.files.dedup is not None
        assert (run.files.dedup.ratio, run.files.dedup.unit_bytes, run.files.dedup.sets) == (3, 8192, 10)
    swept = runs_of(read_plan(read, text + RD.replace("elapsed", "forcompratio=(4,1.5),elapsed")))
    assert [run.files.compression_ratio for run in swept] == [4, 1.5]


def test_loops_over_whole_numbers_leave_fractions_out(read: Read) -> None:
    plan = read_plan(read, FSD + FWD + RD.replace("elapsed", "forthreads=(100-1,d),elapsed"))
    assert [run.files.workloads[0].threads for run in runs_of(plan)] == [100, 50, 25, 12, 6, 3, 1]
    assert [step.label for step in plan.steps()][3] == "rd1 threads=12"


@pytest.mark.parametrize("operation", ["getattr", "delete", "copy,target=fsd1"])
def test_a_percentage_of_reads_comes_before_the_operation_as_in_vdbench(read: Read, operation: str) -> None:
    mixed = FWD.replace("=read", f"={operation},fileio=random,rdpct=30")
    plan = read_plan(read, FSD + mixed + RD)
    (run,) = runs_of(plan)
    (work,) = run.files.workloads
    assert (work.operation, work.read_percent, work.target) == ("read", 30, None)
    assert [one.operation for one in run.files.streams][:2] == ["read", "write"]
    word = operation.partition(",")[0]
    said = f"fwd=fwd1: with rdpct= it reads and writes its files, as in vdbench: no {word}"
    assert said in [notice.message for notice in plan.warnings]


def test_format_means_nothing_to_sds_as_in_vdbench(read: Read) -> None:
    text = "sd=sd1,lun=/data/x,size=1m\nwd=wd1,sd=sd1\nrd=rd1,wd=wd1,elapsed=9"
    plan, plain = (read(f"{text}{more}\n") for more in (",format=yes", ""))
    assert [step.spec for step in plan.steps()] == [step.spec for step in plain.steps()]
    assert "format=yes: no effect with WDs, as in vdbench: it is of FSDs" in [
        notice.message for notice in plan.warnings
    ]


def test_options_for_volumes_are_refused(read: Read) -> None:
    with pytest.raises(UserError, match="--outstanding: goes with volumes"):
        read(FSD + FWD + RD, overrides=Overrides(outstanding=4))
