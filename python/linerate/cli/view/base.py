"""What every view can do."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self

from linerate.cli.view.events import AnyEvent


class RunView(Protocol):
    """Shows events in the order in which they happen. Entered before the first event, left after the last one."""

    machine_readable: bool
    """Standard output is for programs: nothing else may be written there."""

    def show(self, event: AnyEvent) -> None:
        """Shows one event."""

    def __enter__(self) -> Self:
        """Takes over the terminal, if the view needs that."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Gives the terminal back, also after an error."""
