"""`linerate run`: from a workload file to a closed run directory, for people, pipes and programs."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import time
from pathlib import Path

import pytest
from linerate.array import EmbeddedArray
from linerate.cli.view.events import LINES, IntervalMeasured, RunEnded, RunStarted, StepEnded, StepStarted
from linerate.results import RunDirectory

from tests.cli.conftest import COMMAND, TIMEOUT_S, environment, linerate
from tests.support.loop import block_device

WORKLOAD = """\
name = "mixed"
warm_up = "0s"
elapsed = "0.4s"
interval = "0.1s"

[[volume]]
name = "v{n}"
count = 2
outstanding = 4

[[stream]]
name = "oltp"
size = "8k"
read = 67

[[run]]
name = "first"
streams = "oltp"
"""
ESCAPE = "\x1b"


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    """Two volumes under a mixed stream for a second."""
    path = tmp_path / "mixed.toml"
    path.write_text(WORKLOAD, "ascii")
    return path


def _target(array: EmbeddedArray) -> str:
    return array.url("{n-1}")


def test_a_run_leaves_a_complete_run_directory(workload: Path, array: EmbeddedArray, tmp_path: Path) -> None:
    done = linerate("run", workload, "--target", _target(array), "--output", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    run = RunDirectory.open(tmp_path / "run")
    assert run.manifest.state == "complete"
    assert [step.state for step in run.manifest.steps] == ["complete"]
    assert (tmp_path / "run" / "report.html").stat().st_size < 1_500_000
    assert run.intervals["ios"].sum() > 0
    assert f"report: {tmp_path / 'run' / 'report.html'}" in done.stdout


def test_a_path_over_an_interface_that_is_not_here_is_refused(
    workload: Path, array: EmbeddedArray, tmp_path: Path
) -> None:
    host, port = array.portals[0]
    path = ("--path", f"nosuch0 -> {host}:{port}")
    done = linerate("run", workload, "--target", _target(array), *path, "--no-report", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "this host has no interface nosuch0" in done.stderr
    assert "name one of " in done.stderr


def test_a_pipe_gets_plain_lines(workload: Path, tmp_path: Path) -> None:
    done = linerate("run", workload, "--target", "null:1g", "--no-report", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert ESCAPE not in done.stdout
    assert "Starting RD=first" in done.stdout
    assert re.search(r"^ +4 +\d+\.\d ", done.stdout, re.MULTILINE), done.stdout
    assert re.search(r"^ +avg_1-4 +\d+\.\d ", done.stdout, re.MULTILINE), done.stdout


def test_json_lines_follow_the_schema(workload: Path, tmp_path: Path) -> None:
    done = linerate("run", workload, "--target", "null:1g", "--json", "--no-report", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    events = [LINES.validate_json(line) for line in done.stdout.splitlines()]
    kinds = [type(event) for event in events]
    assert kinds[0] is RunStarted
    assert kinds[-1] is RunEnded
    assert kinds.index(StepStarted) < kinds.index(IntervalMeasured) < kinds.index(StepEnded)
    assert kinds.count(IntervalMeasured) == 4
    ended = events[-1]
    assert isinstance(ended, RunEnded)
    assert (ended.state, ended.exit_code) == ("complete", 0)
    assert Path(tmp_path, ended.directory, "manifest.json").exists()
    step = next(event for event in events if isinstance(event, StepEnded))
    assert step.figures is not None
    assert step.figures.total.ios > 0


@pytest.mark.long
def test_options_reach_the_run(workload: Path, tmp_path: Path) -> None:
    words = [
        "--warmup",
        "0.2",
        "--elapsed",
        "0.3",
        "--outstanding",
        "2",
        "--seed",
        "9",
        "--io-wait",
        "spin",
        "--no-report",
    ]
    done = linerate("run", workload, "--target", "null:1g", "--output", tmp_path / "run", *words)
    assert done.returncode == 0, done.stderr
    spec = RunDirectory.open(tmp_path / "run").manifest.steps[0].spec
    assert (spec["warmup_s"], spec["elapsed_s"], spec["seed"], spec["wait"]) == (
        0.2,
        pytest.approx(0.3),
        9,
        "spin",
    )
    assert [volume["outstanding"] for volume in spec["volumes"]] == [2, 2]


def test_targets_are_given_in_order(workload: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one.img", tmp_path / "two.img"
    words = [
        "--target",
        one,
        "--target",
        two,
        "--size",
        "8m",
        "--create",
        "--output",
        tmp_path / "run",
        "--no-report",
    ]
    done = linerate("run", workload, *words)
    assert done.returncode == 0, done.stderr
    spec = RunDirectory.open(tmp_path / "run").manifest.steps[0].spec
    assert [volume["url"] for volume in spec["volumes"]] == [f"file:{one}", f"file:{two}"]
    short = linerate("run", workload, *["--target", one] * 3)
    assert short.returncode == 2
    assert "3 targets for 2 volumes (v1, v2)" in short.stderr


def test_verified_data_come_back(workload: Path, array: EmbeddedArray, tmp_path: Path) -> None:
    words = [
        "--target",
        _target(array),
        "--verify",
        "--size",
        "2m",
        "--output",
        tmp_path / "run",
        "--no-report",
    ]
    done = linerate("run", workload, *words)
    assert done.returncode == 0, done.stderr
    assert RunDirectory.open(tmp_path / "run").manifest.steps[0].spec["verify"] == "on"


def test_a_block_device_is_loaded_and_verified(workload: Path, tmp_path: Path) -> None:
    with block_device(tmp_path / "backing", 16 << 20) as device:
        words = ["--target", device, "--target", tmp_path / "v2", "--create", "--size", "8m", "--verify"]
        words += ["--overwrite", "v1", "--output", tmp_path / "run", "--no-report"]
        done = linerate("run", workload, *words)
        assert done.returncode == 0, done.stderr
    spec = RunDirectory.open(tmp_path / "run").manifest.steps[0].spec
    assert spec["volumes"][0]["url"] == f"file:{device}"
    assert (tmp_path / "backing").read_bytes().strip(b"\0"), "no write reached the device"


def test_session_options_are_negotiated(workload: Path, array: EmbeddedArray, tmp_path: Path) -> None:
    words = ["--set", "iscsi.header_digest=crc32c", "--set", "iscsi.data_digest=crc32c", "--no-report"]
    done = linerate("run", workload, "--target", _target(array), "--output", tmp_path / "run", *words)
    assert done.returncode == 0, done.stderr
    facts = json.dumps(RunDirectory.open(tmp_path / "run").manifest.steps[0].facts).lower()
    assert facts.count("crc32c") >= 4, facts


@pytest.mark.parametrize("setting", ["smb.signing=on", "iscsi.nodelay=off"])
def test_settings_of_sessions_that_no_volume_has_are_noted(
    workload: Path, tmp_path: Path, setting: str
) -> None:
    done = linerate("run", workload, "--target", "null:1g", "--set", setting, "--dry-run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    group = setting.partition(".")[0]
    assert f"note: --set {group}.*: no volume of this load is " in done.stdout


def test_session_options_of_luns_are_not_noted(workload: Path, array: EmbeddedArray, tmp_path: Path) -> None:
    words = ["--target", _target(array), "--set", "iscsi.nodelay=off", "--dry-run"]
    done = linerate("run", workload, *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "--set" not in done.stdout


def test_vdbench_output_has_a_flatfile(workload: Path, tmp_path: Path) -> None:
    words = ["--target", "null:1g", "--vdbench-output", tmp_path / "out", "--no-report"]
    done = linerate("run", workload, *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "first" in (tmp_path / "out" / "flatfile.html").read_text("utf-8")


def test_no_file_of_the_user_is_replaced_unasked(workload: Path, tmp_path: Path) -> None:
    words = ["run", workload, "--target", "null:1g", "--no-report", "--output"]
    assert linerate(*words, tmp_path / "run").returncode == 0
    notes, folder = tmp_path / "notes.txt", tmp_path / "results"
    folder.mkdir()
    summary = folder / "summary.html"
    report = ["report", tmp_path / "run"]
    outputs = [("--html", notes), ("--vdbench-output", folder), ("--diskspd-xml", notes)]
    for option, place in outputs:
        notes.write_text("mine")
        summary.write_text("mine")
        refused = linerate(*report, option, place)
        assert refused.returncode == 2
        assert str(place) in refused.stderr
        assert "--overwrite" in refused.stderr
        assert (notes.read_text("utf-8"), summary.read_text("utf-8")) == ("mine", "mine")
        assert linerate(*report, option, place, "--overwrite").returncode == 0
        changed = summary if place == folder else notes
        assert changed.read_text("utf-8") != "mine"
    summary.write_text("mine")
    refused = linerate(*words, tmp_path / "second", "--vdbench-output", folder)
    assert refused.returncode == 2
    assert f"add --overwrite {folder}" in refused.stderr
    assert summary.read_text("utf-8") == "mine"
    assert not (tmp_path / "second").exists()
    named = linerate(*words, tmp_path / "third", "--vdbench-output", folder, "--overwrite", folder)
    assert named.returncode == 0, named.stderr
    assert summary.read_text("utf-8") != "mine"


def test_a_used_directory_is_refused(workload: Path, tmp_path: Path) -> None:
    words = ["run", workload, "--target", "null:1g", "--output", tmp_path / "run", "--no-report"]
    assert linerate(*words).returncode == 0
    again = linerate(*words)
    assert again.returncode == 2
    assert str(tmp_path / "run") in again.stderr


def test_results_can_be_judged_later(workload: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        done = linerate("run", workload, "--target", "null:1g", "--output", tmp_path / name, "--no-report")
        assert done.returncode == 0, done.stderr
    check = linerate("check", tmp_path / "a")
    assert check.returncode in (0, 1), check.stderr
    assert check.stdout.strip()
    stamp = json.loads(linerate("check", tmp_path / "a", "--json").stdout)["stamp"]
    assert (check.returncode == 1) == (stamp == "void")
    report = linerate("report", tmp_path / "a", "--html", tmp_path / "a.html")
    assert report.returncode == 0, report.stderr
    assert "</html>" in (tmp_path / "a.html").read_text("utf-8")
    compare = linerate("compare", tmp_path / "a", tmp_path / "b")
    assert compare.returncode == 0, compare.stderr
    assert "first" in compare.stdout


def _on_a_terminal(words: list[str], **env: str) -> str:
    """What a command writes to a terminal."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *words], stdout=follower, stderr=follower, stdin=follower, env=environment(**env)
    )
    os.close(follower)
    shown = b""
    deadline = time.monotonic() + TIMEOUT_S
    try:
        while time.monotonic() < deadline:
            if select.select([leader], [], [], 0.1)[0]:
                try:
                    shown += os.read(leader, 65536)
                except OSError:  # the terminal's other side is closed
                    break
    finally:
        os.close(leader)
        assert process.wait(TIMEOUT_S) == 0
    return shown.decode()


