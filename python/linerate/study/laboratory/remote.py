"""Settings of a host elsewhere: asks the process there that holds them, `linerate host hold`, by way of a command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from linerate import _core, rpc
from linerate.cluster import Endpoint
from linerate.errors import HostError, UserError
from linerate.host import HostTarget
from linerate.study.laboratory.base import SetUp
from linerate.study.model import Settings

_ANSWER_TIMEOUT_S = 120.0
"""Some adapters are away for many seconds after each of several changes."""
_END_TIMEOUT_S = 15.0


class RemoteSettings:
    """As `HostSettings`, of another host. It puts everything back by itself when this process is gone."""

    def __init__(self, place: Endpoint, target: HostTarget, *, sudo: bool = False) -> None:
        """Starts the process there and opens the devices.

        Raises HostError when the host cannot be reached, UserError when it has another Linerate.
        """
        peer = rpc.Peer(
            f"host {target.name}: the connection for its settings",
            late_hint="look at the host: `linerate host restore` there puts its settings back",
            gone_hint="can it be reached without a password, and is Linerate installed there? "
            "What was changed is put back there; `linerate host restore` on it makes sure",
            error_prefix=f"host {target.name}: ",
            noisy=True,
        )
        started = place.command("linerate.cli", "host", "hold", sudo=sudo)
        try:
            self._process = rpc.Process(peer, started, timeout_s=_ANSWER_TIMEOUT_S)
        except OSError as error:
            raise HostError(
                f"host {target.name}: {error.strerror}: {error.filename}", "install it"
            ) from error
        try:
            wanted = {"name": target.name, "devices": list(target.devices)}
            self.facts: Mapping[str, Any] = self._process.ask("open", wanted)
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
        answer = self._process.ask("hold", {"settings": dict(settings)})
        return SetUp(answer["readback"], answer["refused"])

    def restore(self) -> None:
        """See `HostSettings.restore`."""
        self._process.ask("restore")

    def close(self) -> None:
        """Ends the process there, which puts everything back. A second call does nothing."""
        self._process.close(_END_TIMEOUT_S)
