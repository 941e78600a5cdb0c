"""Names of interfaces as switches and users write them: short forms, lists and ranges."""

from __future__ import annotations

import re
from collections.abc import Iterator

_KINDS = (
    "ethernet",
    "fastethernet",
    "gigabitethernet",
    "tengigabitethernet",
    "twogigabitethernet",
    "fivegigabitethernet",
    "twentyfivegige",
    "fortygige",
    "fiftygige",
    "hundredgige",
    "fourhundredgige",
    "twentyfivegigabitethernet",
    "fortygigabitethernet",
    "hundredgigabitethernet",
)
"""Kinds of ports with a cable. A short form is the first kind that it begins."""
_OTHERS = ("port-channel", "vlan", "loopback", "managementethernet")
_ONE = re.compile(r"([a-z][a-z-]*)(\s*)((?:\d+/)*)(\d+)")
_RANGE = re.compile(r"([a-z][a-z-]*)?(\s*)((?:\d+/)*)(\d+)(?:\s*-\s*(?:[a-z-]+\s*)?((?:\d+/)*)(\d+))?")
_RANGE_MAX = 512
_NAMES_MAX = 4096


def is_physical(name: str) -> bool:
    """Whether an interface is a port with a cable; VLANs, port-channels, loopbacks and management ports are not."""
    match = _ONE.fullmatch(name)
    return match is not None and match[1] in _KINDS


def key(name: str) -> str:
    """The same for all ways to write a name."""
    return name.replace(" ", "")


def members(text: str) -> set[str]:
    """The ports of a list such as `tengigabitethernet 0/1-3,0/7`, each as `key` has it."""
    return {key(name) for name in expanded(text)}


def expanded(text: str) -> list[str]:
    """The interfaces that a name, a list or a range stands for, with their kinds in full.

    A text that is none of these stands for itself. Lists are cut after 4096 names, ranges after 512.
    """
    found: list[str] = []
    kind, blank, folder = "", "", ""
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None or not (match[1] or kind):
            return [text]
        kind, blank = (_in_full(match[1]), match[2]) if match[1] else (kind, blank)
        folder = match[3] or ("" if match[1] else folder)
        if match[5] and match[5] != folder:
            return [text]
        found += _numbered(f"{kind}{blank}{folder}", int(match[4]), int(match[6] or match[4]))
    return found[:_NAMES_MAX]


def _numbered(start: str, first: int, last: int) -> Iterator[str]:
    return (f"{start}{number}" for number in range(first, min(last, first + _RANGE_MAX) + 1))


def _in_full(kind: str) -> str:
    return next((one for one in (*_KINDS, *_OTHERS) if one.startswith(kind)), kind)
