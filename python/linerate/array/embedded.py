"""An array in a process of its own, for a demo or a test.

The process is `python -m linerate.array`: it takes its configuration from standard input, prints its portals as one
JSON line, answers requests line by line and serves until standard input closes. So it ends with whoever started it,
even if that one is killed, and neither a file nor a command line ever holds a secret.
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
import threading
from types import TracebackType
from typing import Any, Self

from linerate.array.config import ArrayChange, ArrayConfig, Target, Volume
from linerate.errors import BY_BLAME, HostError, InternalError, UserError

START_TIMEOUT_S = 30.0
ANSWER_TIMEOUT_S = 10.0
STOP_TIMEOUT_S = 10.0

DEMO_TARGET = "iqn.2026-11.lab.linerate:demo"


def eight_volumes(size_bytes: int) -> ArrayConfig:
    """One target with eight memory volumes on a loopback port that the kernel chooses."""
    volumes = tuple(Volume(lun=lun, name=f"vol{lun + 1}", size_bytes=size_bytes) for lun in range(8))
    return ArrayConfig(
        name="demo", portals=("127.0.0.1:0",), targets=(Target(name=DEMO_TARGET, volumes=volumes),)
    )


class EmbeddedArray:
    """An array that serves while the `with` block lasts."""

    def __init__(self, config: ArrayConfig) -> None:
        self.config = config
        self.portals: tuple[tuple[str, int], ...] = ()
        self._process: subprocess.Popen[bytes] | None = None
        self._asking = threading.Lock()

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
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "linerate.array"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the load; the array stays until it is told
        )
        try:
            self._await_portals(self._process)
        except BaseException:
            self._stop()
            raise
        return self

    def _await_portals(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(self.config.seam_json().encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            pass  # it died at once; the missing answer below says why
        ready, _, _ = select.select([process.stdout], [], [], START_TIMEOUT_S)
        line = process.stdout.readline() if ready else b""
        if not line:
            process.kill()
            assert process.stderr is not None
            said = process.stderr.read().decode(errors="replace").strip()
            raise HostError(
                f"the embedded array did not start: {said or 'no answer'}", "see the message above"
            )
        answer = json.loads(line)
        if "portals" not in answer:
            raise HostError(f"the embedded array did not start: {answer['error']}", answer["hint"])
        self.portals = tuple((host, port) for host, port in answer["portals"])

    def change(self, change: ArrayChange) -> None:
        """Changes access states while the array serves; initiators are told. Raises UserError: then nothing changes."""
        self._ask({"change": change.model_dump(mode="json")})

    def manage(self, verb: str, **fields: Any) -> dict[str, Any]:
        """Carries a command out (`linerate.array.control.COMMANDS`) and gives its reply. Raises LinerateError."""
        reply: dict[str, Any] = self._ask({"manage": {"verb": verb, **fields}})["reply"]
        return reply

    def stats(self) -> dict[str, Any]:
        """Counters since the start, `by_portal` and `by_session`; see `_core.Array.stats`."""
        stats: dict[str, Any] = self._ask({"stats": True})["stats"]
        return stats

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        process = self._process
        if process is None:
            raise UserError("the embedded array does not run", "ask it inside its `with` block")
        assert process.stdin is not None
        assert process.stdout is not None
        with self._asking:
            try:
                process.stdin.write(json.dumps(request).encode() + b"\n")
                process.stdin.flush()
            except BrokenPipeError:
                pass  # the missing answer below says so
            ready, _, _ = select.select([process.stdout], [], [], ANSWER_TIMEOUT_S)
            line = process.stdout.readline() if ready else b""
        if not line:
            raise HostError("the embedded array does not answer", "see whether its process still runs")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise BY_BLAME[answer["blame"]](answer["error"], answer["hint"])
        return answer

    def kill(self) -> None:
        """Ends the process without ceremony, as a power cut would."""
        if self._process is not None:
            self._process.kill()

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            process.kill()
            process.wait()
            raise InternalError("the embedded array did not stop when told and was killed") from error
        finally:
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops the process; nothing is left behind."""
        self._stop()
