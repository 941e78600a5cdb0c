"""Runs given free for tests: on volumes that hold nothing, or that a test has made itself."""

from __future__ import annotations

from collections.abc import Callable

from linerate.run import Load, VirtualSan
from linerate.volumes import Cleared, Consent, clear, virtual
from linerate.workload import RunSpec


def cleared(spec: RunSpec) -> Cleared:
    """With any contents of its volumes."""
    return clear([spec], virtual, Consent.nothing()).of(spec)


class Loads(VirtualSan):
    """Starts loads in a way of the test's own."""

    def __init__(self, start: Callable[[Cleared], Load]) -> None:
        self._start = start

    def start(self, cleared: Cleared) -> Load:
        return self._start(cleared)
