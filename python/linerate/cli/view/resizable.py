"""A live picture at the lower end of a terminal that stays whole when the terminal changes its size.

A terminal that becomes narrower breaks the lines that it shows, so the picture is higher than when it was drawn, and
its head would stay above the next one. After a change of size the screen is cleared and drawn anew, with the latest
lines that were to stay.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.control import Control
from rich.live import Live

_KEPT = 30


class ResizableLive(Live):
    """`rich.live.Live`, drawn anew on a terminal of another size."""

    def __init__(
        self, get_renderable: Callable[[], RenderableType], out: Console, *, refresh_per_second: float
    ) -> None:
        super().__init__(
            get_renderable=get_renderable, console=out, refresh_per_second=refresh_per_second, transient=True
        )
        self._kept: deque[RenderableType] = deque(maxlen=_KEPT)
        self._size = out.size

    def keep(self, renderable: RenderableType) -> None:
        """Prints above the picture what shall stay."""
        self._kept.append(renderable)
        self.console.print(renderable)

    def refresh(self) -> None:
        """Draws the picture as it is now."""
        with self._lock:
            if self.is_started and self.console.size != self._size:
                self._size = self.console.size
                self.console.control(Control.clear(), Control.home())
                self.console.print(Group(*self._kept))
        super().refresh()


class LiveOnTerminal:
    """A view whose picture is on the terminal as long as it is entered."""

    _live: ResizableLive

    def __enter__(self) -> Self:
        """Takes over the lower part of the terminal."""
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Gives the terminal back."""
        self._live.stop()
