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


@pytest.mark.parametrize("lines", JOBS, ids=lambda lines: lines.replace("\n", " "))
def test_as_many_ios_as_in_fio(lines: str, tmp_path: Path) -> None:
    (tmp_path / "w.fio").write_text(f"[global]\nfilename=x\nsize=1m\nbs=4k\n[a]\n{lines}\n")
    command = [need.tool("fio"), "--output-format=json", "w.fio"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd=tmp_path)
    theirs = totals(json.loads(done.stdout[done.stdout.index("{") :]))
    words = ("--overwrite", "all", "--output", "run", "--no-report", "--fio-json", "out.json")
    ran = linerate("run", "w.fio", *words, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    ours = totals(json.loads((tmp_path / "out.json").read_text()))
    if "rw=rw" in lines or "randrw" in lines:  # which I/O is a read is drawn by lot
        assert min(ours.values()) > 0
        ours, theirs = {"both": sum(ours.values())}, {"both": sum(theirs.values())}
    assert ours == theirs
