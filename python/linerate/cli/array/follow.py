"""Tells how far the background work of a RAID set or a replication is, until it is done or the user has seen enough."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TypeVar

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from linerate.cli.console import console

if TYPE_CHECKING:
    from linerate.array.control import ArrayReport, ControlClient
    from linerate.array.control.report import RaidSetReport

_Found = TypeVar("_Found")

PERIOD_S = 0.5
LINE_EVERY_S = 10.0
QUIET_LOOKS = 3


class Teller(Protocol):
    """The stream that shows progress."""

    def __call__(self, what: str, done: float) -> None:
        """`done` is a share, 0 to 1."""


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
        with _telling() as tell:
            while True:
                found, going = look()
                if going is None:
                    return found
                tell(*going)
                threading.Event().wait(PERIOD_S)
    except KeyboardInterrupt:
        typer.echo("not waiting any longer; it goes on in the array: linerate array show", err=True)
        raise


@contextmanager
def _telling() -> Iterator[Teller]:
    """A bar on a terminal, a line now and then in a pipe."""
    out = console()
    if not out.is_terminal:
        yield _Lines()
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=out, transient=True) as progress:
        task = progress.add_task("", total=1.0)
        yield lambda what, done: progress.update(task, description=what, completed=done)


class _Lines:
    """Progress for a log: a line at the start and then every few seconds."""

    def __init__(self) -> None:
        self._next = 0.0

    def __call__(self, what: str, done: float) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + LINE_EVERY_S
            typer.echo(f"{what}: {done:.0%}")
