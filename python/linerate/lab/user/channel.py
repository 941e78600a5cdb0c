"""The supervisor's requests to the fabric process."""

from __future__ import annotations

import sys

from linerate import rpc
from linerate.lab.fabric.spec import FabricSpec

_ANSWER_TIMEOUT_S = 20.0
_END_TIMEOUT_S = 10.0
_PEER = rpc.Peer("the fabric process", late_hint="bring the lab up again", gone_hint="bring the lab up again")


class Channel(rpc.Process):
    """A fabric process that serves. It ends when its standard input closes, so also with the supervisor."""

    def __init__(self, spec: FabricSpec) -> None:
        """Starts the process and waits until its interfaces are there. Raises what it answers."""
        command = [sys.executable, "-P", "-m", "linerate.lab.fabric"]
        super().__init__(_PEER, command, timeout_s=_ANSWER_TIMEOUT_S)
        try:
            self.ask("start", spec.model_dump(mode="json"))
        except BaseException:
            self.close(_END_TIMEOUT_S)
            raise
