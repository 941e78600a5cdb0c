"""`linerate run FILE.icf`: it runs, asks before it overwrites, and writes results in Iometer's form."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from linerate.array import EmbeddedArray
from linerate.array.config import ArrayConfig, TargetConfig, VolumeConfig
from linerate.results import RunDirectory

from tests.cli.conftest import linerate

from .writer import Icf, Spec, Work

SPECS = (
    Spec("4k random", ((4096, 100, 67, 100, 0, 1, 4096, 0),)),
    Spec("64k reads", ((65536, 100, 100, 0, 0, 1, 0, 0),)),
)
CONFIG = Icf(
    SPECS, [Work(name, ("4k random", "64k reads"), ("x", "y"), outstanding=3) for name in ("a", "b")], run_s=1
)
QUICK = ("--elapsed", "0.3", "--no-report", "--output", "run")


def rows(path: Path) -> list[dict[str, str]]:
    """The rows of all blocks."""
    lines = path.read_text().splitlines()
    header = next(line for line in lines if line.startswith("'Target Type")).removeprefix("'")
    kinds = ("ALL,", "MANAGER,", "WORKER,", "DISK,")
    return list(csv.DictReader([header, *(line for line in lines if line.startswith(kinds))]))


@pytest.mark.long
def test_a_configuration_runs_and_its_results_are_iometers_csv(tmp_path: Path) -> None:
    (tmp_path / "w.icf").write_text(CONFIG.text())
    words = ("--target", "null:64m", "--overwrite", "all", "--iometer-csv", "out.csv")
    done = linerate("run", "w.icf", *words, *QUICK, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    run = RunDirectory.open(tmp_path / "run")
    assert [step.label for step in run.manifest.steps] == ["4k random", "64k reads"]
    assert [step.spec["volumes"][0]["outstanding"] for step in run.manifest.steps] == [6, 6]
    found = rows(tmp_path / "out.csv")
    worker = ["WORKER", "DISK", "DISK"]
    assert [row["Target Type"] for row in found] == ["ALL", "MANAGER", *worker, *worker] * 2
    assert [row["Target Name"] for row in found[1:8]] == ["HOST1", "a", "x", "y", "b", "x", "y"]
    assert {row["Queue Depth"] for row in found} == {"3"}
    assert [row["Access Specification Name"] for row in found if row["Target Type"] == "ALL"] == [
        "4k random",
        "64k reads",
    ]
    again = linerate("report", "run", "--iometer-csv", "again.csv", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "out.csv").read_bytes()


def test_the_plan_is_shown_without_a_run(tmp_path: Path) -> None:
    (tmp_path / "w.icf").write_text(CONFIG.text())
    done = linerate("run", "w.icf", "--target", "null:64m", "--dry-run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "disk1" in done.stdout
    assert "2 runs" in done.stdout


def test_data_is_not_overwritten_without_consent(tmp_path: Path) -> None:
    data = bytes(range(256)) * (4 << 12)
    (tmp_path / "disk.img").write_bytes(data)
    (tmp_path / "w.icf").write_text(CONFIG.text())
    done = linerate(
        "run", "w.icf", "--map", "disk1=disk.img", "--map", "disk2=null:64m", *QUICK, cwd=tmp_path
    )
    assert done.returncode == 2
    assert "disk1" in done.stderr
    assert "overwrite" in done.stderr
    assert (tmp_path / "disk.img").read_bytes() == data


def test_a_refusal_has_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "w.icf").write_text(CONFIG.text()[:-200])
    done = linerate("run", "w.icf", "--target", "null:64m", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("linerate: w.icf:")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("align", "code"), [(0, 2), (4096, 0)])
def test_sectors_of_4096_bytes_get_no_misaligned_ios(tmp_path: Path, align: int, code: int) -> None:
    spec = Spec("4k", ((4096, 100, 100, 100, 0, 1, align, 0),))
    (tmp_path / "w.icf").write_text(Icf((spec,), run_s=1).text())
    volume = VolumeConfig(lun=0, name="v", size_bytes=16 << 20, sector_bytes=4096)
    target = TargetConfig(name="iqn.2026-11.lab.linerate:blocks", volumes=(volume,))
    with EmbeddedArray(ArrayConfig(name="blocks", portals=("127.0.0.1:0",), targets=(target,))) as array:
        done = linerate("run", "w.icf", "--target", array.url(0), *QUICK, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    if code:
        assert "align_bytes 512 is not a multiple of the volume's blocks (4096 bytes)" in done.stderr
        assert "a volume with 4096-byte sectors refuses it: write 4096 as align" in done.stdout + done.stderr
