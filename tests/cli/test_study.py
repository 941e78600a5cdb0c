"""`linerate study` and `linerate run STUDY.toml` as users meet them; what needs a virtual SAN is in tests/study."""

from __future__ import annotations

import json
import shutil
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


@pytest.mark.long
def test_progress_as_json_is_one_object_per_line(file: Path, tmp_path: Path) -> None:
    done = linerate("study", "run", file, "--output", tmp_path / "out", "--json")
    types = [json.loads(line)["type"] for line in done.stdout.splitlines()]
    assert (types[0], types[-1]) == ("study", "verdicts")
    assert types.count("step") == 6


@pytest.mark.long
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
    assert "2 blocks show a change of" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["depth.toml"]


RAID_10 = """
[[switch]]
name = "sw1"

[[host]]
name = "h1"
port = [{ name = "p0", switch = "sw1" }]

[[array]]
name = "a1"
port = [{ name = "p0", switch = "sw1" }]
storage = { disks = 4, disk_size = "1g", sets = 1, raid_level = "raid10" }
volume = [{ name = "v1", size = "64m" }]
"""


def test_a_case_whose_disks_form_no_raid_set_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "r10.toml").write_text(RAID_10)
    (tmp_path / "load.vdb").write_text(
        "sd=sd1,lun=/dev/x\nwd=wd1,sd=sd1,xfersize=4k,rdpct=100\nrd=rd1,wd=wd1,iorate=max,elapsed=2,interval=1\n"
    )
    san = STUDY[STUDY.index("[[san]]") : STUDY.index("[[workload]]")]
    text = STUDY.replace(san, '[[san]]\ntopology = "r10.toml"\n\n').replace('run = "1m-seq-read"\n', "")
    text = text.replace("dlink.toml", "load.vdb").replace("outstanding = 8", "array.disks = 2")
    (tmp_path / "disks.toml").write_text(text)
    line = 1 + text.split("\n").index("[[case]]")
    for words in (("--dry-run",), ("--output", "out")):
        done = linerate("run", "disks.toml", *words, cwd=tmp_path)
        assert done.returncode == 2
        assert (
            f"disks.toml:{line}: case[0]: under read: the disks of a1: RAID 10 needs at least 4"
            in done.stderr
        )
        assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


# Longest by the plan, in minutes; of nic-tuning a third is not applicable on a virtual SAN.
QUICK_MIN = {
    "nic-tuning": 25,
    "nagle": 11,
    "flow-control": 5,
    "converged": 5,
    "mtu-offload": 5,
    "dsn-sessions": 7,
    "mpio-layouts": 9,
    "path-faults": 6,
    "fabrics": 5,
    "raid-levels": 6,
    "sector-size": 7,
    "replication": 4,
    "scale-threads": 7,
    "scale-servers": 6,
    "virtualized": 10,
}


@pytest.mark.parametrize("name", QUICK_MIN)
def test_shipped_studies_are_found_by_name_and_quick_ones_are_short(name: str) -> None:
    done = linerate("run", name, "--dry-run", "--quick", "--json")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert plan["most_s"] <= QUICK_MIN[name] * 60
    assert plan["study"]["claims"] or name == "fabrics", "a published study tests claims"
    assert linerate("run", f"studies/{name}.toml", "--dry-run").returncode == 0


def test_a_dry_run_of_a_workload_shows_its_runs() -> None:
    done = linerate("run", "--preset", "dlink", "--map", "*=null:1g", "--dry-run")
    assert done.stdout.splitlines()[-1] == "2 runs, 2 min"


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


@pytest.mark.long
def test_a_study_that_lacks_a_run_is_called_incomplete_everywhere(file: Path, tmp_path: Path) -> None:
    place = tmp_path / "out"
    linerate("run", file, "--output", place)
    journal = place / "journal.jsonl"
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    lost = next(line for line in lines if line["type"] == "step" and line["case"] == "deep")
    lost |= {"state": "failed", "reason": "the array went away", "values": {}}
    lines[-1] |= {"state": "incomplete", "reason": f"no run of {lost['key']}: the array went away"}
    journal.write_text("".join(f"{json.dumps(line)}\n" for line in lines))

    verdict = linerate("study", "verdict", place)
    assert verdict.returncode == 1
    assert f"no run of {lost['key']}: the array went away" in verdict.stderr
    shown = json.loads(linerate("study", "verdict", place, "--json").stdout)
    assert (shown["state"], shown["missing"]) == (
        "incomplete",
        [f"{lost['key']}: the array went away"],
    )
    status = json.loads(linerate("study", "status", place, "--json").stdout)
    assert (status["state"], list(status["missing"])) == ("incomplete", [lost["key"]])
    check = linerate("study", "check", place)
    assert (check.returncode, "no run of it" in check.stdout) == (1, True)
    assert linerate("study", "resume", place).returncode == 0
    assert linerate("study", "check", place).returncode == 0


@pytest.mark.long
def test_check_names_a_run_directory_that_is_gone(file: Path, tmp_path: Path) -> None:
    place = tmp_path / "out"
    linerate("run", file, "--output", place)
    shutil.rmtree(next((place / "runs").iterdir()))
    done = linerate("study", "check", place)
    assert done.returncode == 1
    assert "its run directory is gone" in done.stdout
    assert json.loads(linerate("study", "check", place, "--json").stdout)["damaged"]


@pytest.mark.long
def test_check_of_a_study_that_has_measured_nothing_says_so(file: Path, tmp_path: Path) -> None:
    place = tmp_path / "out"
    linerate("run", file, "--output", place)
    (place / "journal.jsonl").write_text("")
    done = linerate("study", "check", place)
    assert done.returncode == 1
    assert "nothing has been measured" in done.stdout


def test_blocks_are_as_many_as_asked_for(file: Path) -> None:
    plan = json.loads(linerate("run", "--dry-run", "--blocks", "5", "--json", file).stdout)
    assert len(plan["blocks"]) == 5
    assert linerate("run", "--blocks", "5", "x.vdb").returncode == 2
