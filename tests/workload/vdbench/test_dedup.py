"""dedupratio= and what belongs to it: what the file asks for, and how many different units are then on the volume."""

from __future__ import annotations

import hashlib
import zlib
from pathlib import Path

import pytest
from linerate.errors import UserError
from linerate.workload import Overrides, RunPlan
from linerate.workload.spec import DedupSpec

from tests.cli.conftest import linerate
from tests.workload.conftest import Read

BASE = "sd=sd1,lun=null:8m\nsd=sd2,lun=null:8m\nwd=wd1,sd=sd*,rdpct=0\nrd=rd1,wd=wd1,elapsed=4,interval=1\n"
UNIT_BYTES = 4096
COMMAND = ("run", "w.vdb", "--overwrite", "sd1", "--warmup", "0", "--no-report")


def _dedup(plan: RunPlan) -> DedupSpec | None:
    return next(plan.steps()).spec.streams[0].dedup


@pytest.mark.parametrize(
    ("general", "expected"),
    [
        ("", None),
        ("dedupratio=1,dedupunit=8k", None),
        ("dedupratio=2,dedupunit=8k", DedupSpec(ratio=2, unit_bytes=8192)),
        ("dedupratio=2.5,dedupunit=512,dedupsets=10%", DedupSpec(ratio=2.5, unit_bytes=512, sets_percent=10)),
        ("dedupratio=3,dedupunit=4k,dedupsets=100", DedupSpec(ratio=3, unit_bytes=4096, sets=50)),
    ],
)
def test_what_a_file_asks_for(read: Read, general: str, expected: DedupSpec | None) -> None:
    assert _dedup(read(general + "\n" + BASE, overrides=Overrides())) == expected


def test_reads_and_specs_without_duplicates_have_none(read: Read) -> None:
    text = "dedupratio=2,dedupunit=8k\n" + BASE.replace("rdpct=0", "rdpct=100")
    (run,) = read(text, overrides=Overrides()).steps()
    assert run.spec.streams[0].dedup is None
    assert "dedup" not in run.spec.streams[0].model_dump()


@pytest.mark.parametrize(
    ("general", "told"),
    [
        ("dedupratio=2", "dedupratio=2: needs dedupunit= too"),
        ("dedupunit=4k", "dedupunit=4k: needs dedupratio= too"),
        ("dedupsets=5%", "dedupsets=5%: needs dedupratio= too"),
        ("dedupratio=2,dedupunit=1000", "not a multiple of 512"),
        ("dedupratio=2,dedupunit=32m", "dedupunit=32m: out of range"),
        ("dedupratio=0.5,dedupunit=4k", "dedupratio=0.5: out of range"),
        ("dedupratio=2,dedupunit=4k,dedupsets=0", "not a number of sets"),
        ("dedupratio=2,dedupunit=4k,deduphotsets=(1,2)", "deduphotsets"),
        ("dedupratio=2,dedupunit=4k,validate=yes", "data with duplicates cannot be checked"),
    ],
)
def test_what_is_wrong_is_told(read: Read, general: str, told: str) -> None:
    with pytest.raises(UserError) as caught:
        read(general + "\n" + BASE, overrides=Overrides())
    assert told in caught.value.message


@pytest.mark.parametrize(("ratio", "sets"), [(2.0, ""), (5.0, ",dedupsets=2%")])
def test_a_filled_volume_has_the_ratio(tmp_path: Path, ratio: float, sets: str) -> None:
    text = (
        f"dedupratio={ratio:g},dedupunit=4k{sets}\ncompratio=2\nsd=sd1,lun={tmp_path}/disk,size=16m,threads=4\n"
        "wd=wd1,sd=sd1,rdpct=0,xfersize=16k,seekpct=eof\nrd=rd1,wd=wd1,iorate=max,elapsed=30,interval=1\n"
    )
    (tmp_path / "w.vdb").write_text(text, "ascii")
    for run in ("first", "again"):
        done = linerate(*COMMAND, "--output", run, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        content = (tmp_path / "disk").read_bytes()
        units = [content[at : at + UNIT_BYTES] for at in range(0, len(content), UNIT_BYTES)]
        different = len({hashlib.sha256(unit).digest() for unit in units})
        assert len(units) / different == pytest.approx(ratio, rel=0.06)
        compressed = sum(len(zlib.compress(unit, 1)) for unit in units[:500]) / (500 * UNIT_BYTES)
        assert compressed == pytest.approx(0.5, abs=0.03)
