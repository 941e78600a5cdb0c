"""How the command line writes to a terminal and to a pipe."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from linerate.analysis import StepSummary
    from linerate.report.study import StudyPage
    from linerate.results import Validity

HANGING = " " * 11


def console() -> Console:
    """Standard output. Colour only on a terminal, and never under NO_COLOR."""
    return Console(highlight=False)


def show_result(steps: Sequence[StepSummary], validity: Validity | None, limit: str) -> None:
    """The result table, framed on a terminal and plain in a pipe, what limited it, then the stamp with its reasons."""
    from linerate.report import result_lines, result_table, validity_lines

    out = console()
    width = out.width if out.is_terminal else None
    if width is not None:
        out.print(result_table(steps, width))
    else:
        for line in result_lines(steps):
            out.print(line, soft_wrap=True, markup=False)
    out.print(_wrapped(f"bottleneck: {limit}", width), soft_wrap=True, markup=False)
    if validity is not None:
        for line in validity_lines(validity, steps=len(steps), brief=True, width=width):
            out.print(_wrapped(line, width), soft_wrap=True, markup=False)


def show_verdicts(page: StudyPage) -> None:
    """The short answer, the verdicts (a table on a terminal, in a pipe one line per case and workload), what to set."""
    from linerate.report.study import closing_lines, opening_lines, verdict_lines, verdict_table

    out = console()
    width = out.width if out.is_terminal else None
    show_lines(opening_lines(page))
    if width is not None:
        out.print(verdict_table(page, width))
    else:
        for line in verdict_lines(page):
            out.print(line, soft_wrap=True, markup=False)
    show_lines(closing_lines(page))


def show_lines(lines: Sequence[str]) -> None:
    """Plain lines; on a terminal a line that is too long goes on below, between two words."""
    out = console()
    for line in lines:
        out.print(_wrapped(line, out.width if out.is_terminal else None), soft_wrap=True, markup=False)


def _wrapped(line: str, width: int | None) -> str:
    """A finding over several lines of a terminal, each under the first one's text."""
    return line if width is None else textwrap.fill(line, width, subsequent_indent=HANGING)
