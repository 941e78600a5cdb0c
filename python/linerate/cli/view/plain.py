"""One line per interval, as vdbench prints them: for pipes, logs and terminals that cannot move their cursor."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self, TextIO

from linerate.cli.view.columns import (
    columns_of,
    loaded_text,
    path_lines,
    place,
    started_line,
    volume_lines,
)
from linerate.cli.view.events import (
    AnyEvent,
    Figures,
    Happened,
    IntervalMeasured,
    RunNotice,
    RunStarted,
    StepEnded,
    StepStarted,
    VolumesFound,
)

HEADER_EVERY = 30
_LABEL_WIDTH = 12


class PlainView:
    """Writes and forgets."""

    machine_readable = False

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out if out is not None else sys.stdout
        self._lines = 0
        self._columns = columns_of(paced=False)
        self._first = 0
        self._last = 0

    def show(self, event: AnyEvent) -> None:
        """Writes what the event says, and flushes: a log must not lag behind."""
        match event:
            case RunStarted():
                self._write(started_line(event))
            case VolumesFound():
                for line in volume_lines(event):
                    self._write(line)
            case RunNotice():
                self._write(f"note: {event.message}")
            case StepStarted():
                self._write(f"\n{event.banner}  [{loaded_text(event)}]")
                self._lines = self._first = self._last = 0
                self._columns = columns_of(paced=event.paced)
            case IntervalMeasured():
                self._interval(event)
            case Happened():
                self._write(f"{event.at_s:>{_LABEL_WIDTH}.3f} {place(event)}: {event.message}")
            case StepEnded() if event.figures is not None:
                self._write(self._line(f"avg_{self._first}-{self._last}", event.figures))
                for line in path_lines(event.paths) if event.paths else ():
                    self._write(" " * (_LABEL_WIDTH + 1) + line)
            case _:
                pass  # the caller reports the end of a run, as table or message

    def _interval(self, event: IntervalMeasured) -> None:
        if self._lines % HEADER_EVERY == 0:
            self._write(self._line("interval", "top"))
            self._write(self._line("", "bottom"))
        self._lines += 1
        self._last = event.index + 1
        if not event.warmup and not self._first:
            self._first = self._last
        label = f"{self._last}w" if event.warmup else str(self._last)
        self._write(self._line(label, event.figures))

    def _line(self, label: str, content: Figures | str) -> str:
        cells = [getattr(c, content) if isinstance(content, str) else c.cell(content) for c in self._columns]
        columns = zip(cells, self._columns, strict=True)
        return label.rjust(_LABEL_WIDTH) + "".join(f" {cell:>{column.width}}" for cell, column in columns)

    def _write(self, text: str) -> None:
        self._out.write(text.rstrip() + "\n")
        self._out.flush()

    def __enter__(self) -> Self:
        """Nothing to take over."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to give back."""
