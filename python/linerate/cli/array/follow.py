"""Tells how far the background work of a RAID set or a replication is, until it is done or the user has seen enough."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import typer

from linerate.cli.progress import telling

if TYPE_CHECKING:
    from linerate.array.control import ArrayReport, ControlClient
    from linerate.array.control.report import RaidSetReport

_Found = TypeVar("_Found")

PERIOD_S = 0.5
QUIET_LOOKS = 3


def raid_set_of(report: ArrayReport, name: str) -> RaidSetReport | None:
    """The RAID set of that name."""
    return next((one for one in report.storage.raid_sets if one.name == name), None)


def follow_raid_set(client: ControlClient, name: str) -> RaidSetReport | None:
    """Waits until a RAID set has nothing to do in the background; gives what it says then.

    Ctrl-C ends the waiting only: the work goes on in the array.
    """

    quiet = 0

    def look() -> tuple[RaidSetReport | None, tuple[str, float] | None]:
        nonlocal quiet
        found = raid_set_of(client.report(), name)
        if found is None or (found.task is None and found.state == "optimal"):
            return found, None
        if found.task is not None:
            quiet = 0
            return found, (f"{found.task.kind} {name}", found.task.done)
        quiet += 1  # between two disks that are filled one after the other nothing goes on for a moment
        return found, (f"{found.state} {name}", 0.0) if quiet < QUIET_LOOKS else None

    return follow(look)


def follow(look: Callable[[], tuple[_Found, tuple[str, float] | None]]) -> _Found:
    """Looks until nothing is going on any more."""
    try:
        with telling() as tell:
            while True:
                found, going = look()
                if going is None:
                    return found
                tell(*going)
                threading.Event().wait(PERIOD_S)
    except KeyboardInterrupt:
        typer.echo("not waiting any longer; it goes on in the array: linerate array show", err=True)
        raise
