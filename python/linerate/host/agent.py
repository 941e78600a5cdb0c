"""The agent of a study on another host: it holds settings of this host. Requests and answers are `linerate.rpc`.

    {"id": 1, "method": "open", "params": {"name": "stor1", "devices": ["eth2"]}}
    {"id": 1, "result": {"linerate": "0.4.0", "kernel": "6.12.9"}}
    {"id": 2, "method": "hold", "params": {"settings": {"mtu": 9000, "toe": true}}}
    {"id": 2, "result": {"readback": {"mtu": 9000}, "refused": {"toe": "Linux has no TCP offload engine ..."}}}
    {"id": 3, "method": "restore", "params": {}}
    {"id": 3, "error": "could not be put back: ...", "hint": "...", "blame": "host"}

Everything is put back when the input ends. After a kill, `linerate host restore` on this host puts it back.
"""

from __future__ import annotations

import platform
import signal
import sys
from pathlib import Path
from typing import Any

from linerate import _core, rpc
from linerate.errors import UserError
from linerate.host.host_settings import HostSettings
from linerate.host.journal import HostJournal
from linerate.host.journal_index import state_folder
from linerate.host.namespace import namespace_cookie
from linerate.host.target import HostTarget
from linerate.interrupt import ENDING


def serve() -> None:
    """Answers until the input ends or a signal comes; then puts back what was changed.

    Raises HostError when something cannot be put back.
    """
    for number in ENDING:
        signal.signal(number, signal.default_int_handler)
    agent = _Agent()
    try:
        rpc.serve(agent.methods, sys.stdin.buffer, sys.stdout.buffer)
    except KeyboardInterrupt:
        pass  # as the end of the input
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
        self._journal: HostJournal | None = None
        self._settings: HostSettings | None = None
        self.methods: rpc.Methods = {"open": self.open, "hold": self.hold, "restore": self.restore}

    def open(self, name: str, devices: list[str]) -> dict[str, str]:
        """Opens the devices. Changes that a killed process left are put back first."""
        if self._settings is not None:
            raise UserError(
                "the devices are open already", "open comes first and once, then hold and restore"
            )
        self._journal = HostJournal(journal_path())
        self._settings = HostSettings(HostTarget(name, tuple(devices)), self._journal)
        self._settings.restore()
        return {"linerate": _core.__version__, "kernel": platform.release()}

    def hold(self, settings: dict[str, Any]) -> dict[str, Any]:
        """See `HostSettings.hold`."""
        done = self._opened().hold(settings)
        return {"readback": dict(done.readback), "refused": dict(done.refused)}

    def restore(self) -> None:
        """See `HostSettings.restore`."""
        self._opened().restore()

    def _opened(self) -> HostSettings:
        if self._settings is None:
            raise UserError("no devices are open", "open comes first and once, then hold and restore")
        return self._settings

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
