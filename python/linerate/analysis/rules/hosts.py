"""Rules about several hosts that load together: are all of them there, and do their clocks agree?"""

from __future__ import annotations

from collections.abc import Iterator

from linerate.analysis.rules.base import Doubt, StepRule, StepView, caution, note
from linerate.results import TimedEvent

LOST, CLOCK = "host_lost", "host_clock"
"""Kinds of events that a load of several hosts reports."""
WALL_CLOCKS_APART_MAX_S = 1.0
"""Logs of hosts can be read beside each other up to here; intervals are laid over each other by other clocks."""


def _of_kind(step: StepView, kind: str) -> list[TimedEvent]:
    return [event for event in step.run.events if event.kind == kind and event.step == step.record.key]


def _lost(step: StepView) -> Iterator[Doubt]:
    if events := _of_kind(step, LOST):
        hosts = len(step.record.facts.get("cluster", ()))
        yield caution(
            "; ".join(event.message for event in events),
            f"the totals have nothing of {len(events)} of {hosts} hosts, and the rates from {events[0].at_s:.1f} s on",
            "see that the host is up, and run it again",
        )


def _clock_moved(step: StepView) -> Iterator[Doubt]:
    if events := _of_kind(step, CLOCK):
        hosts = len(step.record.facts.get("cluster", ()))
        yield caution(
            "; ".join(event.message for event in events),
            f"the intervals of {len(events)} of {hosts} hosts are beside those of the others by up to that much; "
            "averages over the whole step are not",
            "was the host or its virtual machine paused? Run it again",
        )


def _wall_clocks(step: StepView) -> Iterator[Doubt]:
    apart_s = {
        name: known["wall_clock_offset_ns"] / 1e9
        for name, known in step.record.facts.get("cluster", {}).items()
        if abs(known.get("wall_clock_offset_ns", 0)) / 1e9 > WALL_CLOCKS_APART_MAX_S
    }
    if apart_s:
        shown = ", ".join(
            f"{name} is {abs(value):.1f} s {'ahead' if value > 0 else 'behind'}"
            for name, value in apart_s.items()
        )
        yield note(
            f"hosts disagree about the time of day: {shown}; no figure is changed, intervals are laid over each other "
            "by clocks that were compared at the start",
            "mind it when reading logs of these hosts, or start NTP there",
        )


RULES = (
    StepRule("hosts-lost", _lost),
    StepRule("host-clock-moved", _clock_moved),
    StepRule("wall-clocks-apart", _wall_clocks),
)
