"""The loop of a supervisor: requests on the lab's socket, signals, flapping links, and the end of its own command."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import sys
import time

from linerate import rpc
from linerate.errors import UserError
from linerate.lab import system
from linerate.lab.supervisor.service import LabService

_REQUEST_BYTES_MAX = 1 << 20
_SEND_TIMEOUT_S = 5.0
"""A command that does not read its answer is hung up on."""


class Loop:
    """Serves until it is told to end, by `down`, by SIGTERM, or, when attached, by its standard input closing."""

    def __init__(self, listener: socket.socket, service: LabService, *, attached: bool) -> None:
        self.attached = attached
        self._listener = listener
        self._service = service
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ, self._accept)
        self._signals, wake = socket.socketpair()
        wake.setblocking(False)
        self._wake = wake
        signal.set_wakeup_fd(wake.fileno())
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        self._selector.register(self._signals, selectors.EVENT_READ, self._signalled)
        if attached:
            self._selector.register(sys.stdin, selectors.EVENT_READ, self._service.down)

    def run(self) -> None:
        """Returns when the lab shall end."""
        self._reap()
        while not self._service.told_to_end:
            now_ns = time.monotonic_ns()
            turns_ns = self._service.faults.turn(now_ns)
            wait_s = None if turns_ns is None else max(0.0, (turns_ns - now_ns) * 1e-9)
            for key, _ in self._selector.select(wait_s):
                key.data()

    def _signalled(self) -> None:
        if signal.SIGTERM in self._signals.recv(4096):
            self._service.down()
        self._reap()

    def _reap(self) -> None:
        """The first process of a process namespace is the parent of all orphans in it."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._service.child_ended(pid, status)

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        connection.settimeout(_SEND_TIMEOUT_S)
        _, uid = system.peer_of(connection)
        if uid != os.geteuid():
            refusal = UserError("the lab belongs to another user", "use a lab of your own: linerate lab up")
            _send(connection, rpc.error_line(refusal))
            connection.close()
            return
        caller = _Caller(connection, self._service)
        self._selector.register(connection, selectors.EVENT_READ, lambda: self._hear(caller))

    def _hear(self, caller: _Caller) -> None:
        if not caller.hear():
            self._selector.unregister(caller.connection)
            caller.connection.close()


class _Caller:
    """A command that is connected, and what it has said of its next request so far."""

    def __init__(self, connection: socket.socket, service: LabService) -> None:
        self.connection = connection
        self._service = service
        self._said = b""

    def hear(self) -> bool:
        """Answers every whole request that has arrived; False when the command has hung up or talks nonsense."""
        try:
            heard = self.connection.recv(65_536)
        except OSError:
            return False
        self._said += heard
        while b"\n" in self._said:
            line, self._said = self._said.split(b"\n", 1)
            if not _send(self.connection, rpc.answer(line, self._service.methods)):
                return False
        return bool(heard) and len(self._said) < _REQUEST_BYTES_MAX


def _send(connection: socket.socket, answer: bytes) -> bool:
    try:
        connection.sendall(answer)
    except OSError:
        return False
    return True
