"""The faults of a case, checked against its topology and the length of its run."""

from __future__ import annotations

from linerate.errors import UserError
from linerate.san import Fault, Topology, links_hit
from linerate.settings import FAULTS, find
from linerate.study.model import Settings


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
