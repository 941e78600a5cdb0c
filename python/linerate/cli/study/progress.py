"""How a study is followed while it runs, and what to do when it has ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import typer

from linerate.analysis.verdict import Effect
from linerate.cli.console import console
from linerate.cli.study.lines import StudyLines
from linerate.cli.study.live import StudyLive
from linerate.study import StudyDirectory
from linerate.study.events import StudyEvent


@contextmanager
def following(directory: StudyDirectory, *, json: bool) -> Iterator[Callable[[StudyEvent], None]]:
    """Tells a study's events: every event as JSON for programs, a picture that renews itself on a terminal that can
    move its cursor, else lines."""
    if json:
        yield lambda event: typer.echo(event.model_dump_json())
        return
    out = console()
    if not out.is_terminal or out.is_dumb_terminal:
        yield StudyLines(directory, out).show
        return
    with StudyLive(directory, out) as live:
        yield live.show


def next_line(directory: StudyDirectory, effects: Iterable[Effect]) -> str:
    """The command that comes next: more blocks for what is undecided and can be decided, else a look at the doubts."""
    from linerate.report.study.short import next_command

    command, purpose = next_command(str(directory.path), directory.study.repeat.blocks_max, effects)
    return f"next: {command}  ({purpose})"
