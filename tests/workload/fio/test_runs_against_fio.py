"""The same job run by fio and by Linerate: as many reads and writes, and data that both find right."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import linerate
from tests.support import need

JOBS = (
    "rw=read",
    "rw=write\nnumjobs=2",
    "rw=randread\nloops=3",
    "rw=randwrite\nio_size=300k",
    "rw=write:8k",
    "rw=read:4k",
    "rw=read:2k\nbs=8k",
    "rw=randread:8\nnumber_ios=77",
    "rw=rw",
    "rw=randrw\nrwmixread=70\nnumjobs=3",
    "rw=randwrite\nthinktime=100\nsize=200k",
    "rw=write\nverify=crc32c\nbs=16k",
    "rw=randwrite\nverify=md5",
    "rw=randwrite\nverify=md5\ndo_verify=0",
)


def totals(document: dict[str, Any]) -> dict[str, int]:
    return {op: sum(job[op]["total_ios"] for job in document["jobs"]) for op in ("read", "write")}


def both(text: str, folder: Path) -> tuple[dict[str, int], dict[str, int]]:
    """I/Os by direction, of fio and of Linerate."""
    (folder / "w.fio").write_text(text)
    command = [need.tool("fio"), "--output-format=json", "w.fio"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd=folder)
    words = ("--overwrite", "all", "--output", "run", "--no-report", "--fio-json", "out.json")
    ran = linerate("run", "w.fio", *words, cwd=folder)
    assert ran.returncode == 0, ran.stderr
    theirs = totals(json.loads(done.stdout[done.stdout.index("{") :]))
    return theirs, totals(json.loads((folder / "out.json").read_text()))


@pytest.mark.parametrize("lines", JOBS, ids=lambda lines: lines.replace("\n", " "))
def test_as_many_ios_as_in_fio(lines: str, tmp_path: Path) -> None:
    theirs, ours = both(f"[global]\nfilename=x\nsize=1m\nbs=4k\n[a]\n{lines}\n", tmp_path)
    if "rw=rw" in lines or "randrw" in lines:  # which I/O is a read is drawn by lot
        assert min(ours.values()) > 0
        ours, theirs = {"both": sum(ours.values())}, {"both": sum(theirs.values())}
    assert ours == theirs


@pytest.mark.parametrize("form", ["write", "randread", "randwrite"])
def test_a_warm_up_takes_its_part_of_the_amount(form: str, tmp_path: Path) -> None:
    text = f"[a]\nfilename=x\nrw={form}\nsize=1m\nbs=4k\nrate_iops=200\nramp_time=640ms\nnorandommap\n"
    theirs, ours = both(text, tmp_path)
    assert sum(ours.values()) == pytest.approx(sum(theirs.values()), abs=15)
    assert sum(ours.values()) == pytest.approx(256 - 0.64 * 200, abs=15)
