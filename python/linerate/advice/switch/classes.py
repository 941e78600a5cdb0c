"""What priority flow control (802.1Qbb) and transmission selection (802.1Qaz) of a switch are made of."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

ISCSI_PRIORITY = "4"
"""What DCB tools give to iSCSI where nothing else is agreed (seed 001, line 437)."""
PRIORITIES = "01234567"
_NUMBERS = re.compile(r"(\d)(?:\s*-\s*(\d))?")


@dataclass(frozen=True, slots=True)
class PortPfc:
    """Priority flow control of a port. `missing` says what keeps it from its work; empty if nothing does."""

    state: Literal["on", "off", "negotiated"]
    no_drop: frozenset[str] = frozenset()
    missing: str = ""


@dataclass(frozen=True, slots=True)
class SwitchDcb:
    """Ports by name; what is defined and used by no port; the shares of each schedule in percent.

    A share of None is a class without a share of its own: it gets the rest.
    """

    ports: Mapping[str, PortPfc]
    unused: Sequence[str] = ()
    schedules: Mapping[str, Sequence[int | None]] = field(default_factory=dict)
    iscsi_share_percent: int | None = None


def priorities(text: str) -> frozenset[str]:
    """The digits of a list such as `0-3,5-7`."""
    found: set[str] = set()
    for first, last in _NUMBERS.findall(text):
        found |= {str(number) for number in range(int(first), int(last or first) + 1)}
    return frozenset(found)


def percent(text: str | None) -> int | None:
    """The number that a text begins with."""
    match = re.match(r"\d{1,3}\b", text or "")
    return int(match[0]) if match else None


def is_wrong(shares: Sequence[int | None]) -> bool:
    """Whether shares cannot be right: more than the line, or less with no class to take the rest."""
    total = sum(share or 0 for share in shares)
    return total > 100 or (total < 100 and None not in shares)
