"""A study whose SAN is computed: planned, run, stopped, resumed and judged like any other, without a lab."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.conftest import COMMAND, TIMEOUT_S, environment, linerate

STUDY = """\
title = "Mirrors against parity"

[[san]]
topology = "two-members"
clock = "virtual"

[[workload]]
name = "random-1"
file = "raid/members.toml"
run = "random"
outstanding = 8
metric = "iops"
elapsed = "4s"
warm_up = "1s"

[baseline]
name = "parity"
settings = { array.raid_level = "raid50" }

[[case]]
name = "raid10"
settings = { array.raid_level = "raid10" }
claims = ["raid.random", "raid.capacity"]

[repeat]
blocks_min = 2
blocks_max = 2
settle = "0s"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "levels.toml"
    path.write_text(STUDY)
    return path


def test_the_plan_says_that_it_is_computed(file: Path) -> None:
    done = linerate("run", file, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "computed: lines and hosts have no part" in done.stdout
    plan = json.loads(linerate("run", file, "--dry-run", "--json").stdout)
    assert plan["most_s"] < 6 * 5, "less than the time that it models"


@pytest.mark.long
def test_it_is_stopped_resumed_and_judged(file: Path, tmp_path: Path) -> None:
    place = tmp_path / "out"
    command = [*COMMAND, "run", str(file), "--output", str(place)]
    nowhere = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=nowhere, stderr=nowhere, env=environment()) as process:
        _until_a_run_is_kept(place / "journal.jsonl")
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT_S) == 130
    status = json.loads(linerate("study", "status", place, "--json").stdout)
    assert status["state"] == "interrupted"
    kept = sum(block["measured"] for block in status["blocks"])
    assert 0 < kept < 6

    done = linerate("study", "resume", place)
    assert done.returncode == 0, done.stderr
    assert "is computed, in virtual time" in done.stdout
    assert json.loads(linerate("study", "status", place, "--json").stdout)["state"] == "complete"
    verdicts = json.loads(linerate("study", "verdict", place, "--json").stdout)
    (rate,) = (one for one in verdicts["effects"] if one["metric"] == "iops")
    assert rate["value"] > rate["baseline"]
    assert len({ratio for _, ratio in rate["points"]}) == 2, "blocks are not copies of each other"
    assert not verdicts["drifts"], "what is computed has no place in time"
    claims = {one["claim"]: one for one in verdicts["claims"]}
    assert claims["raid.capacity"]["verdict"] == "agrees"
    assert "raid.random" in claims
    report = (place / "report.html").read_text()
    assert "no line or host has a part" in report
    assert "computed in the modelled time of its disks" in report
    assert linerate("study", "check", place).returncode == 0


def _until_a_run_is_kept(journal: Path) -> None:
    for _ in range(int(TIMEOUT_S / 0.05)):
        if journal.is_file() and '"type":"step"' in journal.read_text().replace(" ", ""):
            return
        time.sleep(0.05)
    raise AssertionError("no run was over in time")


@pytest.mark.long
def test_the_anvil_like_set_runs_on_an_array_file_in_modelled_time(tmp_path: Path) -> None:
    array = tmp_path / "array.toml"
    array.write_text(
        'name = "a1"\n'
        '[[storage.disks]]\nname = "d"\nkind = "memory"\nsize = "4g"\nmodel = "sata_7200_3_5_512e"\ncount = 8\n'
        '[[storage.raid_sets]]\nname = "r0"\nlevel = "raid6"\ninitialise = "assume_clean"\n'
        f"disks = {[f'd{number}' for number in range(8)]}\n"
        '[[targets]]\nname = "iqn.2026-11.lab.linerate:a1"\n'
        '[[targets.volumes]]\nlun = 0\nname = "v1"\nkind = "raid"\nraid_set = "r0"\n'
    )
    done = linerate(
        "run", "--preset", "anvil", "--virtual-time", array, "--elapsed", "2", "--output", tmp_path / "run"
    )
    assert done.returncode == 0, done.stderr
    assert "computed in virtual time" in done.stdout