@pytest.mark.long
@pytest.mark.parametrize(
    ("file", "code", "message"),
    [
        ("manifest.json", 2, "run/manifest.json: the file: Invalid JSON"),
        ("intervals.parquet", 1, "run: the interval tables cannot be read"),
        ("usage.parquet", 1, "run: the interval tables cannot be read"),
        ("latency.hlog", 1, "latency.hlog was changed after the run was closed"),
        ("events.jsonl", 1, "events.jsonl was changed after the run was closed"),
    ],
)
def test_a_damaged_run_is_told(workload: Path, tmp_path: Path, file: str, code: int, message: str) -> None:
    words = ["--target", "null:1g", "--output", "run", "--elapsed", "0.1", "--no-report"]
    assert linerate("run", workload, *words, cwd=tmp_path).returncode == 0
    (tmp_path / "run" / file).chmod(0o600)
    (tmp_path / "run" / file).write_text("garbage", "ascii")
    check = linerate("check", "run", cwd=tmp_path)
    assert check.returncode == code
    told = check.stderr + check.stdout
    assert message in told
    assert "-> take the run directory from a backup" in told
    report = linerate("report", "run", cwd=tmp_path)
    assert message in report.stderr + report.stdout
    assert "-> take the run directory from a backup" in report.stderr + report.stdout


