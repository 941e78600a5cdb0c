"""Requests and answers as JSON lines over pipes or a socket, between Linerate's own processes.

    {"id": 1, "method": "hold", "params": {"settings": {"mtu": 9000}}}
    {"id": 1, "result": {"mtu": 9000}}
    {"id": 2, "error": "no port p7", "hint": "there are p0 and p1", "blame": "user"}

An answer has the number of its request. A request that was given up, by a timeout or by Ctrl-C, may be answered later:
that answer is dropped. An error without a number is about the connection. Lines may hold secrets, so no message of
this module quotes one.
"""

from __future__ import annotations

import fcntl
import inspect
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from linerate.errors import BY_BLAME, HostError, InternalError, LinerateError, UserError

LINE_BYTES_MAX = 1 << 24

_PIECE_BYTES = 1 << 16
_END_TIMEOUT_S = 5.0
_LAST_LINES = 3
_LAST_BYTES = 4096

_KINDS: Mapping[str, type[LinerateError]] = {str(blame): kind for blame, kind in BY_BLAME.items()}

Methods = Mapping[str, Callable[..., Any]]


def answer(line: bytes, methods: Methods) -> bytes:
    """The answer to one request. An exception of the method becomes an error answer."""
    number: int | None = None
    try:
        request = parsed(line)
        if request is None or type(request.get("id")) is not int:
            raise UserError("not a request", 'send one line {"id": NUMBER, "method": NAME, "params": {...}}')
        number = request["id"]
        return _line({"id": number, "result": _result(request, methods)})
    except LinerateError as error:
        return error_line(error, number)
    except Exception as error:
        described = _described(error)
        print("".join(traceback.format_tb(error.__traceback__)) + described, file=sys.stderr, flush=True)
        return error_line(InternalError(described), number)


def error_line(error: LinerateError, number: int | None = None) -> bytes:
    """An error as an answer; without a number it is about the connection."""
    return _line({"id": number, "error": error.message, "hint": error.hint, "blame": error.blame})


def serve(methods: Methods, requests: Iterable[bytes], answers: BinaryIO) -> None:
    """Answers each line until the input ends or the other side has gone."""
    try:
        for line in requests:
            answers.write(answer(line, methods))
            answers.flush()
    except BrokenPipeError:
        pass  # as good as the end of the input


def _result(request: dict[str, Any], methods: Methods) -> Any:
    name, params = request.get("method"), request.get("params", {})
    method = methods.get(name) if isinstance(name, str) else None
    if method is None:
        raise UserError("not a request: unknown method", f"methods are {', '.join(methods)}")
    try:
        bound = inspect.signature(method).bind(**params)
    except TypeError as error:
        raise UserError(f"not a request: wrong parameters of {name}", "see the method's signature") from error
    return method(*bound.args, **bound.kwargs)


def _described(error: Exception) -> str:
    """The text of a ValueError may quote its input, which may be a secret (pydantic's does)."""
    kind = type(error).__name__
    return f"unexpected {kind}" if isinstance(error, ValueError) else f"unexpected {kind}: {error}"


def parsed(line: bytes) -> dict[str, Any] | None:
    """The object in a line; None for any other line."""
    try:
        parsed = json.loads(line)
    except ValueError:
        return None
    return parsed if isinstance(parsed, dict) else None


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"


@dataclass(frozen=True, slots=True)
class Peer:
    """How errors name the side that answers."""

    name: str
    late_hint: str
    gone_hint: str
    error_prefix: str = ""
    """Before the message of an error that it answers."""
    noisy: bool = False
    """Other text may come before its answers, such as the greeting of a login shell."""


