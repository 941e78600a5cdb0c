"""`linerate study` and `linerate run STUDY.toml` as users meet them; what needs a virtual SAN is in tests/study."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import linerate

STUDY = """\
title = "Depth on this machine"

[[san]]
name = "here"

[[san.host]]
name = "me"
devices = ["lo"]
volumes = ["null:67108864", "null:67108864", "null:67108864", "null:67108864"]

[[workload]]
name = "read"
file = "dlink.toml"
run = "1m-seq-read"
metric = "mib_s"
elapsed = "0.4s"
warm_up = "0s"

[baseline]
settings = { outstanding = 4 }

[[case]]
name = "deep"
settings = { outstanding = 8 }

[[case]]
name = "offload"
settings = { toe = "on" }

[repeat]
blocks_min = 2
blocks_max = 2
settle = "0s"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "depth.toml"
    path.write_text(STUDY)
    return path


def test_a_study_runs_from_file_to_verdicts_and_report(file: Path, tmp_path: Path) -> None:
    place = tmp_path / "out"
    done = linerate("run", file, "--output", place)
    assert done.returncode == 0, done.stderr
    assert "offload on here: not applicable: toe" in done.stdout
    assert "deep" in done.stdout
    assert (place / "report.html").stat().st_size > 10_000
    assert len(list((place / "runs").iterdir())) == 6

    status = json.loads(linerate("study", "status", place, "--json").stdout)
    assert status["state"] == "complete"
    assert status["blocks"] == [{"block": n, "measured": 3, "planned": 3} for n in (1, 2)]
    assert linerate("study", "check", place).returncode == 0
    verdicts = json.loads(linerate("study", "verdict", place, "--json").stdout)
    assert {effect["case"] for effect in verdicts["effects"]} == {"deep"}
    resumed = linerate("study", "resume", place)
    assert resumed.returncode == 0, resumed.stderr
    assert len(list((place / "runs").iterdir())) == 6


def test_progress_as_json_is_one_object_per_line(file: Path, tmp_path: Path) -> None:
    done = linerate("study", "run", file, "--output", tmp_path / "out", "--json")
    types = [json.loads(line)["type"] for line in done.stdout.splitlines()]
    assert (types[0], types[-1]) == ("study", "verdicts")
    assert types.count("step") == 6


def test_check_names_what_was_changed_since_it_was_measured(file: Path, tmp_path: Path) -> None:
    place = tmp_path / "out"
    linerate("study", "run", file, "--output", place)
    spoilt = next((place / "runs").iterdir()) / "latency.hlog"
    spoilt.chmod(0o644)
    spoilt.write_text("gone")
    done = linerate("study", "check", place)
    assert done.returncode == 1
    assert "changed or damaged" in done.stdout


@pytest.mark.parametrize("words", [("run", "--dry-run"), ("study", "plan")])
def test_a_plan_is_shown_with_its_duration_and_starts_nothing(
    words: tuple[str, ...], file: Path, tmp_path: Path
) -> None:
    done = linerate(*words, file, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "case deep: outstanding 8" in done.stdout
    assert "2 blocks: " in done.stdout
    assert "certainty: 2 blocks show large effects only" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["depth.toml"]


@pytest.mark.parametrize("name", ["nic-tuning", "flow-control", "converged", "mtu-offload", "fabrics"])
def test_shipped_studies_are_found_by_name_and_quick_ones_are_short(name: str) -> None:
    done = linerate("run", name, "--dry-run", "--quick", "--json")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert plan["most_s"] < 15 * 60
    assert plan["study"]["claims"] or name == "fabrics", "a published study tests claims"
    assert linerate("run", f"studies/{name}.toml", "--dry-run").returncode == 0


def test_a_dry_run_of_a_workload_shows_its_runs() -> None:
    done = linerate("run", "--preset", "dlink", "--map", "*=null:1g", "--dry-run")
    assert done.stdout.splitlines()[-1] == "2 runs, 140 s"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "--preset", "dlink", "--map", "*=null:1g", "--quick"), "--quick goes with a study"),
        (("run", "nic-tuning", "other.toml"), "nic-tuning is a study"),
        (("study", "run", "nic-tunning"), "nic-tunning: no such study"),
        (("study", "status", "nowhere"), "nowhere is not a study directory"),
        (("study", "resume", "nowhere"), "nowhere is not a study directory"),
    ],
)
def test_mistakes_end_with_2_and_say_what_is_wrong(words: tuple[str, ...], message: str) -> None:
    done = linerate(*words)
    assert done.returncode == 2
    assert message in done.stderr
