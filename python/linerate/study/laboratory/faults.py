"""The faults of a case: checked against its topology and the length of its run, and injected by the run's clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from linerate.errors import UserError
from linerate.lab import Lab
from linerate.lab.faults import FaultPlayer
from linerate.results import TimedEvent
from linerate.san import Fault, Topology, links_hit
from linerate.settings import FAULTS, find
from linerate.study.model import Settings, Workload


def faults_of(settings: Settings) -> tuple[Fault, ...]:
    """The faults among a case's settings. Raises UserError."""
    found: tuple[Fault, ...] = find(FAULTS).meaning(settings.get(FAULTS, ""))
    return found


def check_faults(topology: Topology, settings: Settings, elapsed_s: float) -> None:
    """Raises UserError for a fault that hits nothing, or begins after the end of the run."""
    for fault in faults_of(settings):
        links_hit(topology, fault)
        if fault.at_s >= elapsed_s:
            raise UserError(f"{fault}: the measured time ends after {elapsed_s:g} s", "let it begin earlier")


class FaultTimeline:
    """Injects the faults of a case during its run; see `linerate.run.Beside`.

    They happen on a thread of their own, so that neither the load nor its intervals wait for the lab.
    """

    def __init__(self, lab: Lab, faults: Sequence[Fault], workload: Workload) -> None:
        """Raises UserError for a fault whose target the lab does not have."""
        self._player = FaultPlayer(lab, [_timed(fault, workload) for fault in faults], self._note)
        self._happened: deque[tuple[str, str, int]] = deque()
        self._started_ns = 0

    def begin(self, started_monotonic_ns: int) -> None:
        """See `Beside`."""
        self._started_ns = started_monotonic_ns
        self._player.start(started_monotonic_ns)

    def events(self) -> Iterator[TimedEvent]:
        """See `Beside`. What the lab refused is raised at the end."""
        while self._happened:
            kind, label, at_ns = self._happened.popleft()
            yield TimedEvent(at_s=(at_ns - self._started_ns) / 1e9, kind=kind, message=label)

    def end(self) -> None:
        """See `Beside`. Heals what is in force. Raises what the lab refused: the run was not what was asked for."""
        self._player.stop()

    def _note(self, fault: Fault, what: str, at_ns: int) -> None:
        self._happened.append((what, fault.label, at_ns))


def _timed(fault: Fault, workload: Workload) -> Fault:
    """The fault on the run's clock."""
    lasts_s = workload.elapsed_s - fault.at_s if fault.for_s is None else fault.for_s
    return fault.model_copy(update={"at_s": workload.warmup_s + fault.at_s, "for_s": lasts_s})
