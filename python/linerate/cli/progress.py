"""How far a long piece of work is: a bar on a terminal, a line now and then in a pipe."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

LINE_EVERY_S = 10.0


class Teller(Protocol):
    """The stream that shows progress."""

    def __call__(self, what: str, done: float) -> None:
        """`done` is a share, 0 to 1."""


@contextmanager
def telling(*, err: bool = False, waits: bool = False) -> Iterator[Teller]:
    """On standard output, or on standard error. waits: the first line, too, comes after a while."""
    out = Console(highlight=False, stderr=err)
    if not out.is_terminal:
        yield _Lines(err=err, waits=waits)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=out, transient=True) as progress:
        task = progress.add_task("", total=1.0)
        yield lambda what, done: progress.update(task, description=what, completed=done)


class _Lines:
    """For a log: a line every few seconds."""

    def __init__(self, *, err: bool, waits: bool) -> None:
        self._err = err
        self._next = time.monotonic() + LINE_EVERY_S if waits else 0.0

    def __call__(self, what: str, done: float) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + LINE_EVERY_S
            typer.echo(f"{what}: {done:.0%}", err=self._err)