@pytest.mark.parametrize("colour", [True, False])
def test_a_terminal_gets_a_live_table(workload: Path, tmp_path: Path, colour: bool) -> None:
    words = ["run", str(workload), "--target", "null:1g", "--output", str(tmp_path / "run"), "--no-report"]
    shown = _on_a_terminal(words, **({} if colour else {"NO_COLOR": "1"}))
    assert "step 1 of 1" in shown
    assert f"{ESCAPE}[?25l" in shown, "the cursor is hidden while the table moves"
    assert shown.rindex(f"{ESCAPE}[?25h") > shown.rindex(f"{ESCAPE}[?25l"), "and shown again"
    colours = re.findall(r"\x1b\[[0-9;]*3[0-9](?:;[0-9;]*)?m", shown)
    assert bool(colours) == colour


def test_a_result_is_told_before_the_file_that_cannot_be_written(
    workload: Path, array: EmbeddedArray, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("x", "ascii")
    where = tmp_path / "my runs" / "1"
    words = ("run", workload, "--target", _target(array), "--output", where)
    done = linerate(*words, "--fio-json", tmp_path / "file" / "fio.json")
    assert done.returncode == 1
    assert f"next: change one thing, run again, then: linerate compare '{where}' RUN" in done.stdout
    assert f"{tmp_path}/file/fio.json: File exists" in done.stderr
    ended = linerate(
        *words[:-1], tmp_path / "second", "--vdbench-output", tmp_path / "file" / "vdbench", "--json"
    )
    assert ended.returncode == 1
    last = LINES.validate_json(ended.stdout.splitlines()[-1])
    assert isinstance(last, RunEnded)
    assert (last.state, last.exit_code) == ("complete", 1)


def test_a_run_whose_reader_has_gone_ends_as_by_ctrl_c(workload: Path, tmp_path: Path) -> None:
    workload.write_text(WORKLOAD.replace('elapsed = "0.4s"', 'elapsed = "60s"'), "ascii")
    words = ("run", workload, "--target", "null:64m", "--output", tmp_path / "run", "--json")
    command = [*COMMAND, *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if json.loads(line)["type"] == "interval":
                break
        process.stdout.close()
        assert process.wait(TIMEOUT_S) != 0
    run = RunDirectory.open(tmp_path / "run")
    assert run.manifest.state == "interrupted"
    assert run.intervals.get_column("ios").sum() > 0
