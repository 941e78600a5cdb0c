"""What a served array writes to standard error, seen from outside: peers by a client of few words."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.array.log.wire import Wire
from tests.cli.conftest import COMMAND, TIMEOUT_S, environment
from tests.support.serving import fine

IQN = "iqn.2026-11.lab.linerate:logged"
HOST = "iqn.2026-11.lab.linerate:host"
SECRET = "correct-horse-battery"
OWN_SECRET = "a-staple-of-our-own"
GUESS = "a-wrong-guess-of-it"
ARRAY = f"""\
name = "logged"
portals = ["127.0.0.1:0"]
[limits]
half_open_per_peer = 8
[[storage.disks]]
name = "d"
kind = "memory"
size = "16m"
count = 3
[[storage.raid_sets]]
name = "r0"
level = "raid5"
disks = ["d0", "d1", "d2"]
[[targets]]
name = "{IQN}"
[targets.chap]
user = "host1"
secret = "{SECRET}"
mutual_user = "array"
mutual_secret = "{OWN_SECRET}"
[[targets.volumes]]
lun = 0
name = "v"
kind = "raid"
raid_set = "r0"
[[targets]]
name = "{IQN}.named"
initiators = ["iqn.2026-11.lab.linerate:other"]
"""


@pytest.fixture(autouse=True)
def own_state(state: Path) -> None:
    """Arrays of this test are found by its verbs only."""


@contextlib.contextmanager
def _served(
    folder: Path, *words: str, stderr: int = subprocess.PIPE, **env: str
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    file = folder / "logged.toml"
    file.write_text(ARRAY, "ascii")
    file.chmod(0o600)
    command = [*COMMAND, "array", "serve", str(file), "--json", *words]
    with subprocess.Popen(
        command, text=True, env=environment(**env), stdout=subprocess.PIPE, stderr=stderr
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.stderr.read() if process.stderr else "it did not start"
        try:
            yield process, json.loads(line)["portals"][0]
        finally:
            if process.poll() is None:
                process.kill()


def _ended(process: subprocess.Popen[str]) -> str:
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, said
    return said or ""


def _misbehave(portal: str) -> None:
    """A wrong target, a target of others, a wrong secret, a right one, and a handful of idle connections."""
    with Wire(portal) as wire:
        assert wire.login_at_once(HOST, f"{IQN}.none") == 0x0203
    with Wire(portal) as wire:
        assert wire.login_at_once(HOST, f"{IQN}.named") == 0x0202
    with Wire(portal) as wire:
        assert wire.prove(HOST, IQN, "host1", GUESS) == 0x0201
    with Wire(portal) as wire:
        assert wire.prove(HOST, IQN, "host1", SECRET) == 0
    with contextlib.ExitStack() as stack:
        for _ in range(12):
            stack.enter_context(Wire(portal))
        time.sleep(0.5)


@pytest.mark.long
def test_every_event_is_a_line_of_json_and_no_secret_is_in_any(tmp_path: Path) -> None:
    with _served(tmp_path, "--log-format", "json", "--log-level", "debug") as (process, portal):
        _misbehave(portal)
        fine("array", "fail-disk", "d0", "--yes")
        time.sleep(2.5)
        said = _ended(process)
    events: dict[str, list[dict[str, Any]]] = {}
    for line in said.splitlines():
        event = json.loads(line)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", event["time"])
        assert {"time", "level", "event", "message"} <= event.keys()
        events.setdefault(event["event"], []).append(event)
    unknown, forbidden = events["login_refused"]
    assert (unknown["status"], unknown["initiator"], unknown["target"]) == ("0x0203", HOST, f"{IQN}.none")
    assert (forbidden["status"], forbidden["level"]) == ("0x0202", "warning")
    assert unknown["peer"].startswith("127.0.0.1:")
    assert events["chap_failed"][0]["target"] == IQN
    assert events["logged_in"][0]["initiator"] == HOST
    assert len(events["half_open_dropped"]) == 4
    (lost,) = events.get("disk_failed") or events["disk_removed"]
    assert lost["disk"] == "d0"
    assert events["raid_set_degraded"][0]["raid_set"] == "r0"
    assert [events[one][0]["level"] for one in ("array_started", "array_stopped")] == ["info", "info"]
    for secret in (SECRET, OWN_SECRET, GUESS):
        assert secret not in said


@pytest.mark.long
def test_text_is_the_same_for_people(tmp_path: Path) -> None:
    with _served(tmp_path) as (process, portal):
        with Wire(portal) as wire:
            wire.login_at_once(HOST, f"{IQN}.none")
        said = _ended(process)
    (line,) = [line for line in said.splitlines() if "login_refused" in line]
    assert re.match(
        r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z warning login_refused: a login is refused: ", line
    )
    assert f"target not found; peer=127.0.0.1:{line.split('peer=127.0.0.1:')[1].split()[0]} " in line
    assert f"initiator={HOST} target={IQN}.none" in line.replace("status=0x0203 ", "")


@pytest.mark.long
def test_less_is_written_if_less_is_asked_for(tmp_path: Path) -> None:
    with _served(tmp_path, "--log-level", "error") as (process, portal):
        _misbehave(portal)
        assert _ended(process) == ""


@pytest.mark.long
def test_an_array_serves_whatever_becomes_of_its_standard_error(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    with _served(tmp_path, "--log-level", "debug", stderr=writing) as (process, portal):
        os.close(writing)
        # The pipe is full, and then closed.
        for _ in range(300):
            with Wire(portal) as wire:
                assert wire.login_at_once(f"{HOST}-{'x' * 180}", f"{IQN}.none") == 0x0203
        os.close(reading)
        with Wire(portal) as wire:
            assert wire.prove(HOST, IQN, "host1", SECRET) == 0
        began = time.monotonic()
        _ended(process)
        assert time.monotonic() - began < 10.0


@pytest.mark.long
def test_an_array_that_is_started_without_standard_error_writes_to_no_other_file(tmp_path: Path) -> None:
    file = tmp_path / "logged.toml"
    file.write_text(ARRAY, "ascii")
    command = ["sh", "-c", 'exec "$@" 2>&-', "sh", *COMMAND, "array", "serve", str(file), "--json"]
    with subprocess.Popen(command, text=True, env=environment(), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        portal = json.loads(process.stdout.readline())["portals"][0]
        with Wire(portal) as wire:
            wire.login_at_once(HOST, f"{IQN}.none")
        assert Path(f"/proc/{process.pid}/fd/2").readlink() == Path("/dev/null")
        _ended(process)


@pytest.mark.long
def test_too_low_a_limit_of_open_files_is_warned_of(tmp_path: Path) -> None:
    file = tmp_path / "logged.toml"
    file.write_text(ARRAY, "ascii")
    file.chmod(0o644)
    command = ["sh", "-c", 'ulimit -n 500; exec "$@"', "sh", *COMMAND, "array", "serve", str(file), "--json"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, env=environment(), **pipes) as process:
        assert process.stdout is not None
        process.stdout.readline()
        said = _ended(process)
    assert "few_open_files: this process may open 500 files" in said
    assert f"chmod 600 {file}" in said
    assert SECRET not in said


@pytest.mark.long
def test_the_service_manager_hears_when_the_array_serves_and_when_it_stops(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(TIMEOUT_S)
        with _served(tmp_path, NOTIFY_SOCKET=str(tmp_path / "notify")) as (process, portal):
            ready = manager.recv(1000).decode()
            assert ready.splitlines() == ["READY=1", f"STATUS=serving {portal}"]
            _ended(process)
            assert manager.recv(1000) == b"STOPPING=1"
