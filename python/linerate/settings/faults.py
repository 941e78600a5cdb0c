"""The setting `faults`: what fails while a case runs.

A case's faults are one text among its settings, "cable h1.p0 at 3s for 4s; switch sw1 at 9s". So a case inherits them
from the baseline, can differ in them, and is refused for them like for any other setting.
"""

from __future__ import annotations

from collections.abc import Iterable

from linerate.san import Fault, parse_fault
from linerate.setting import Value, Written
from linerate.settings.san_setting import SanSetting

FAULTS = "faults"
_SEPARATOR = "; "


def faults_text(faults: Iterable[Fault]) -> str:
    """Faults as the value of the setting."""
    return _SEPARATOR.join(map(str, faults))


def _parse_faults(value: Value) -> tuple[Fault, ...]:
    if not isinstance(value, str):
        raise ValueError(value)
    return tuple(parse_fault(text) for text in value.split(_SEPARATOR.strip()) if text.strip())


SETTINGS = (
    SanSetting(
        name=FAULTS,
        title="Faults",
        applier="faults",
        kind=Written('faults, for example "cable h1.p0 at 3s for 4s"', _parse_faults, faults_text),
        default="none",
        doc="""What fails during the run: a cable, a switch, an array's port or controller, one direction of a
        link, its MTU, an address. Times count from the end of the warm-up. A fault without an end lasts until
        the run ends. Several faults are separated by semicolons.""",
    ),
)
