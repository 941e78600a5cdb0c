"""TCP_INFO of this process's own connections, over the loopback."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from linerate.probe.tcp_state import TcpState, TcpWatch

from tests.support import need

DATA_BYTES = 1 << 20
WINDOW_BYTES = 64 << 10


@contextmanager
def connected(address: str, receive_bytes: int = 0) -> Iterator[tuple[socket.socket, socket.socket]]:
    """A connection and its far end, which has accepted it."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        listener = socket.create_server((address, 0), family=family)
    except OSError as error:
        need.missing(f"a socket on {address}: {error}")
    with listener, socket.socket(family, socket.SOCK_STREAM) as near:
        if receive_bytes:
            near.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        near.connect(listener.getsockname()[:2])
        far, _ = listener.accept()
        with far:
            yield near, far


def seen(near: socket.socket) -> TcpState | None:
    address, port = near.getpeername()[:2]
    watch = TcpWatch(address, port)
    watch.look()
    return watch.state()


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_own_connections_are_found(address: str) -> None:
    with connected(address) as (near, far):
        near.sendall(bytes(WINDOW_BYTES))
        far.recv(WINDOW_BYTES, socket.MSG_WAITALL)
        state = seen(near)
    assert state is not None, "no sock_diag"
    assert state.connections == 1
    assert state.rtt_ms > 0
    assert state.mss_bytes > 500
    assert state.congestion_window_bytes >= state.mss_bytes
    assert min(state.receive_window_bytes, state.peer_window_bytes, state.send_buffer_bytes) > 4096
    assert 0 <= state.busy_percent <= 100


def test_a_small_receive_buffer_is_a_small_window() -> None:
    with connected("127.0.0.1") as (near, _):
        wide = seen(near)
    with connected("127.0.0.1", 8192) as (near, _):
        small = seen(near)
    assert wide is not None
    assert small is not None
    assert small.receive_window_bytes < 16_384 < wide.receive_window_bytes


def test_a_peer_that_reads_nothing_is_a_full_window() -> None:
    with connected("127.0.0.1") as (near, _):
        near.setblocking(False)
        for _ in range(100):
            try:
                near.send(bytes(DATA_BYTES))
            except BlockingIOError:
                break
        # The kernel counts this time in milliseconds.
        time.sleep(0.05)
        state = seen(near)
    assert state is not None
    assert state.rwnd_limited_percent > 0


def test_connections_of_other_processes_are_not_ours() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        connect = (
            f"import socket, sys; it = socket.create_connection(('127.0.0.1', {port})); print(flush=True); "
            "sys.stdin.read()"
        )
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen([sys.executable, "-c", connect], text=True, **pipes) as other:
            assert other.stdout is not None
            assert other.stdin is not None
            other.stdout.readline()
            watch = TcpWatch("127.0.0.1", port)
            watch.look()
            other.stdin.close()
    assert watch.state() is None
