"""Requests and answers between Linerate's processes, and every way in which the other side can fail."""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from linerate import rpc
from linerate.errors import HostError, InternalError, LinerateError, PeerError, UserError

PEER = rpc.Peer("the helper", late_hint="wait longer", gone_hint="start it again")
SECRET = "not to be shown"
LATE_S = 0.1

ANSWERS = """
import json, sys
def heard():
    return json.loads(sys.stdin.readline())["id"]
def say(**answer):
    print(json.dumps(answer), flush=True)
"""


_processes: list[rpc.Process] = []


@pytest.fixture(autouse=True)
def _ended() -> Iterator[None]:
    """No program outlives its test."""
    yield
    while _processes:
        _processes.pop().close(20.0)


def started(body: str, peer: rpc.Peer = PEER) -> rpc.Process:
    """A peer that is a program."""
    _processes.append(rpc.Process(peer, [sys.executable, "-c", ANSWERS + body], timeout_s=20.0))
    return _processes[-1]


def refusal(body: str, peer: rpc.Peer = PEER, timeout_s: float | None = None) -> LinerateError:
    """The error of a request to such a program."""
    client = started(body, peer)
    with pytest.raises(LinerateError) as caught:
        client.ask("unlock", {"secret": SECRET}, timeout_s=timeout_s)
    assert SECRET not in caught.value.message + caught.value.hint
    return caught.value


def test_a_result_arrives() -> None:
    client = started('say(id=heard(), result={"mtu": 9000})\nsay(id=heard(), result=None)')
    assert client.ask("read") == {"mtu": 9000}
    assert client.ask("restore") is None
    assert client.close(20.0)
    assert client.close(20.0), "a second close does nothing"


@pytest.mark.parametrize(
    ("blame", "kind"),
    [
        ("user", UserError),
        ("peer", PeerError),
        ("host", HostError),
        ("us", InternalError),
        ("?", InternalError),
    ],
)
def test_an_error_arrives_as_the_class_of_its_blame(blame: str, kind: type[LinerateError]) -> None:
    error = refusal(f'say(id=heard(), error="no port p7", hint="there is p0", blame="{blame}")')
    assert (type(error), error.message, error.hint) == (kind, "no port p7", "there is p0")


def test_a_peer_that_dies_in_the_middle_of_an_answer_is_named_with_its_last_words() -> None:
    error = refusal(
        """heard(); sys.stdout.write('{"id": 1, "resu'); sys.stdout.flush(); sys.exit("out of memory")"""
    )
    assert isinstance(error, HostError)
    assert (error.message, error.hint) == ("the helper has ended: out of memory", "start it again")


def test_a_peer_that_is_killed_without_a_word_is_named_with_the_signal() -> None:
    error = refusal("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert error.message == "the helper has ended: ended by SIGKILL"


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        (f"{SECRET}", "a line that is no answer"),
        (f'["{SECRET}"]', "a line that is no answer"),
        ("{}", "a line that is no answer"),
        ('{"id": 1}', "a line that is no answer"),
        ('{"result": 1}', "an answer with a wrong number"),
        ('{"id": 2, "result": 1}', "an answer with a wrong number"),
        ('{"id": "1", "result": 1}', "an answer with a wrong number"),
        ('{"id": 0, "result": 1}', "an answer with a wrong number"),
        ('{"id": true, "result": 1}', "an answer with a wrong number"),
    ],
)
def test_a_wrong_answer_is_an_error_of_linerate_itself(said: str, wrong: str) -> None:
    error = refusal(f"heard(); print({said!r}, flush=True)")
    assert isinstance(error, InternalError)
    assert error.message == f"the helper has sent {wrong}"


def test_text_before_the_answers_of_a_noisy_peer_is_skipped() -> None:
    noisy = rpc.Peer("load1", "", "", error_prefix="host load1: ", noisy=True)
    error = refusal(
        """print('Welcome\\n[1]\\n{"id": 7}', flush=True); say(id=heard(), error="locked", hint="", blame="host")""",
        noisy,
    )
    assert error.message == "host load1: locked"


def test_a_late_answer_is_an_error_and_is_not_taken_for_the_next_one() -> None:
    client = started('a = heard(); b = heard(); say(id=a, result="late"); say(id=b, result="in time")')
    with pytest.raises(HostError, match=r"the helper has not answered in 0\.1 s") as caught:
        client.ask("first", timeout_s=LATE_S)
    assert caught.value.hint == "wait longer"
    assert client.ask("second") == "in time"


