"""The setting `faults`: what breaks while a case runs.

A case's faults are one text among its settings, "cable h1.p0 at 3s for 4s; switch sw1 at 9s": a case inherits them from
the baseline, differs in them, and is refused for them as for any other setting. Their times count from the end of the
warm-up. One that is not said to end ends with the run.
"""

from __future__ import annotations

from collections.abc import Iterable

from linerate.errors import UserError
from linerate.san import Fault, Topology, links_hit, parse_fault
from linerate.study.model import Settings, SettingValue

FAULTS = "faults"
_APART = "; "


def faults_text(faults: Iterable[Fault]) -> str:
    """Faults as the value of the setting."""
    return _APART.join(map(str, faults))


def parse_faults(value: SettingValue) -> tuple[Fault, ...]:
    """The faults of a setting's value. Raises UserError."""
    if not isinstance(value, str):
        raise UserError(f"{FAULTS}: {value!r} cannot be used", 'write "cable h1.p0 at 3s for 4s"')
    return tuple(parse_fault(text) for text in value.split(_APART.strip()) if text.strip())


def faults_of(settings: Settings) -> tuple[Fault, ...]:
    """Those among a case's settings. Raises UserError."""
    return parse_faults(settings.get(FAULTS, ""))


def check_faults(topology: Topology, settings: Settings, elapsed_s: float) -> None:
    """Raises UserError for a fault that hits nothing, or begins when the run is over."""
    for fault in faults_of(settings):
        links_hit(topology, fault)
        if fault.at_s >= elapsed_s:
            raise UserError(f"{fault}: the measured time ends after {elapsed_s:g} s", "let it begin earlier")
