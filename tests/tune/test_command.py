"""`linerate tune` as users start it, on drives in modelled time: nothing of it needs a network."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from linerate.errors import UserError
from linerate.study import StudyDirectory
from linerate.study.file.factored import load_factored
from linerate.tune.record import TuneRecord

from tests.cli.conftest import COMMAND, TIMEOUT_S, environment, linerate
from tests.support import need

STUDY = """\
title = "Drives"

[[san]]
topology = "eleven-drives"
clock = "virtual"

[[workload]]
name = "writes"
file = "anvil.toml"
run = "write-4k"
metric = "iops"
elapsed = "2s"
warm_up = "0s"

[baseline]
settings = { array.disk_size = "12g", array.disks = 10 }

[[case]]
name = "not run"
settings = { outstanding = 3 }

[repeat]
settle = "0s"
"""
SETTINGS = (
    *("--setting", "array.raid_level=raid5,raid10"),
    *("--setting", "outstanding=1,4"),
    *("--setting", "array.spares=0,1"),
)


@pytest.fixture
def study(tmp_path: Path) -> str:
    (tmp_path / "drives.toml").write_text(STUDY)
    return str(tmp_path / "drives.toml")


def test_the_plan_says_runs_time_power_and_what_cannot_be_together(study: str, tmp_path: Path) -> None:
    place = tmp_path / "out"
    forbidden = ("--forbid", "outstanding=4,array.spares=1")
    plan = linerate("tune", study, *SETTINGS, *forbidden, "--dry-run", "--output", str(place))
    assert plan.returncode == 0, plan.stderr
    assert "array.raid_level: raid5 against raid10" in plan.stdout
    assert "never together: outstanding=4 array.spares=1: forbidden by the user" in plan.stdout
    assert "never together: array.raid_level=raid10 array.spares=1" in plan.stdout  # ten drives left: RAID 10
    assert "found with a probability of 80 %" in plan.stdout
    assert "runs or more:" in plan.stdout
    assert not place.exists()
    machine = linerate("tune", study, *SETTINGS, "--dry-run", "--spread", "1", "--json")
    told = json.loads(machine.stdout)
    assert [stage["name"] for stage in told["stages"]] == ["screening", "confirmation"]


@pytest.mark.long
def test_a_search_is_confirmed_goes_on_where_it_was_and_keeps_the_directory(
    study: str, tmp_path: Path
) -> None:
    place = tmp_path / "out"
    two = (
        "--setting",
        "array.disks=10,11",
        "--setting",
        "outstanding=1,2,4",
        "--blocks",
        "2",
        "--confirm",
        "5",
    )
    done = linerate("tune", study, *two, "--spread", "3", "--output", str(place), "--json")
    assert done.returncode == 0, done.stderr
    last = json.loads(done.stdout.splitlines()[-1])
    assert last["settings"] == {"outstanding": 4}
    assert last["confirmed"]["verdict"] == "better"
    assert last["confirmed"]["low"] > 1.5
    assert last["screening"]["note"] == "used for the choice, not a result"
    assert Path(last["report"]).is_file()
    stages = sorted(path.name for path in place.iterdir() if path.is_dir())
    assert stages == ["1-screening", "2-levels", "3-confirmation"]
    assert {case.name for case in StudyDirectory.open(place / stages[-1]).study.cases} == {
        "baseline",
        "tuned",
    }
    again = linerate("tune", study, *two, "--output", str(place))
    assert again.returncode != 0
    assert f"go on with: linerate tune {place}" in again.stderr
    changed = linerate("tune", str(place), "--blocks", "3")
    assert changed.returncode == 2
    assert "--blocks: " in changed.stderr
    # The last stage is lost half way: only its missing runs are made again.
    journal = place / "3-confirmation" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:5]))
    untouched = (place / "1-screening" / "journal.jsonl").read_bytes()
    resumed = linerate("tune", str(place), "--json")
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads(resumed.stdout.splitlines()[-1])["settings"] == {"outstanding": 4}
    assert (place / "1-screening" / "journal.jsonl").read_bytes() == untouched
    assert journal.read_bytes().startswith(b"".join(lines[:5]))
    assert TuneRecord.open(place).effort.blocks == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "no settings to tune"),
        (("--setting", "outstanding"), "--setting outstanding: no values"),
        (("--setting", "outstanding=4"), "needs two values that differ"),
        (("--setting", "outstanding=1,x"), "outstanding: 'x' is not a number"),
        (("--setting", "array.disks=10,8", "--setting", "array.disks=10,9"), "is given twice"),
        (("--setting", "outstanding=1,4", "--forbid", "mtu=9000"), "--forbid mtu=9000: mtu is not tuned"),
        (("--setting", "outstanding=1,4", "--forbid", "outstanding=9"), "outstanding never has this value"),
        (("--setting", "outstanding=1,4", "--workload", "reads"), "there is no such workload"),
        (("--setting", "array.disks=11,2"), "setting array.disks"),
        (("--setting", "outstanding=1,4", "--setting", "toe=on,off"), "toe cannot be set in eleven-drives"),
    ],
)
def test_mistakes_are_told(study: str, options: tuple[str, ...], message: str) -> None:
    done = linerate("tune", study, *options)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert "->" in done.stderr


def test_a_full_disk_is_told(study: str, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    words = (*COMMAND, "tune", study, *SETTINGS, "--output", str(small / "out"))
    script = 'mount -t tmpfs -o size=4k none "$0" && exec "$@"'
    command = [*need.unshare("--mount"), "sh", "-c", script, str(small), *words]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=TIMEOUT_S, env=environment(), check=False
    )
    assert done.returncode == 1
    assert "tune.json: no space left on the disk" in done.stderr
    assert "-> make room there, or write elsewhere" in done.stderr


def test_a_misspelt_factor_is_told_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "drives.toml"
    file.write_text(f"{STUDY}\n[factors]\noutstanding = [1, 4]\noutstandin = [1, 4]\n")
    with pytest.raises(UserError, match="factors: there is no setting 'outstandin'") as caught:
        load_factored(file, {})
    assert caught.value.message.startswith(f"{file}:{len(file.read_text().splitlines())}: ")
    assert "did you mean outstanding" in caught.value.hint


def test_a_study_without_factors_says_what_its_cases_change() -> None:
    with pytest.raises(UserError, match="no settings to tune") as caught:
        load_factored("nagle", {})
    assert "the file's cases change nagle (`linerate settings nagle` shows its values)" in caught.value.hint


def test_the_example_of_the_page_can_be_planned(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/tune.md").read_text()
    example = page.partition("## An example in modelled time")[2]
    (tmp_path / "drives.toml").write_text(example.partition("```toml\n")[2].partition("```")[0])
    plan = linerate("tune", str(tmp_path / "drives.toml"), "--pilot", "2", "--dry-run")
    assert plan.returncode == 0, plan.stderr
    for line in plan.stdout.splitlines()[:8]:
        assert line in page
