"""The rows of the table of events: what happened, and what caused it in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from linerate.results import TimedEvent

PLANNED = "planned fault"
RECOVERY_S = 10.0
"""So long after a fault is healed, paths may still report it: a session retries before it gives up."""
_FAULTS = ("fault", "healed")
_CAUSES = {"user": "input", "peer": "array or network", "host": "load host", "us": "Linerate"}


@dataclass(frozen=True, slots=True)
class EventRow:
    """An event and its cause: a planned fault, or who is at fault in words; empty where nothing failed."""

    event: TimedEvent
    cause: str


def event_rows(events: Iterable[TimedEvent]) -> Iterator[EventRow]:
    """Each event with its cause. While a planned fault lasts, what fails is laid to that fault."""
    began: set[str] = set()
    healed_s: dict[str, float] = {}
    for event in events:
        if event.kind == "fault":
            began.add(event.step)
            healed_s.pop(event.step, None)
        if event.kind == "healed":
            healed_s[event.step] = event.at_s
        planned = event.step in began and event.at_s <= healed_s.get(event.step, event.at_s) + RECOVERY_S
        if event.kind in _FAULTS or (planned and event.blame in ("peer", "host")):
            yield EventRow(event, PLANNED)
        else:
            yield EventRow(event, _CAUSES.get(event.blame, event.blame))
