"""`linerate run` against targets that misbehave: it ends in time, and says so when nothing was done."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from linerate.results import RunDirectory

from tests.cli.conftest import linerate
from tests.load.fake_target import NO_TAG, Connection, target

WORKLOAD = """\
warm_up = "0s"
elapsed = "2s"
interval = "0.5s"
volume = [{ name = "v1", outstanding = 4 }]
stream = [{ name = "reads", size = "4k" }]
"""
SLACK_S = 20.0
"""For two looks at a machine that is busy; a flood that was told in full took more than a minute."""


def _messages(connection: Connection) -> bytes:
    """A thousand asynchronous messages with vendor codes."""
    pdus = []
    for _ in range(1000):
        bhs = connection.header(0x32, 0x80, NO_TAG)
        bhs[20:24], bhs[36] = NO_TAG, 255
        pdus.append(bytes(bhs))
    return b"".join(pdus)


def _pings(connection: Connection) -> bytes:
    """A thousand pings that want an answer."""
    bhs = connection.header(0x20, 0x80, NO_TAG, counts=False)
    bhs[20:24] = b"\0\0\0\7"
    return bytes(bhs) * 1000


def _flood(pdus: Callable[[Connection], bytes]) -> Callable[[Connection], None]:
    def script(connection: Connection) -> None:
        connection.serve(lambda reads: reads > 20)
        threading.Thread(target=_drop_what_comes, args=(connection,), daemon=True).start()
        while True:
            connection.stream.sendall(pdus(connection))

    return script


def _drop_what_comes(connection: Connection) -> None:
    try:
        while connection.stream.recv(1 << 20):
            pass
    except OSError:
        return


@pytest.mark.long
@pytest.mark.parametrize("pdus", [_messages, _pings])
@pytest.mark.parametrize("driver", ["epoll", "io_uring"])
def test_a_flood_does_not_lengthen_a_run(
    tmp_path: Path, pdus: Callable[[Connection], bytes], driver: str
) -> None:
    (tmp_path / "load.toml").write_text(WORKLOAD, "ascii")
    with target(_flood(pdus)) as url:
        began = time.monotonic()
        words = ("--target", url, "--driver", driver, "--output", "run", "--no-report")
        done = linerate("run", "load.toml", *words, cwd=tmp_path)
        took_s = time.monotonic() - began
    assert took_s < 2.0 + SLACK_S, done.stdout[-2000:]
    assert done.returncode in (0, 1), done.stderr
    run = RunDirectory.open(tmp_path / "run")
    kinds = [event.kind for event in run.events]
    assert len(kinds) < 200, {kind: kinds.count(kind) for kind in kinds}
    if pdus is _messages:
        assert "events_left_out" in kinds


def test_a_run_without_a_completed_io_has_failed(tmp_path: Path) -> None:
    def fall_silent(connection: Connection) -> None:
        connection.serve(lambda reads: reads > 0)
        while True:
            connection.read()

    (tmp_path / "load.toml").write_text(WORKLOAD.replace('"2s"', '"1s"'), "ascii")
    with target(fall_silent) as url:
        done = linerate("run", "load.toml", "--target", url, "--output", "run", cwd=tmp_path)
    assert done.returncode == 1
    assert "load: no I/O was completed in 1 s" in done.stderr
    run = RunDirectory.open(tmp_path / "run")
    assert run.manifest.state == "failed"
    assert "no I/O was completed" in run.manifest.steps[0].reason
    assert not (tmp_path / "run" / "report.html").exists(), "a report of zeros is of no use"
    assert "report:" not in done.stdout


def test_a_run_whose_ios_all_fail_has_failed(tmp_path: Path) -> None:
    def refuse(connection: Connection) -> None:
        connection.serve(lambda reads: reads > 0)
        while True:
            bhs, _ = connection.read()
            if bhs[0] & 0x3F == 1:
                connection.refuse(bhs)

    (tmp_path / "load.vdb").write_text(
        "data_errors=1000000\nsd=sd1,lun=x,threads=1\nwd=wd1,sd=sd1\nrd=rd1,wd=wd1,elapsed=2,interval=1,iorate=10\n",
        "ascii",
    )
    with target(refuse) as url:
        done = linerate("run", "load.vdb", "--map", f"sd1={url}", "--output", "run", cwd=tmp_path)
    assert done.returncode == 1
    assert "rd1: " in done.stderr
