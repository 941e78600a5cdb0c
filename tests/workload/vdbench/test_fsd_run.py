"""A file system workload from the file to the run directory: what is on disk, what is counted, what is asked."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest
from linerate.analysis import check_run
from linerate.results import RunDirectory

from tests.cli.conftest import Done, linerate

TEXT = """\
create_anchors=yes
fsd=fsd1,anchor=anchor,depth=2,width=2,files=3,size=(4k,50,12k,50)
fwd=fwd1,fsd=fsd1,operation=read,fileselect=once,xfersize=4k,threads=2
rd=rd1,fwd=fwd1,fwdrate=max,format=yes,elapsed=4,interval=1,warmup=1
"""


def _run(tmp_path: Path, *words: str, text: str = TEXT, name: str = "run") -> Done:
    (tmp_path / "a.vdb").write_text(text.replace("anchor=anchor", f"anchor={tmp_path}/anchor"), "ascii")
    return linerate("run", "a.vdb", "--no-report", "--output", name, *words, cwd=tmp_path)


def _files(tmp_path: Path) -> dict[str, int]:
    anchor = tmp_path / "anchor"
    return {str(file.relative_to(anchor)): file.stat().st_size for file in anchor.rglob("*.file")}


def test_files_are_made_and_read_as_often_as_the_file_says(tmp_path: Path) -> None:
    done = _run(tmp_path, "--vdbench-output", "told", "--warmup", "0")
    assert done.returncode == 0, done.stderr
    files = _files(tmp_path)
    assert len(files) == 12
    assert set(files.values()) == {4096, 12288}
    assert "vdb.1_2.dir/vdb.2_1.dir/vdb_f0003.file" in files
    run = RunDirectory.open(tmp_path / "run")
    counted = run.intervals.group_by("stream").agg(pl.col("ios").sum(), pl.col("bytes").sum())
    found = {stream: (ios, size) for stream, ios, size in counted.iter_rows()}
    blocks = sum(files.values()) // 4096
    assert found["format create"][0] == 12
    assert found["format mkdir"][0] == 6
    assert found["format write"][1] == sum(files.values())
    assert found["fwd1 read"] == (blocks, sum(files.values()))
    assert found["fwd1 open"][0] == found["fwd1 close"][0] == 12
    flat = (tmp_path / "told" / "flatfile.html").read_text().splitlines()
    (head,) = [line.split() for line in flat if line.split()[:2] == ["tod", "timestamp"]]
    average = next(line.split() for line in flat if re.search(r" rd1 +avg_", line))
    told = dict(zip(head, average, strict=True))
    assert float(told["rate"]) == float(told["Read_rate"]) > 0
    assert float(told["Open_rate"]) * blocks == pytest.approx(float(told["Read_rate"]) * 12, rel=1e-3)
    assert (told["Xfersize"], told["Mkdir_rate"]) == ("4096.0000", "0.0000")


def test_what_is_not_of_a_structure_is_asked_about_and_stays(tmp_path: Path) -> None:
    assert _run(tmp_path).returncode == 0
    again = _run(tmp_path, name="again")
    assert again.returncode == 2, "a structure is asked about too"
    assert "files and folders of a structure" in again.stderr
    assert _run(tmp_path, "--overwrite", "all", name="again").returncode == 0
    mine = tmp_path / "anchor" / "mine.txt"
    mine.write_text("mine")
    refused = _run(tmp_path, name="third")
    assert refused.returncode == 2
    assert "holds mine.txt" in refused.stderr
    assert not (tmp_path / "third").exists()
    agreed = _run(tmp_path, "--overwrite", "fsd1", name="fourth")
    assert agreed.returncode == 0, agreed.stderr
    assert mine.read_text() == "mine"
    assert len(_files(tmp_path)) == 12


def test_a_format_that_finds_nothing_to_do_is_complete(tmp_path: Path) -> None:
    steps = "".join(
        f"rd={name},fwd=fwd1,fwdrate=max,format=({word},only),elapsed=4,interval=1\n"
        for name, word in (("none", "clean"), ("make", "restart"), ("again", "restart"))
    )
    done = _run(tmp_path, text=TEXT.partition("rd=")[0] + steps)
    assert done.returncode == 0, done.stderr
    run = RunDirectory.open(tmp_path / "run")
    made = dict(run.intervals.group_by("step").agg(pl.col("ios").sum()).iter_rows())
    assert [made.get(step.key, 0) > 0 for step in run.manifest.steps] == [False, True, False]
    assert "no-io" not in {finding.rule for finding in check_run(run).findings}
    assert len(_files(tmp_path)) == 12


def test_a_missing_anchor_is_named(tmp_path: Path) -> None:
    done = _run(tmp_path, text=TEXT.replace("create_anchors=yes\n", ""))
    assert done.returncode == 2
    assert "create_anchors=yes" in done.stderr
    assert not (tmp_path / "anchor").exists()


def test_a_dry_run_says_which_runs_have_no_known_length(tmp_path: Path) -> None:
    done = _run(tmp_path, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "RD=format_for_rd1; I/O rate: max; until it has 12 files, about 96k; " in done.stdout
    assert done.stdout.splitlines()[-1] == "2 runs, 1 of unknown length, the others 5 s"
    only = _run(tmp_path, "--dry-run", text=TEXT.replace("format=yes", "format=only"))
    assert only.stdout.splitlines()[-1] == "1 run, of unknown length"


CHECKED = """\
validate=yes
create_anchors=yes
fsd=fsd1,anchor=anchor,depth=2,width=2,files=3,size=(4k,50,12k,50)
fwd=fwd1,fsd=fsd1,operation=read,fileselect=once,xfersize=4k,threads=2
rd=make,fwd=fwd1,fwdrate=max,format=only,elapsed=4,interval=1
rd=rd1,fwd=fwd1,fwdrate=max,startcmd="sh between.sh",elapsed=4,interval=1,warmup=1
"""
DAMAGED = "vdb.1_2.dir/vdb.2_1.dir/vdb_f0002.file"


def _counts(tmp_path: Path, name: str) -> dict[str, tuple[int, int]]:
    run = RunDirectory.open(tmp_path / name)
    counted = run.intervals.group_by("stream").agg(pl.col("ios").sum(), pl.col("bytes").sum())
    return {stream: (ios, size) for stream, ios, size in counted.iter_rows()}


def test_a_byte_that_changes_between_the_format_and_a_read_fails_the_run(tmp_path: Path) -> None:
    between = tmp_path / "between.sh"
    between.write_text("true\n")
    clean = _run(tmp_path, "--warmup", "0", text=CHECKED, name="clean")
    assert clean.returncode == 0, clean.stderr
    unchecked = CHECKED.replace("validate=yes\n", "")
    plain = _run(tmp_path, "--warmup", "0", "--overwrite", "all", text=unchecked, name="plain")
    assert plain.returncode == 0, plain.stderr
    made = {"format delete": (12, 0), "format rmdir": (6, 0)}  # the old structure
    assert _counts(tmp_path, "plain") == _counts(tmp_path, "clean") | made, "checks change no count"
    damaged = tmp_path / "anchor" / DAMAGED
    between.write_text(f"printf '\\000' | dd of={damaged} bs=1 seek=1000 conv=notrunc 2>/dev/null\n")
    failed = _run(tmp_path, "--warmup", "0", "--overwrite", "all", text=CHECKED, name="failed")
    assert failed.returncode == 1, failed.stderr
    told = f"volume fsd1: wrong data: {damaged}: block at offset 0: expected generation 1, found: "
    assert told in failed.stderr
    assert "first difference at byte 1000: expected " in failed.stderr
    run = RunDirectory.open(tmp_path / "failed")
    assert [step.state for step in run.manifest.steps] == ["complete", "failed"]
    (event,) = [event for event in run.events if event.kind == "miscompare"]
    assert event.volume == "fsd1"
    assert str(damaged) in event.message


def test_files_are_copied_into_the_target_and_asked_about_there(tmp_path: Path) -> None:
    text = (
        "validate=yes\ncreate_anchors=yes\n"
        "fsd=default,depth=2,width=2,files=3,size=(4k,50,12k,50)\n"
        f"fsd=fsd1,anchor=anchor\nfsd=fsd2,anchor={tmp_path}/copies\n"
        "fwd=fwd1,fsd=fsd1,target=fsd2,operation=copy,xfersize=4k,threads=2\n"
        "fwd=fwd2,fsd=fsd2,operation=read,fileselect=once,xfersize=8k,threads=2\n"
        "rd=rd1,fwd=fwd1,fwdrate=max,format=yes,elapsed=4,interval=1\n"
        "rd=rd2,fwd=fwd2,fwdrate=max,elapsed=4,interval=1\n"
    )
    done = _run(tmp_path, "--vdbench-output", "told", "--warmup", "0", text=text)
    assert done.returncode == 0, done.stderr
    files = _files(tmp_path)
    copies = {path.name for path in (tmp_path / "copies").rglob("*.file")}
    assert len(list((tmp_path / "copies").rglob("*.file"))) == 12
    assert copies == {Path(name).name for name in files}
    found = _counts(tmp_path, "run")
    size = sum(files.values())
    blocks = size // 4096
    assert found["fwd1 copy"] == (12, 0)
    assert found["fwd1 read"] == found["fwd1 write"] == (blocks, size)
    assert found["fwd1 open"][0] == found["fwd1 close"][0] == 24
    assert found["fwd2 read"][1] == size
    flat = (tmp_path / "told" / "flatfile.html").read_text().splitlines()
    (head,) = [line.split() for line in flat if line.split()[:2] == ["tod", "timestamp"]]
    average = next(line.split() for line in flat if re.search(r" rd1 +avg_", line))
    row = dict(zip(head, average, strict=True))
    assert float(row["rate"]) == float(row["Copy_rate"]) > 0
    again = _run(tmp_path, "--overwrite", "fsd1", text=text, name="again")
    assert again.returncode == 2, "the target holds files too"
