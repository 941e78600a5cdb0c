"""How the command line writes to a terminal and to a pipe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from linerate.analysis import StepSummary
    from linerate.results import Validity


def console() -> Console:
    """Standard output. Colour only on a terminal, and never under NO_COLOR."""
    return Console(highlight=False)


def show_result(steps: Sequence[StepSummary], validity: Validity | None) -> None:
    """The result table, framed on a terminal and plain in a pipe, then the stamp with its reasons."""
    from linerate.report import result_lines, result_table, validity_lines

    out = console()
    if out.is_terminal:
        out.print(result_table(steps))
    else:
        for line in result_lines(steps):
            out.print(line, soft_wrap=True, markup=False)
    if validity is not None:
        for line in validity_lines(validity, brief=True, width=out.width if out.is_terminal else None):
            out.print(line, soft_wrap=True, markup=False)
