"""`linerate run --virtual-time`: minutes on modelled disks in seconds, marked as what they are."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from linerate.results import RunDirectory

from tests.cli.conftest import linerate

ARRAY = """\
name = "a1"

[[storage.disks]]
name = "d"
kind = "memory"
size = "8g"
model = "sas_10k_2_5"
count = 4

[[storage.raid_sets]]
name = "r0"
level = "raid10"
disks = ["d0", "d1", "d2", "d3"]
initialise = "assume_clean"

[[targets]]
name = "iqn.2026-11.lab.linerate:a1"

[[targets.volumes]]
lun = 0
name = "v0"
kind = "raid"
raid_set = "r0"
"""
WORKLOAD = """\
name = "oltp"
warm_up = "10s"
elapsed = "300s"
interval = "30s"

[[volume]]
name = "sd1"
outstanding = 8

[[stream]]
name = "oltp"
size = "8k"
read = 70

[[run]]
name = "first"
streams = "oltp"
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A workload file and an array file."""
    workload, array = tmp_path / "oltp.toml", tmp_path / "array.toml"
    workload.write_text(WORKLOAD, "ascii")
    array.write_text(ARRAY, "ascii")
    return workload, array


@pytest.mark.long
def test_five_minutes_take_seconds_and_the_result_says_so(files: tuple[Path, Path], tmp_path: Path) -> None:
    began = time.monotonic()
    workload, array = files
    done = linerate("run", workload, "--virtual-time", array, "--output", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began < 60
    assert "computed in virtual time" in done.stdout
    run = RunDirectory.open(tmp_path / "run")
    (step,) = run.manifest.steps
    assert step.facts["driver"] == "virtual"
    assert [volume["kind"] for volume in step.facts["volumes"]] == ["array"]
    assert run.manifest.validity is not None
    assert "virtual-time" in [finding.rule for finding in run.manifest.validity.findings]
    measured = run.measured_rows(step.key)
    # Four drives of 130 to 350 I/Os per second each; a write goes to two of them.
    assert 300 < measured["ios"].sum() / 300 < 1200
    disks = run.arrays.filter(part="disk")
    assert disks["name"].unique().sort().to_list() == ["d0", "d1", "d2", "d3"]
    assert disks.filter(name="d0")["writes"].sum() > 10_000


@pytest.mark.long
def test_one_seed_gives_one_result(files: tuple[Path, Path], tmp_path: Path) -> None:
    workload, array = files
    words = ("run", workload, "--virtual-time", array, "--elapsed", "60", "--no-report")
    ios = []
    for name in ("one", "two"):
        done = linerate(*words, "--output", tmp_path / name)
        assert done.returncode == 0, done.stderr
        run = RunDirectory.open(tmp_path / name)
        ios.append(run.measured_rows(run.manifest.steps[0].key)["service_sum_ns"].sum())
    assert ios[0] == ios[1]


def test_what_cannot_be_computed_is_refused(files: tuple[Path, Path], tmp_path: Path) -> None:
    workload, array = files
    array.write_text(ARRAY.replace('model = "sas_10k_2_5"\n', ""), "ascii")
    done = linerate("run", workload, "--virtual-time", array, cwd=tmp_path)
    assert done.returncode == 2
    assert "takes no time" in done.stderr
    assert "model" in done.stderr
    done = linerate("run", workload, "--virtual-time", array, "--hosts", "h1", cwd=tmp_path)
    assert done.returncode == 2
    assert "--hosts" in done.stderr
    done = linerate("run", workload, "--target", "array:v0", cwd=tmp_path)
    assert done.returncode == 2
    assert "virtual time only" in done.stderr
