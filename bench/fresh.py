"""An array that was just started: its first second against its tenth, when every page of its disks has been used."""

from __future__ import annotations

from collections.abc import Iterator

from . import processes
from .cases import Result, Setting
from .engine import KINDS, WRITE, Kind, new_volume

SECONDS = 10
ROUNDS_MAX = 5
"""Every round takes `SECONDS`, on an array of its own."""


def fresh(setting: Setting) -> Iterator[Result]:
    """4K writes to RAID 5 and to a thin volume on RAID 6, of disks in memory that were never written."""
    for kind in KINDS:
        if kind.has_parity:
            ratios = tuple(first_of_tenth(setting, kind) for _ in range(min(setting.rounds, ROUNDS_MAX)))
            yield Result(f"{WRITE.name}: {kind.name}, new: first second / tenth", 0.8, ratios)


def first_of_tenth(setting: Setting, kind: Kind) -> float:
    """I/Os of the first second of an array over those of its tenth."""
    with new_volume(setting, kind) as server:
        report = processes.load(setting.directory, processes.run_spec(WRITE, server.urls, SECONDS))
    seconds: list[int] = report["interval_ios"]
    return seconds[0] / seconds[SECONDS - 1]