def test_an_interrupted_request_is_not_taken_for_the_next_one() -> None:
    client = started('a = heard(); b = heard(); say(id=a, result="old"); say(id=b, result="new")')
    timer = threading.Timer(LATE_S, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        client.ask("first")
    timer.join()
    assert client.ask("second") == "new"


def test_requests_and_answers_longer_than_a_pipe_do_not_block_each_other() -> None:
    client = started('say(id=heard(), result="x" * 5_000_000)\nsay(id=heard(), result="y")')
    with pytest.raises(HostError):
        client.ask("long", timeout_s=0.0)
    assert client.ask("longer", {"text": "z" * 5_000_000}) == "y"


def test_much_on_standard_error_blocks_nothing() -> None:
    client = started('sys.stderr.write("x" * 1_000_000); sys.stderr.flush(); say(id=heard(), result=1)')
    assert client.ask("read") == 1


def test_a_line_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpc, "LINE_BYTES_MAX", 1 << 17)
    error = refusal('heard(); sys.stdout.write("x" * 1_000_000); sys.stdout.flush()')
    assert "has sent more than 131072 bytes in a line" in error.message


def test_a_process_that_does_not_end_is_killed() -> None:
    client = started("import time; say(id=heard(), result=1); time.sleep(100)")
    client.ask("read")
    assert not client.close(LATE_S)
    with pytest.raises(InternalError, match="the helper was asked after its end"):
        client.ask("read")


def test_no_process_is_left_of_a_command_that_does_not_exist() -> None:
    with pytest.raises(FileNotFoundError):
        rpc.Process(PEER, ["nowhere/helper"], timeout_s=1.0)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_an_error_without_a_number_is_about_the_connection(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    client = rpc.Client(PEER, ours.fileno(), ours.fileno(), timeout_s=20.0)
    theirs.sendall(rpc.error_line(UserError("the lab belongs to another user")))
    theirs.close()
    with pytest.raises(UserError, match="the lab belongs to another user"):
        client.ask("down")
    with pytest.raises(HostError, match="the helper has ended"):
        client.ask("down")


def test_threads_share_a_client(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    client = rpc.Client(PEER, ours.fileno(), ours.fileno(), timeout_s=20.0)
    with theirs.makefile("rb") as requests, theirs.makefile("wb") as answers:
        threading.Thread(
            target=rpc.serve, args=({"twice": lambda n: 2 * n}, requests, answers), daemon=True
        ).start()
        found: dict[int, int] = {}

        def ask(number: int) -> None:
            found[number] = client.ask("twice", {"n": number})

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        ours.shutdown(socket.SHUT_RDWR)
    assert found == {number: 2 * number for number in range(20)}


def _refuse(mtu: int) -> int:
    if mtu > 9000:
        raise HostError(f"no MTU {mtu}", "at most 9000")
    if mtu < 0:
        raise ValueError(f"bad value {SECRET}")
    return [1500, 9000].index(mtu) if mtu else {}[mtu]


def _answers(*lines: bytes) -> list[dict[str, Any]]:
    out = io.BytesIO()
    rpc.serve({"set": _refuse}, [line + b"\n" for line in lines], out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_each_request_is_answered_and_none_ends_the_service(capfd: pytest.CaptureFixture[str]) -> None:
    lines = [
        b'{"id": 1, "method": "set", "params": {"mtu": 9000}}',
        b'{"id": 2, "method": "set", "params": {"mtu": 9001}}',
        b'{"id": 3, "method": "set", "params": {"mtu": -1}}',
        b'{"id": 4, "method": "set", "params": {"mtu": 0}}',
        b'{"id": 5, "method": "set", "params": {"MTU": 1}}',
        b'{"id": 6, "method": "set", "params": [1500, 2]}',
        b'{"id": 7, "method": "get"}',
        b'{"id": 8, "method": ["set"]}',
        b'{"method": "set"}',
        b'{"id": "9", "method": "set"}',
        b"not to be shown",
        b"[]",
        b"\xff\xfe",
    ]
    answers = _answers(*lines)
    assert answers[0] == {"id": 1, "result": 1}
    assert answers[1] == {"id": 2, "error": "no MTU 9001", "hint": "at most 9000", "blame": "host"}
    assert [(one["id"], one["blame"]) for one in answers[2:]] == [
        *((3, "us"), (4, "us"), (5, "user"), (6, "user"), (7, "user"), (8, "user")),
        *[(None, "user")] * 5,
    ]
    assert answers[2]["error"] == "unexpected ValueError"
    assert answers[3]["error"] == "unexpected KeyError: 0"
    shown = json.dumps(answers) + "".join(capfd.readouterr())
    assert SECRET not in shown
    assert "in _refuse" in shown, "where it happened goes to standard error"


def test_a_reader_that_has_gone_ends_the_service() -> None:
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes, "wb", buffering=0) as out:
        rpc.serve({"set": _refuse}, iter([b'{"id": 1, "method": "set"}\n'] * 3), out)
