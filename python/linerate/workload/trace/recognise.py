"""Which form of trace a file has, from its first line."""

from __future__ import annotations

import re
from typing import Literal

TraceForm = Literal["iolog", "blkparse", "snia"]
IOLOG_HEADER = "fio version "
EVENT = re.compile(
    r"(?P<device>\d+,\d+)\s+(?P<cpu>-?\d+)\s+(?P<sequence>-?\d+)\s+(?P<time>-?\d+\.\d{9})\s+(?P<pid>-?\d+)\s+"
    r"(?P<action>[A-Za-z]{1,3})(?:\s+(?P<rwbs>[RWDFASMNBCPEHLZ]+))?(?:\s+(?P<rest>.*))?$"
)
"""An event of blkparse."""
SNIA_COLUMNS = ("timestamp", "hostname", "disknumber", "type", "offset", "size", "responsetime")
_NEEDED = frozenset(SNIA_COLUMNS[:-1])
_IOLOG = re.compile(r"fio version \d+ iolog\s*$")
_SNIA = re.compile(r"\d{1,20}\s*,[^,]*,\s*\d+\s*,\s*[A-Za-z]+\s*,\s*-?\d+\s*,\s*-?\d+\s*(,|$)")


def form_of(line: str) -> TraceForm | None:
    """The form whose first line this is; None: of no trace."""
    if _IOLOG.match(line):
        return "iolog"
    if EVENT.match(line):
        return "blkparse"
    return "snia" if _SNIA.match(line) or has_columns(names_in(line)) else None


def names_in(line: str) -> list[str]:
    """The names of columns in the first line of a CSV, in lower case."""
    return [name.strip().strip('"').lower() for name in line.split(",")]


def has_columns(names: list[str]) -> bool:
    """Whether the columns that an I/O needs are among these."""
    return set(names) >= _NEEDED


def form_of_head(head: bytes) -> TraceForm | None:
    """The same for the first bytes of a file."""
    lines = (line.strip() for line in head.decode("utf-8-sig", "replace").splitlines())
    return form_of(next((line for line in lines if line), "")[:4096])
