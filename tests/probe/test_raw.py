"""Raw TCP beside iSCSI: the streams, the bounds of the server, and what follows from the figures."""

from __future__ import annotations

import contextlib
import importlib
import json
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from linerate.errors import HostError, UserError
from linerate.probe import Diagnosis, RawRate, judge
from linerate.probe.raw import parse_peer
from linerate.probe.raw.client import raw_mb_s
from linerate.probe.raw.server import listen, serve

from tests.cli.conftest import COMMAND, TIMEOUT_S, environment, linerate
from tests.probe.evidence import evidence
from tests.support.serving import serving

ARRAY = """
portals = ["127.0.0.1:0"]

[[targets]]
name = "iqn.2026-11.lab.linerate:raw"
volumes = [{ lun = 0, name = "v1", kind = "memory", size = "16m" }]
"""
LONG_S = 600.0


@contextmanager
def served(lifetime_s: float = LONG_S) -> Iterator[tuple[tuple[str, int], list[str]]]:
    """A server on the loopback, and what it tells. Its end closes it."""
    told: list[str] = []
    with listen("127.0.0.1:0") as listener:
        thread = threading.Thread(
            target=_until_closed, args=(lambda: serve(listener, lifetime_s, told.append),)
        )
        thread.start()
        try:
            yield listener.getsockname(), told
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _until_closed(work: Callable[[], None]) -> None:
    with contextlib.suppress(OSError):  # accept on a socket that was shut down
        work()


def test_both_directions() -> None:
    with served() as (peer, told):
        for is_to_peer in (True, False):
            assert raw_mb_s(peer, 0.5, is_to_peer=is_to_peer) > 0
    assert [line.split()[1] for line in told] == ["received", "sent"]


def test_only_the_first_host_is_served() -> None:
    with served() as (peer, told):
        assert raw_mb_s(peer, 0.2, is_to_peer=False) > 0
        with socket.create_connection(peer, TIMEOUT_S, source_address=("127.0.0.2", 0)) as other:
            other.sendall(b'{"linerate_raw": 1, "flow": "from", "seconds": 0.2}\n')
            try:
                answer = other.recv(100)
            except ConnectionResetError:
                answer = b""
        assert answer == b""
        assert raw_mb_s(peer, 0.2, is_to_peer=False) > 0
    assert len(told) == 2


@pytest.mark.parametrize(
    "request_line",
    [
        b"GET / HTTP/1.0\r\n\r\n",
        b"[]\n",
        b"x" * 1000,
        b'{"linerate_raw": 2, "flow": "to", "seconds": 1}\n',
        b'{"linerate_raw": 1, "flow": "both", "seconds": 1}\n',
        b'{"linerate_raw": 1, "flow": "from", "seconds": 86400}\n',
        b'{"linerate_raw": 1, "flow": "from", "seconds": NaN}\n',
        b'{"linerate_raw": 1, "flow": "from"}\n',
    ],
)
def test_what_asks_for_something_else_gets_no_stream_and_keeps_nothing_away(request_line: bytes) -> None:
    with served() as (peer, told):
        with socket.create_connection(peer, TIMEOUT_S, source_address=("127.0.0.2", 0)) as other:
            other.sendall(request_line)
            try:
                answer = other.makefile("rb").read()
            except ConnectionResetError:
                answer = b""
        assert b"ready" not in answer
        assert len(answer) < 200
        assert raw_mb_s(peer, 0.2, is_to_peer=False) > 0
    assert len(told) == 1


def test_the_server_ends_when_its_time_is_over() -> None:
    with listen("127.0.0.1:0") as listener:
        began_s = time.monotonic()
        serve(listener, 0.2, lambda _: None)
        assert time.monotonic() - began_s >= 0.2


def test_a_far_side_that_is_not_there_is_told() -> None:
    with listen("127.0.0.1:0") as listener:
        port = listener.getsockname()[1]
    with pytest.raises(HostError, match=f"raw TCP with 127.0.0.1 port {port}") as told:
        raw_mb_s(("127.0.0.1", port), 0.2, is_to_peer=False)
    assert f"linerate probe --serve {port}" in told.value.hint


def test_a_far_side_that_is_something_else_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:

        def answer() -> None:
            with other.accept()[0] as connection:
                connection.sendall(b"SSH-2.0-OpenSSH_9.9\r\n")
                connection.recv(1000)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(HostError, match="raw TCP with"):
            raw_mb_s(other.getsockname(), 0.2, is_to_peer=True)
        thread.join()


def test_places() -> None:
    assert parse_peer("10.0.0.5:9000") == ("10.0.0.5", 9000)
    assert parse_peer("[fd00::5]:9000") == ("fd00::5", 9000)
    for wrong in ("9000", "10.0.0.5", "10.0.0.5:", "10.0.0.5:0", "10.0.0.5:70000", "10.0.0.5:x"):
        with pytest.raises(UserError, match="not HOST:PORT"):
            parse_peer(wrong)
    for wrong in ("x", "10.0.0.5:x", "70000"):
        with pytest.raises(UserError, match="no port"):
            listen(wrong)
    with pytest.raises(HostError, match="--serve 192"):
        listen("192.0.2.1:0")


