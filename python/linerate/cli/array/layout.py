"""How much room a picture of an array has, and what it may be drawn with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum

from rich.console import Console, RenderableType
from rich.table import Table

_BLOCKS, _ASCII = ("\u2588", "\u2591"), ("#", ".")
_BAR, _SHORT_BAR = 20, 10
WIDE = 100
"""Columns from which on everything that there is has a column."""
PIPE_WIDTH = 160
"""Columns of what is no terminal."""


class Disks(Enum):
    """How disks are shown."""

    ROWS = "a row each"
    CELLS = "several in a row"
    ODD = "only those that are not simply online"


@dataclass(frozen=True, slots=True)
class PictureLayout:
    """How an array is drawn."""

    width: int = PIPE_WIDTH
    blocks: bool = True
    """The terminal's encoding has block characters."""
    spaced: bool = True
    """Lines between the parts are left empty."""
    disks: Disks = Disks.ROWS

    def bar(self, share: float) -> str:
        """A share as a bar."""
        full, empty = _BLOCKS if self.blocks else _ASCII
        length = _BAR if self.width >= WIDE else _SHORT_BAR
        filled = round(max(0.0, min(1.0, share)) * length)
        return full * filled + empty * (length - filled)


def has_blocks(encoding: str) -> bool:
    """Whether an encoding has block characters."""
    try:
        "".join(_BLOCKS).encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def fitted(draw: Callable[[PictureLayout], RenderableType], out: Console) -> RenderableType:
    """The picture with most in it that is no higher than the terminal, or else the smallest one."""
    plain = PictureLayout(width=out.width, blocks=has_blocks(out.encoding))
    tight = replace(plain, spaced=False)
    drawn = None
    for layout in (plain, tight, replace(tight, disks=Disks.CELLS), replace(tight, disks=Disks.ODD)):
        drawn = draw(layout)
        if len(out.render_lines(drawn, pad=False)) < out.height:
            break
    assert drawn is not None
    return drawn


def grid(columns: int, right: Iterable[int] = ()) -> Table:
    """A table without lines; the last column may be wrapped."""
    table, numbers = Table.grid(padding=(0, 2, 0, 0)), set(right)
    for column in range(columns):
        table.add_column(justify="right" if column in numbers else "left", no_wrap=column < columns - 1)
    return table


def text_lines(drawn: RenderableType) -> list[str]:
    """A picture as plain text."""
    wide = Console(width=PIPE_WIDTH, highlight=False, color_system=None)
    with wide.capture() as captured:
        wide.print(drawn)
    return [line.rstrip() for line in captured.get().splitlines()]
