"""An array in a process of its own, for a demo or a test.

The process is `python -m linerate.array`. It takes its configuration and requests from standard input (`linerate.rpc`)
and serves until that closes. It ends with the process that started it, even if that is killed. No file and no command
line holds a secret.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from linerate import rpc
from linerate.array.config import ArrayChange, ArrayConfig, TargetConfig, VolumeConfig
from linerate.errors import InternalError, LinerateError, UserError

START_TIMEOUT_S = 30.0
ANSWER_TIMEOUT_S = 10.0
STOP_TIMEOUT_S = 10.0

_PEER = rpc.Peer(
    "the embedded array",
    late_hint="see whether its process still runs",
    gone_hint="see the message above, and start it again",
)

DEMO_TARGET = "iqn.2026-11.lab.linerate:demo"


def eight_volumes(size_bytes: int) -> ArrayConfig:
    """One target with eight memory volumes on a loopback port that the kernel chooses."""
    volumes = tuple(VolumeConfig(lun=lun, name=f"vol{lun + 1}", size_bytes=size_bytes) for lun in range(8))
    return ArrayConfig(
        name="demo", portals=("127.0.0.1:0",), targets=(TargetConfig(name=DEMO_TARGET, volumes=volumes),)
    )


class EmbeddedArray:
    """An array that serves while the `with` block lasts."""

    def __init__(self, config: ArrayConfig) -> None:
        self.config = config
        self.portals: tuple[tuple[str, int], ...] = ()
        self._process: rpc.Process | None = None

    @property
    def pid(self) -> int:
        """Process id of the array."""
        assert self._process is not None
        return self._process.pid

    def url(self, lun: int | str = "", *, target: int = 0, portal: int = 0) -> str:
        """URL of a LUN, or of the target when no LUN is given."""
        host, port = self.portals[portal]
        shown = f"[{host}]" if ":" in host else host
        return f"iscsi://{shown}:{port}/{self.config.targets[target].name}" + (f"/{lun}" if lun != "" else "")

    def __enter__(self) -> Self:
        """Starts the process and waits for its portals."""
        self._process = rpc.Process(
            _PEER, [sys.executable, "-P", "-m", "linerate.array"], timeout_s=ANSWER_TIMEOUT_S
        )
        try:
            config = json.loads(self.config.seam_json())
            portals = self._process.ask("start", config, timeout_s=START_TIMEOUT_S)
        except LinerateError as error:
            self._stop()
            raise type(error)(f"the embedded array did not start: {error.message}", error.hint) from error
        except BaseException:
            self._stop()
            raise
        self.portals = tuple((host, port) for host, port in portals)
        return self

    def change(self, change: ArrayChange) -> None:
        """Changes access states while the array serves; initiators are told. Raises UserError: then nothing changes."""
        self._ask("change", change.model_dump(mode="json"))

    def manage(self, verb: str, **fields: Any) -> dict[str, Any]:
        """Carries a command out (`linerate.array.control.COMMANDS`) and gives its reply. Raises LinerateError."""
        reply: dict[str, Any] = self._ask("manage", {"verb": verb, **fields})
        return reply

    def stats(self) -> dict[str, Any]:
        """Counters since the start, `by_portal` and `by_session`; see `_core.Array.stats`."""
        stats: dict[str, Any] = self._ask("stats")
        return stats

    def page_faults(self) -> int:
        """Pages that the kernel had to give to the process or fetch for it so far: getrusage(2)."""
        pages: int = self._ask("page_faults")
        return pages

    def _ask(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        if self._process is None:
            raise UserError("the embedded array does not run", "use it inside its `with` block")
        return self._process.ask(method, params)

    def kill(self) -> None:
        """Ends the process without ceremony, as a power cut would."""
        if self._process is not None:
            self._process.kill()

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is not None and not process.close(STOP_TIMEOUT_S):
            raise InternalError("the embedded array did not stop and was killed")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops the process; nothing is left behind."""
        self._stop()