class Client:
    """The side that asks. Threads may share it; one waits for the other."""

    def __init__(self, peer: Peer, read_fd: int, write_fd: int, *, timeout_s: float) -> None:
        """The descriptors stay the caller's, to close. A socket is both."""
        self.timeout_s = timeout_s
        self._peer = peer
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._asking = threading.Lock()
        self._number = 0
        self._unsent = b""
        self._received = b""
        for fd in {read_fd, write_fd}:
            fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_NONBLOCK)

    def ask(
        self, method: str, params: Mapping[str, Any] | None = None, *, timeout_s: float | None = None
    ) -> Any:
        """The result. Raises the error that is answered, and HostError for a timeout or the peer's end."""
        limit_s = self.timeout_s if timeout_s is None else timeout_s
        with self._asking:
            self._number += 1
            self._unsent += _line({"id": self._number, "method": method, "params": dict(params or {})})
            try:
                found = self._answer(time.monotonic() + limit_s)
            except TimeoutError as error:
                late = f"{self._peer.name} has not answered in {limit_s:g} s"
                raise HostError(late, self._peer.late_hint) from error
        if "error" in found:
            kind = _KINDS.get(str(found.get("blame")), InternalError)
            raise kind(f"{self._peer.error_prefix}{found['error']}", str(found.get("hint", "")))
        return found["result"]

    def ended(self) -> LinerateError:
        """The error for a peer that has closed its side."""
        return HostError(f"{self._peer.name} has ended", self._peer.gone_hint)

    def _answer(self, deadline_s: float) -> dict[str, Any]:
        """The answer to the last request."""
        while True:
            found = parsed(self._read_line(deadline_s)) or {}
            number = found.get("id")
            if type(number) is not int and number is not None:
                number = 0  # of no request
            whole = "error" in found or "result" in found
            if whole and (number == self._number or (number is None and "error" in found)):
                return found
            if whole and number is not None and 0 < number < self._number:
                continue  # to a request that was given up
            if not self._peer.noisy:
                wrong = "an answer with a wrong number" if whole else "a line that is no answer"
                raise InternalError(f"{self._peer.name} has sent {wrong}", self._peer.gone_hint)

    def _read_line(self, deadline_s: float) -> bytes:
        while b"\n" not in self._received:
            if len(self._received) > LINE_BYTES_MAX:
                raise InternalError(f"{self._peer.name} has sent more than {LINE_BYTES_MAX} bytes in a line")
            self._transfer(deadline_s)
        line, _, self._received = self._received.partition(b"\n")
        return line

    def _transfer(self, deadline_s: float) -> None:
        """Sends and receives what is possible now. A peer that cannot send its late answers would not read either."""
        masks = {self._read_fd: select.POLLIN}
        if self._unsent:
            masks[self._write_fd] = masks.get(self._write_fd, 0) | select.POLLOUT
        poll = select.poll()
        for fd, mask in masks.items():
            poll.register(fd, mask)
        ready = dict(poll.poll(max(0.0, deadline_s - time.monotonic()) * 1e3))
        if not ready:
            raise TimeoutError
        if self._unsent and ready.get(self._write_fd, 0) & ~select.POLLIN:
            self._send()
        if ready.get(self._read_fd, 0) & ~select.POLLOUT:
            self._receive()

    def _send(self) -> None:
        try:
            self._unsent = self._unsent[os.write(self._write_fd, self._unsent) :]
        except BlockingIOError:
            pass
        except OSError:
            self._unsent = b""  # its last answer or the end of its output says why

    def _receive(self) -> None:
        try:
            piece = os.read(self._read_fd, _PIECE_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            raise self.ended() from error
        if not piece:
            raise self.ended()
        self._received += piece


class Process(Client):
    """A client of a process that it starts, which ends when its input is closed."""

    def __init__(self, peer: Peer, command: Sequence[str], *, timeout_s: float) -> None:
        """Starts the process in a session of its own: Ctrl-C is for this process. Raises OSError."""
        self._stderr_fd = os.memfd_create("stderr")
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr_fd,
                start_new_session=True,
                bufsize=0,
            )
        except BaseException:
            os.close(self._stderr_fd)
            raise
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        stdin_fd, stdout_fd = self._process.stdin.fileno(), self._process.stdout.fileno()
        super().__init__(peer, stdout_fd, stdin_fd, timeout_s=timeout_s)

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def ask(
        self, method: str, params: Mapping[str, Any] | None = None, *, timeout_s: float | None = None
    ) -> Any:
        """See `Client.ask`."""
        if self._stderr_fd < 0:
            raise InternalError(f"{self._peer.name} was asked after its end")
        return super().ask(method, params, timeout_s=timeout_s)

    def ended(self) -> LinerateError:
        """With its last words on standard error."""
        code = self._wait(_END_TIMEOUT_S)
        size = os.fstat(self._stderr_fd).st_size
        said = os.pread(self._stderr_fd, _LAST_BYTES, max(0, size - _LAST_BYTES))
        lines = [line.strip() for line in said.decode(errors="replace").splitlines() if line.strip()]
        reason = "; ".join(lines[-_LAST_LINES:]) or _status(code)
        return HostError(f"{self._peer.name} has ended: {reason}", self._peer.gone_hint)

    def kill(self) -> None:
        """Ends the process at once."""
        self._process.kill()

    def close(self, timeout_s: float) -> bool:
        """Closes its input and waits for its end; False when it had to be killed. A second call does nothing."""
        if self._stderr_fd < 0:
            return True
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        in_time = self._wait(timeout_s) is not None
        os.close(self._stderr_fd)
        self._stderr_fd = -1
        return in_time

    def _wait(self, timeout_s: float) -> int | None:
        """Its exit code; None when it had to be killed."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            return None


def _status(code: int | None) -> str:
    if code is not None and code < 0:
        return f"ended by {signal.Signals(-code).name}"
    return f"exit code {code}" if code else "no reason given"
