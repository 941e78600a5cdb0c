"""The agent of a study on another host: it holds settings of this host. Requests and answers are JSON lines.

    {"id": 1, "open": {"name": "stor1", "devices": ["eth2"]}}
    {"id": 1, "linerate": "0.4.0", "kernel": "6.12.9"}
    {"id": 2, "hold": {"mtu": 9000, "toe": true}}
    {"id": 2, "readback": {"mtu": 9000}, "refused": {"toe": "Linux has no TCP offload engine ..."}}
    {"id": 3, "restore": true}
    {"id": 3, "error": {"blame": "host", "message": "could not be put back: ...", "hint": "..."}}

Everything is put back when the input ends. After a kill, `linerate host restore` on this host puts it back.
"""

from __future__ import annotations

import json
import platform
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

from linerate import _core
from linerate.errors import LinerateError, UserError
from linerate.host.host_settings import HostSettings
from linerate.host.journal import Journal
from linerate.host.journal_index import state_folder
from linerate.host.namespace import namespace_cookie
from linerate.host.target import HostTarget
from linerate.interrupt import ENDING


def serve(asked: Iterable[str] | None = None, answered: TextIO | None = None) -> None:
    """Answers until the input ends or a signal comes; then puts back what was changed.

    Raises HostError when something cannot be put back.
    """
    for number in ENDING:
        signal.signal(number, signal.default_int_handler)
    agent = _Agent()
    out = sys.stdout if answered is None else answered
    try:
        for line in sys.stdin if asked is None else asked:
            out.write(json.dumps(agent.answer(line)) + "\n")
            out.flush()
    except (KeyboardInterrupt, BrokenPipeError):
        pass  # the other end has gone: the same as the end of the input
    finally:
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)
        agent.close()


def journal_path() -> Path:
    """The journal of this network namespace. Each namespace has its own, because they may share a home directory."""
    return state_folder() / f"held-{namespace_cookie() or HostTarget('here').identity()[1]}.jsonl"


class _Agent:
    """The settings that were opened, if any."""

    def __init__(self) -> None:
        self._journal: Journal | None = None
        self._settings: HostSettings | None = None

    def answer(self, line: str) -> dict[str, Any]:
        """The answer to one line."""
        number = None
        try:
            request = _request(line)
            number = request["id"]
            return {"id": number, **self._done(request)}
        except LinerateError as error:
            report = {"blame": error.blame, "message": error.message, "hint": error.hint}
            return {"id": number, "error": report}

    def _done(self, request: dict[str, Any]) -> dict[str, Any]:
        match request:
            case {"open": {"name": str(name), "devices": [*devices]}} if self._settings is None:
                return self._open(HostTarget(name, tuple(map(str, devices))))
            case {"hold": dict(settings)} if self._settings is not None:
                done = self._settings.hold(settings)
                return {"readback": dict(done.readback), "refused": dict(done.refused)}
            case {"restore": True} if self._settings is not None:
                self._settings.restore()
                return {}
        raise UserError("no request, or out of order", "open comes first and once, then hold and restore")

    def _open(self, target: HostTarget) -> dict[str, Any]:
        """Changes of an earlier process that was killed are put back first."""
        self._journal = Journal(journal_path())
        self._settings = HostSettings(target, self._journal)
        self._settings.restore()
        return {"linerate": _core.__version__, "kernel": platform.release()}

    def close(self) -> None:
        """Puts everything back; the journal goes when nothing is left in it."""
        if self._journal is None or self._settings is None:
            return
        try:
            self._settings.restore()
        finally:
            if not self._journal.pending:
                self._journal.path.unlink(missing_ok=True)
            self._journal.close()


def _request(line: str) -> dict[str, Any]:
    try:
        request = json.loads(line)
    except ValueError:
        request = None
    if not isinstance(request, dict) or not isinstance(request.get("id"), int):
        raise UserError("no request", 'write {"id": 1, "open": {"name": "stor1", "devices": ["eth2"]}}')
    return request
