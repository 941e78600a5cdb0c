"""`linerate scale` as a user calls it, on modelled disks and on null volumes."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest
from linerate.results import RunDirectory

from tests.cli.conftest import COMMAND, TIMEOUT_S, environment, linerate

READS = """
name = "reads"
elapsed = "{elapsed}"
warm_up = "{warm_up}"
interval = "{warm_up}"

[[volume]]
name = "v{{n}}"
count = {volumes}

[[stream]]
name = "reads"
size = "4k"
{more}
"""


def workload(
    folder: Path, elapsed: str = "20s", warm_up: str = "5s", volumes: int = 1, more: str = ""
) -> str:
    file = folder / "reads.toml"
    file.write_text(READS.format(elapsed=elapsed, warm_up=warm_up, volumes=volumes, more=more))
    return str(file)


@pytest.fixture
def drives(tmp_path: Path) -> str:
    """Modelled drives in RAID 10."""
    text = linerate("array", "examples", "drives").stdout
    (tmp_path / "drives.toml").write_text(text)
    return str(tmp_path / "drives.toml")


@pytest.mark.long
def test_threads_on_modelled_drives(tmp_path: Path, drives: str) -> None:
    file, output = workload(tmp_path), tmp_path / "out"
    options = ("--virtual-time", drives, "--target", "array:on-raid10", "--until", "mean=20ms")
    done = linerate("scale", file, *options, "--output", str(output), "--json")
    assert done.returncode == 0, done.stderr
    *runs, answer = (json.loads(line) for line in done.stdout.splitlines())
    assert answer["schema"] == "linerate.scale/1"
    assert answer["runs"] == len(runs)
    assert answer["kept"] < answer["missed"] <= answer["kept"] + 4
    for run in runs:
        if run["purpose"] == "headroom":
            continue
        if run["load"] <= answer["kept"]:
            assert run["response_ms"] < 20.5
        if run["load"] >= answer["missed"]:
            assert run["response_ms"] > 19.5
        (step,) = RunDirectory.open(Path(run["directory"])).manifest.steps
        assert step.state == "complete"
    assert answer["laws"]["universal"]["a"] > 0
    demands_s = answer["laws"]["network"]["demands_s"]
    assert {name.split()[0] for name in demands_s} == {"disk"}
    largest = max(run["load"] for run in runs)
    most = max(run["iops"] for run in runs if run["purpose"] == "up")
    assert 1 / max(demands_s.values()) > 0.99 * most, "no disk does more than it can"
    assert answer["laws"]["expected"]["load"] == 2 * largest
    assert answer["laws"]["expected"]["low"] > 0.9 * most
    assert [row["share_percent"] for row in answer["headroom"]] == [70, 80, 90]
    for row in answer["headroom"]:
        assert row["mean_ms"]["low"] < row["mean_ms"]["centre"] < answer["limit_ms"], (
            "bursts of Poisson are short"
        )
        assert row["iops"] == pytest.approx(row["asked_iops"], rel=0.05)
        assert row["standing"] == "below"
    assert [run["load"] for run in runs if run["purpose"] == "down"] == [
        one["load"] for one in answer["down"]
    ]
    assert not any(one["differs"] for one in answer["down"]), "each run has new disks"
    assert Path(answer["report"]).read_text().count("kept") > 3
    again = linerate("report", str(output))
    assert "Largest load: " in again.stdout
    assert "Headroom: shares of the rate" in again.stdout
    refused = linerate("report", str(output), "--vdbench-output", str(tmp_path / "vdbench"))
    assert refused.returncode == 2
    assert "a search has no vdbench output" in refused.stderr


@pytest.mark.long
def test_an_interrupted_search_says_what_is_kept(tmp_path: Path) -> None:
    words = ("scale", workload(tmp_path, elapsed="0.5s", warm_up="0.1s"), "--target", "null:1g")
    command = [*COMMAND, *words, "--output", "out", "--most", "64"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=tmp_path, env=environment()
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        process.send_signal(signal.SIGINT)
        lines += process.stdout.readlines()
        assert process.wait(TIMEOUT_S) == 130
    assert lines[-1] == "interrupted; the runs so far are kept: linerate report out\n"
    shown = linerate("report", "out", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr


def test_a_directory_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    output = tmp_path / "out"
    output.mkdir()
    (output / "scale.json").write_text("mine")
    done = linerate("scale", workload(tmp_path), "--target", "null:1g", "--output", str(output))
    assert done.returncode == 2
    assert f"{output} is not empty" in done.stderr
    assert [(path.name, path.read_text()) for path in output.iterdir()] == [("scale.json", "mine")]


@pytest.mark.long
def test_the_answer_in_words(tmp_path: Path, drives: str) -> None:
    file = workload(tmp_path)
    options = ("--virtual-time", drives, "--target", "array:on-raid10", "--output", str(tmp_path / "out"))
    kept = linerate("scale", file, *options, "--until", "mean=10s", "--most", "4")
    assert "at least 4 threads with a mean of 10000 ms" in kept.stdout
    missed = linerate(
        "scale", file, *options[:-1], str(tmp_path / "two"), "--until", "mean=1ms", "--most", "4"
    )
    assert "Even the smallest load, 1 thread, misses a mean of 1 ms" in missed.stdout
    plan = linerate("scale", file, *options[:-1], str(tmp_path / "three"), "--dry-run")
    assert "from 1 to 256" in plan.stdout
    assert "up to 4 on the way down, up to 18 for headroom" in plan.stdout
    less = ("--no-headroom", "--no-down", "--dry-run")
    shorter = linerate("scale", file, *options[:-1], str(tmp_path / "four"), *less)
    assert "way down" not in shorter.stdout
    assert "headroom" not in shorter.stdout
    assert not (tmp_path / "three").exists()


@pytest.mark.long
def test_volumes_and_rate(tmp_path: Path) -> None:
    file = workload(tmp_path, "0.2s", "0.1s", volumes=4)
    common = ("--target", "null:64m", "--until", "p99=1s", "--json")
    volumes = linerate(
        "scale", file, *common, "--over", "volumes", "--most", "4", "--output", str(tmp_path / "v")
    )
    assert volumes.returncode == 0, volumes.stderr
    assert json.loads(volumes.stdout.splitlines()[-1])["kept"] == 4
    options = ("--over", "rate", "--least", "100", "--most", "400", "--output", str(tmp_path / "r"))
    rate = linerate("scale", file, *common, *options)
    assert rate.returncode == 0, rate.stderr
    *runs, answer = (json.loads(line) for line in rate.stdout.splitlines())
    assert answer["kept"] == 400
    assert all(0.5 * run["load"] < run["iops"] < 1.5 * run["load"] for run in runs)


@pytest.mark.parametrize(
    ("more", "options", "words"),
    [
        ("", ("--until", "20ms"), "no threshold"),
        ("", ("--least", "9", "--most", "8"), "loads from 9 to 8"),
        ("", ("--over", "volumes", "--most", "9"), "the workload has 2"),
        ("[sweep]\nread = [0, 100]", (), "2 steps"),
        ("[[run]]\nname = 'r'\nrate = 100", (), "rate of its own"),
    ],
)
def test_bad_requests(tmp_path: Path, more: str, options: tuple[str, ...], words: str) -> None:
    file = workload(tmp_path, volumes=2, more=more)
    done = linerate("scale", file, "--target", "null:64m", *options)
    assert done.returncode == 2
    assert words in done.stderr
    assert "->" in done.stderr


def test_what_would_be_lost_is_refused_before_the_first_run(tmp_path: Path) -> None:
    mail = tmp_path / "mail"
    mail.write_bytes(b"mail of a user\n" * 100_000)
    file = workload(tmp_path, more="read = 0")
    done = linerate("scale", file, "--target", str(mail), "--most", "2", "--output", str(tmp_path / "out"))
    assert done.returncode == 2
    assert "--overwrite" in done.stderr
    assert not (tmp_path / "out").exists()
    assert mail.read_bytes().startswith(b"mail of a user")
