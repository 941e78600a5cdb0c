"""The keeper's conversation with the fabric process: numbered questions, and each answer to its own."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from typing import Any

from linerate.errors import HostError
from linerate.lab import protocol
from linerate.lab.fabric.spec import FabricSpec

_ANSWER_TIMEOUT_S = 20.0
_PIECE_BYTES = 1 << 16


class Channel:
    """A fabric process that serves. It ends when its standard input closes, so also with the keeper."""

    def __init__(self, spec: FabricSpec) -> None:
        """Starts the process and waits until its interfaces are there. Raises what it answers."""
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "linerate.lab.fabric"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,  # a detached lab may hold nothing of the terminal
            bufsize=0,
        )
        self._heard = b""
        self._asked = 0
        self._send(spec.model_dump(mode="json"))
        self._answer(0, "ready")

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def ask(self, request: str, body: dict[str, Any], answer: str) -> Any:
        """One request and its answer. Raises what the fabric refuses, and HostError when it does not answer in time.

        An answer that comes later than that is nobody's any more.
        """
        self._asked += 1
        self._send({"id": self._asked, request: body})
        return self._answer(self._asked, answer)

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        left = memoryview(json.dumps(message).encode() + b"\n")
        try:
            while left:
                left = left[self._process.stdin.write(left) :]
        except BrokenPipeError:
            pass  # the missing answer tells

    def _answer(self, number: int, answer: str) -> Any:
        deadline = time.monotonic() + _ANSWER_TIMEOUT_S
        while True:
            said = json.loads(self._line(deadline))
            if said.get("id", 0) == number:
                break
        if "error" in said:
            error = said["error"]
            protocol.value_of({"error": error["message"], "hint": error["hint"], "blame": error["blame"]})
        return said[answer]

    def _line(self, deadline: float) -> bytes:
        """The next line, if it is there by then. Raises HostError."""
        assert self._process.stdout is not None
        fd = self._process.stdout.fileno()
        while b"\n" not in self._heard:
            ready, _, _ = select.select([fd], [], [], max(0.0, deadline - time.monotonic()))
            piece = os.read(fd, _PIECE_BYTES) if ready else b""
            if not piece:
                raise HostError(
                    f"the fabric process does not answer: {self._last_words()}", "bring the lab up again"
                )
            self._heard += piece
        line, self._heard = self._heard.split(b"\n", 1)
        return line

    def _last_words(self) -> str:
        assert self._process.stderr is not None
        said = self._process.stderr.read() if self._process.poll() is not None else b""
        return (said or b"").decode(errors="replace").strip() or "no reason given"
