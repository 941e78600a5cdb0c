"""Ctrl-C and SIGTERM: the load stops at once, the prompt comes back, and what was measured is kept and marked."""

from __future__ import annotations

import json
import os
import pty
import signal
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from linerate.array import EmbeddedArray
from linerate.cli.view.events import LINES, RunEnded, StepEnded
from linerate.results import RunDirectory

from tests.cli.conftest import COMMAND, TIMEOUT_S, environment, linerate

pytestmark = pytest.mark.alone
WORKLOAD = """\
warm_up = "0s"
elapsed = "60s"
interval = "0.25s"
volume = [{ name = "v{n}", count = 2, outstanding = 4 }]
stream = [{ name = "s", size = "8k", read = 67 }]
run = [{ name = "first", streams = "s" }, { name = "second", streams = "s" }]
"""
# A run ends within this time after Ctrl-C (ARCHITECTURE.md). Another program may spoil one attempt of three.
STOP_S = 0.2
EXIT_S = 1.0
ATTEMPTS = 3
# A waiting call looks for signals every 20 ms; a busy machine may take a few turns to let it.
ANSWER_S = 0.1


def _command(tmp_path: Path, url: str, *words: str) -> list[str]:
    (tmp_path / "two.toml").write_text(WORKLOAD, "ascii")
    told = ("run", tmp_path / "two.toml", "--target", url, "--output", tmp_path / "run", *words)
    return [*COMMAND, *map(str, told)]


@dataclass(frozen=True)
class Interrupted:
    """A run that was ended by a signal after its first interval."""

    run: RunDirectory
    lines: list[str]
    stopped_s: float
    """From the signal to the end of the load, as the manifest has it."""
    took_s: float
    """From the signal to the end of the command."""


def _interrupt(tmp_path: Path, url: str, number: int) -> Interrupted:
    tmp_path.mkdir()
    command = _command(tmp_path, url, "--json")
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
    return Interrupted(run, lines, (step.ended_at - sent_at).total_seconds(), took_s)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_is_kept_and_marked(array: EmbeddedArray, tmp_path: Path, number: int) -> None:
    late = []
    for attempt in range(ATTEMPTS):
        done = _interrupt(tmp_path / str(attempt), array.url("{n-1}"), number)
        events = [LINES.validate_json(line) for line in done.lines]
        assert isinstance(events[-2], StepEnded)
        assert isinstance(events[-1], RunEnded)
        assert (events[-2].state, events[-1].state, events[-1].exit_code) == (
            "interrupted",
            "interrupted",
            130,
        )
        (step,) = done.run.manifest.steps
        assert (done.run.manifest.state, step.state) == ("interrupted", "interrupted")
        assert done.run.intervals["ios"].sum() > 0
        assert not (done.run.path / "report.html").exists(), (
            "the user wants the prompt; `report` makes it later"
        )
        if done.stopped_s < STOP_S and done.took_s < EXIT_S:
            break
        late.append((done.stopped_s, done.took_s))
    assert len(late) < ATTEMPTS, f"seconds until the load stopped and the command ended: {late}"
    assert linerate("report", done.run.path).returncode == 0
    assert "interrupted" in linerate("check", done.run.path).stdout


# A process of its own: in the test's own one, what other tests left behind takes its turns too.
WAITING = """
import json, os, signal, threading, time
from linerate import _core
volume = {"name": "v", "url": "null:1048576"}
sizes = {"kind": "mix", "parts": [[512, 100]]}
stream = {"name": "s", "volumes": ["v"], "rate_iops": 100.0, "sizes": sizes}
spec = json.dumps({"version": 1, "elapsed_s": 60.0, "volumes": [volume], "streams": [stream]})
took_s = []
for attempt in range(9):
    run = _core.Run.start(spec)
    sent = []
    def send():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)
    timer = threading.Timer(0.05 + attempt * 0.005, send)
    timer.start()
    try:
        run.next_interval(10.0)
    except KeyboardInterrupt:
        run.stop()
        assert run.finish().outcome == "stopped"
        took_s.append(time.monotonic() - sent[0])
    timer.join()
print(json.dumps(took_s))
"""


def test_a_waiting_call_answers_a_signal_at_once() -> None:
    """The seam itself, from the signal to the summary: the median of several, in any part of a wait."""
    done = subprocess.run(
        [sys.executable, "-c", WAITING],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        env=environment(),
    )
    assert done.returncode == 0, done.stderr
    took_s = json.loads(done.stdout)
    assert len(took_s) == 9
    assert statistics.median(took_s) < ANSWER_S, took_s


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
    rest = b""
    try:
        while chunk := os.read(leader, 65536):
            rest += chunk
    except OSError:  # the terminal's other side is closed
        pass
    finally:
        os.close(leader)
    assert process.wait(TIMEOUT_S) == 130
    text = rest.decode()
    assert "\x1b[?25h" in text
    assert f"interrupted; what was measured is kept: linerate report {tmp_path / 'run'}" in text
    assert "Traceback" not in text
    assert RunDirectory.open(tmp_path / "run").manifest.state == "interrupted"
