"""Tells how much of a long trace was read: a bar on a terminal, a line now and then elsewhere, both on stderr."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import typer

LINE_EVERY_S = 10.0


@contextmanager
def telling_of_reading(name: str) -> Iterator[Callable[[float], None]]:
    """Gives what hears the share that was read, 0 to 1. Nothing is shown of what is read at once."""
    with ExitStack() as stack:
        yield _Reading(name, stack)


class _Reading:
    def __init__(self, name: str, stack: ExitStack) -> None:
        self._name = name
        self._stack = stack
        self._show: Callable[[float], None] | None = None

    def __call__(self, done: float) -> None:
        if self._show is None:
            self._show = self._bar() or _Lines(self._name)
        self._show(done)

    def _bar(self) -> Callable[[float], None] | None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        out = Console(stderr=True)
        if not out.is_terminal:
            return None
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        progress = self._stack.enter_context(Progress(*columns, console=out, transient=True))
        task = progress.add_task(f"reading {self._name}", total=1.0)
        return lambda done: progress.update(task, completed=done)


class _Lines:
    """For a log: a line every few seconds."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._next = time.monotonic() + LINE_EVERY_S

    def __call__(self, done: float) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + LINE_EVERY_S
            typer.echo(f"reading {self._name}: {done:.0%}", err=True)
