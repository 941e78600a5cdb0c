"""Settings of a host elsewhere: asks the process there that holds them, `linerate host hold`, by way of a command."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from linerate import _core
from linerate.cluster import Place
from linerate.errors import HostError, InternalError, LinerateError, PeerError, UserError
from linerate.host import HostTarget
from linerate.study.laboratory.base import SetUp
from linerate.study.model import Settings

_ANSWER_S = 120.0
"""Some adapters are away for many seconds after each of several changes."""
_END_S = 15.0
_BLAMED: dict[str, type[LinerateError]] = {
    error.blame: error for error in (UserError, PeerError, HostError, InternalError)
}


class RemoteSettings:
    """As `HostSettings`, of another host. It puts everything back by itself when this process is gone."""

    def __init__(self, place: Place, target: HostTarget, *, sudo: bool = False) -> None:
        """Starts the process there and opens the devices.

        Raises HostError when the host cannot be reached, UserError when it has another Linerate.
        """
        self._name = target.name
        self._number = 0
        self._rest = b""
        self._scratch = tempfile.TemporaryDirectory(prefix="linerate-host-")
        self._log = Path(self._scratch.name) / "stderr"
        command = (place.python, "-P", "-m", "linerate.cli", "host", "hold")
        try:
            with self._log.open("wb") as log:
                self._process = subprocess.Popen(
                    place.wrap((("sudo", "-n") if sudo else ()) + command),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    start_new_session=True,  # Ctrl-C is for this process, which then asks for everything back
                )
        except OSError as error:
            self._scratch.cleanup()
            raise HostError(
                f"host {target.name}: {error.strerror}: {error.filename}", "install it"
            ) from error
        try:
            self.facts = self._ask(open={"name": target.name, "devices": list(target.devices)})
            if (theirs := self.facts.get("linerate")) != _core.__version__:
                raise UserError(
                    f"host {target.name} has Linerate {theirs}, this machine {_core.__version__}",
                    "install the same version on both",
                )
        except BaseException:
            self.close()
            raise

    def hold(self, settings: Settings) -> SetUp:
        """See `HostSettings.hold`."""
        answer = self._ask(hold=dict(settings))
        return SetUp(answer["readback"], answer["refused"])

    def restore(self) -> None:
        """See `HostSettings.restore`."""
        self._ask(restore=True)

    def close(self) -> None:
        """Ends the process there, which puts everything back. Twice is once."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._scratch.cleanup()

    def _ask(self, **request: object) -> Mapping[str, Any]:
        self._number += 1
        line = json.dumps({"id": self._number, **request}) + "\n"
        if self._process.stdin is None or self._process.stdin.closed:
            raise InternalError(f"host {self._name}: asked after its end")
        try:
            self._process.stdin.write(line.encode())
            self._process.stdin.flush()
        except OSError as error:
            raise self._lost() from error
        answer = self._answer(time.monotonic() + _ANSWER_S)
        if (told := answer.get("error")) is not None:
            raise _BLAMED[told["blame"]](f"host {self._name}: {told['message']}", told["hint"])
        return answer

    def _answer(self, until: float) -> Mapping[str, Any]:
        """The answer to the last question. Older ones, which an interrupt left unread, and what a login shell writes
        are passed over."""
        while True:
            try:
                answer = json.loads(self._line(until))
            except ValueError:
                continue
            if isinstance(answer, dict) and answer.get("id") == self._number:
                return answer

    def _line(self, until: float) -> bytes:
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as ready:
            ready.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._rest:
                if not ready.select(max(until - time.monotonic(), 0.0)):
                    raise HostError(
                        f"host {self._name}: no answer in {_ANSWER_S:g} s",
                        "look at the host: `linerate host restore` there puts its settings back",
                    )
                if not (read := os.read(self._process.stdout.fileno(), 65_536)):
                    raise self._lost()
                self._rest += read
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def _lost(self) -> HostError:
        try:
            code = self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        lines = self._log.read_text("utf-8", errors="replace").strip().splitlines()
        why = lines[-1] if lines else f"it ended with code {code}"
        return HostError(
            f"host {self._name}: the connection for its settings ended: {why}",
            "can it be reached without a password, and is Linerate installed there? "
            "What was changed is put back there; `linerate host restore` on it makes sure",
        )