def of(from_mb_s: float, to_mb_s: float, peer: str = "10.0.0.5", **changes: Any) -> Diagnosis:
    load = {"floor": {"session": {"snd_mss": 1448, "peer_address": "10.0.0.5:3260"}}} | changes
    seen = evidence(load)  # type: ignore[arg-type]
    return judge(replace(seen, raw=(RawRate(peer, False, from_mb_s), RawRate(peer, True, to_mb_s))))


def test_raw_tcp_that_is_as_fast_means_the_line_or_tcp() -> None:
    found = of(85.0, 80.0)
    assert found.limit == "line"
    assert "The line or TCP is the limit: raw TCP carries 85 MB/s from the far side" in found.sentence
    assert [note.split(":")[1] for note in found.notes] == [" the line or TCP limits it, not iSCSI."] * 2


def test_raw_tcp_that_is_faster_means_iscsi() -> None:
    found = of(200.0, 400.0)
    assert found.limit == "round trip"
    assert found.notes[0].startswith(
        "One session reads 79 MB/s, 39 % of the 200 MB/s of raw TCP: not the line"
    )
    assert found.notes[1].startswith(
        "One session writes 79 MB/s, 20 % of the 400 MB/s of raw TCP: not the line"
    )


def test_a_rate_that_looks_like_a_line_is_none_if_raw_tcp_is_faster() -> None:
    full = {name: {"mb_s": 117.7} for name in ("large", "sessions", "connections")}
    assert of(118.0, 118.0, **full).limit == "line"
    assert of(400.0, 400.0, **full).limit == "round trip"


def test_several_sessions_that_carry_more_than_raw_tcp_are_not_its_line() -> None:
    """One raw connection has one window too."""
    found = of(85.0, 85.0, sessions={"mb_s": 190.0})
    assert found.limit == "window"


def test_a_loopback_and_a_full_load_thread_have_no_line() -> None:
    full = {"mb_s": 78.6, "load_cores": 0.97}
    assert of(80.0, 80.0, large=full).limit == "this host's CPU"
    seen = replace(evidence(), port="lo", raw=(RawRate("127.0.0.1", False, 80.0),))
    assert judge(seen).limit == "round trip"


def test_another_far_side_than_the_array_is_told() -> None:
    assert "Raw TCP went to 10.0.1.5, iSCSI to 10.0.0.5" in of(200.0, 200.0, peer="10.0.1.5").notes[-1]
    assert len(of(200.0, 200.0).notes) == 2


@contextmanager
def far_side(*words: str) -> Iterator[int]:
    """`linerate probe --serve` as a process; gives its port."""
    command = [*COMMAND, "probe", "--serve", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment()) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        try:
            yield int(line.split(" on port ")[1].split()[0])
        finally:
            process.terminate()


@pytest.mark.long
def test_command(tmp_path: Path) -> None:
    with serving(tmp_path, ARRAY) as portal, far_side("127.0.0.1:0") as port:
        far = ("--raw", f"127.0.0.1:{port}")
        url = f"iscsi://{portal}/iqn.2026-11.lab.linerate:raw/0"
        done = linerate("probe", url, "--seconds", "5", *far, "--json")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert [one["is_to_peer"] for one in found["raw"]] == [False, True]
        assert all(one["mb_s"] > 0 for one in found["raw"])
        assert any("of raw TCP" in note for note in found["notes"])
        text = linerate("probe", url, "--seconds", "5", *far)
    rows = [line for line in text.stdout.splitlines() if line.startswith("raw TCP ")]
    assert [row.split("  ")[0] for row in rows] == ["raw TCP from the far side", "raw TCP to the far side"]


@pytest.mark.long
def test_a_far_side_that_does_not_run_is_told_before_the_trials(tmp_path: Path) -> None:
    with listen("127.0.0.1:0") as listener:
        port = listener.getsockname()[1]
    with serving(tmp_path, ARRAY) as portal:
        url = f"iscsi://{portal}/iqn.2026-11.lab.linerate:raw/0"
        done = linerate("probe", url, "--raw", f"127.0.0.1:{port}")
    assert done.returncode == 1
    assert f"raw TCP with 127.0.0.1 port {port}" in done.stderr
    assert "4K random reads" not in done.stderr


def test_raw_streams_that_stall_with_large_frames_hide_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def stalled(*_: object, **__: object) -> float:
        raise HostError("raw TCP: no data in time", "")

    survey = importlib.import_module("linerate.probe.survey")  # its package has a function of this name
    monkeypatch.setattr(survey, "raw_mb_s", stalled)
    part = survey._Part(lambda _doing, _share: None, 10.0, 2.0)
    assert survey._raw(("10.0.0.5", 9000), part, may_stall=True) == ()
    with pytest.raises(HostError):
        survey._raw(("10.0.0.5", 9000), part, may_stall=False)


def test_the_far_side_ends_by_itself() -> None:
    done = linerate("probe", "--serve", "127.0.0.1:0", "--seconds", "5")
    assert done.returncode == 0
    assert "to the first host that asks" in done.stderr


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ([], "no URL"),
        (["iscsi://10.0.0.5/iqn.2026-11.lab:a/0", "--serve", "9000"], "--serve is without URL"),
        (["--serve", "9000", "--write"], "--serve is without URL"),
        (["--serve", "http"], "no port"),
        (["iscsi://10.0.0.5/iqn.2026-11.lab:a/0", "--raw", "9000"], "not HOST:PORT"),
    ],
)
def test_refusals(words: list[str], hint: str) -> None:
    done = linerate("probe", *words)
    assert done.returncode == 2
    assert hint in done.stderr
