"""FaultPlayer: carries faults out at their instants while something else goes on, such as a run."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from linerate.errors import LinerateError
from linerate.san import Fault, links_hit

if TYPE_CHECKING:
    from linerate.lab.lab import Lab

What = Literal["fault", "healed"]
Tell = Callable[[Fault, What, int], None]
"""Called with a fault, what became of it, and when, in ns of the monotonic clock."""

_NS = 1_000_000_000


class FaultPlayer:
    """Lets faults happen, and heal, at their times after an instant. The rest is healed at the end of `with`.

        with FaultPlayer(lab, faults, tell) as player:
            player.start(started_ns)      # when the run began; its `at_s` count from there
            ...

    `tell` is called by the player's own thread. What the lab refuses ends the playing and is raised by `stop`, or at
    the end of the block.
    """

    def __init__(self, lab: Lab, faults: Sequence[Fault], tell: Tell) -> None:
        """Raises UserError for a fault whose target the lab does not have."""
        for fault in faults:
            links_hit(lab.topology, fault)
        self._lab = lab
        self._tell = tell
        self._steps = _steps(faults)
        self._in_force: list[Fault] = []
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._failed: LinerateError | None = None

    def start(self, started_ns: int) -> None:
        """Begins; `started_ns` is the instant, on the monotonic clock, from which the faults' times count."""
        self._thread = threading.Thread(target=self._play, args=(started_ns,), name="faults", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Plays no more and heals what is in force. Twice is once. Raises what the lab refused."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        for fault in tuple(self._in_force):
            self._heal(fault)
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # What ended the block tells more than what the lab then has to say.
        with contextlib.suppress(LinerateError) if error is not None else contextlib.nullcontext():
            self.stop()

    def _play(self, started_ns: int) -> None:
        try:
            for after_ns, fault, what in self._steps:
                wait_s = (started_ns + after_ns - time.monotonic_ns()) / _NS
                if self._over.wait(max(0.0, wait_s)):
                    return
                if what == "healed":
                    self._heal(fault)
                else:
                    at_ns = self._lab.fault(fault)
                    self._in_force.append(fault)
                    self._tell(fault, what, at_ns)
        except LinerateError as error:
            self._failed = error

    def _heal(self, fault: Fault) -> None:
        self._in_force.remove(fault)
        self._tell(fault, "healed", self._lab.heal(fault))


def _steps(faults: Sequence[Fault]) -> list[tuple[int, Fault, What]]:
    """What happens when, in ns since the start; of two at one time healing comes first."""
    steps: list[tuple[int, Fault, What]] = []
    for fault in faults:
        steps.append((round(fault.at_s * _NS), fault, "fault"))
        if fault.for_s is not None:
            steps.append((round((fault.at_s + fault.for_s) * _NS), fault, "healed"))
    return sorted(steps, key=lambda step: (step[0], step[2] == "fault"))
