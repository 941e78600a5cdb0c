"""Ctrl-C and SIGTERM: the load stops at once, the prompt comes back, and what was measured is kept and marked."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from linerate.array import EmbeddedArray
from linerate.cli.view.events import LINES, RunEnded, StepEnded
from linerate.results import RunDirectory

from tests.cli.conftest import COMMAND, TIMEOUT_S, environment, linerate

WORKLOAD = """\
warm_up = "0s"
elapsed = "60s"
interval = "0.25s"
volume = [{ name = "v{n}", count = 2, outstanding = 4 }]
stream = [{ name = "s", size = "8k", read = 67 }]
run = [{ name = "first", streams = "s" }, { name = "second", streams = "s" }]
"""
STOP_S = 0.2
EXIT_S = 1.0


def _command(tmp_path: Path, url: str, *words: str) -> list[str]:
    (tmp_path / "two.toml").write_text(WORKLOAD, "ascii")
    told = ("run", tmp_path / "two.toml", "--target", url, "--output", tmp_path / "run", *words)
    return [*COMMAND, *map(str, told)]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_is_kept_and_marked(array: EmbeddedArray, tmp_path: Path, number: int) -> None:
    command = _command(tmp_path, array.url("{n-1}"), "--json")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if json.loads(line)["type"] == "interval":
                break
        sent, sent_at = time.monotonic(), datetime.now(UTC)
        process.send_signal(number)
        lines = process.stdout.read().splitlines()
        assert process.wait(TIMEOUT_S) == 130
        took_s = time.monotonic() - sent
    run = RunDirectory.open(tmp_path / "run")
    (step,) = run.manifest.steps
    assert step.ended_at is not None
    stopped_s = (step.ended_at - sent_at).total_seconds()
    assert stopped_s < STOP_S, f"the load went on for {stopped_s:.2f} s"
    assert took_s < EXIT_S, f"the command took {took_s:.2f} s to end"
    events = [LINES.validate_json(line) for line in lines]
    assert isinstance(events[-2], StepEnded)
    assert isinstance(events[-1], RunEnded)
    assert (events[-2].state, events[-1].state, events[-1].exit_code) == ("interrupted", "interrupted", 130)
    assert (run.manifest.state, step.state) == ("interrupted", "interrupted")
    assert run.intervals["ios"].sum() > 0
    assert not (run.path / "report.html").exists(), "the user wants the prompt; `report` makes it later"
    assert linerate("report", run.path).returncode == 0
    assert "interrupted" in linerate("check", run.path).stdout


def test_ctrl_c_on_a_terminal_gives_it_back(tmp_path: Path) -> None:
    """The key itself, through the terminal: the cursor is shown again and one line says what was kept."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        _command(tmp_path, "null:1g"),
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env=environment(),
        start_new_session=True,
        preexec_fn=lambda: os.login_tty(0),
    )
    os.close(follower)
    shown = b""
    while b"queue" not in shown:
        shown += os.read(leader, 65536)
    os.write(leader, b"\x03")
    sent = time.monotonic()
    rest = b""
    try:
        while chunk := os.read(leader, 65536):
            rest += chunk
    except OSError:  # the terminal's other side is closed
        pass
    finally:
        os.close(leader)
    assert process.wait(TIMEOUT_S) == 130
    took_s = time.monotonic() - sent
    assert took_s < EXIT_S, f"the command took {took_s:.2f} s to end"
    text = rest.decode()
    assert "\x1b[?25h" in text
    assert f"interrupted; what was measured is kept: linerate report {tmp_path / 'run'}" in text
    assert "Traceback" not in text
    assert RunDirectory.open(tmp_path / "run").manifest.state == "interrupted"
