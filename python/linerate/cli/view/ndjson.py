"""One JSON object per event and line, for programs. The first line names the schema's version."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self, TextIO

from linerate.cli.view.events import AnyEvent


class NdjsonView:
    """Writes and forgets."""

    machine_readable = True

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out if out is not None else sys.stdout

    def show(self, event: AnyEvent) -> None:
        """Writes the event and flushes, so that a reader can follow."""
        self._out.write(event.model_dump_json(by_alias=True) + "\n")
        self._out.flush()

    def __enter__(self) -> Self:
        """Nothing to take over."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to give back."""
