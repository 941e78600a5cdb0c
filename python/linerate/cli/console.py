"""How the command line writes to a terminal and to a pipe."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from linerate.analysis import StepSummary
    from linerate.report.study import StudyPage
    from linerate.results import Validity

HANGING = " " * 11


def console() -> Console:
    """Standard output. Colour only on a terminal, and never under NO_COLOR."""
    from rich.console import Console

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
    out.print(folded(f"bottleneck: {limit}", width, HANGING), soft_wrap=True, markup=False)
    if validity is not None:
        for line in validity_lines(validity, steps=len(steps), brief=True):
            out.print(folded(line, width, HANGING), soft_wrap=True, markup=False)


def show_verdicts(page: StudyPage) -> None:
    """The short answer, the verdicts (a table on a terminal, in a pipe one line per case and workload), what to set."""
    from linerate.report.study import (
        closing_lines,
        fault_lines,
        fault_table,
        opening_lines,
        verdict_lines,
        verdict_table,
    )

    out = console()
    width = out.width if out.is_terminal else None
    show_lines(opening_lines(page))
    if width is not None:
        if page.faults:
            out.print(fault_table(page), "")
        out.print(verdict_table(page, width))
    else:
        show_lines([*fault_lines(page), ""] if page.faults else [])
        for line in verdict_lines(page):
            out.print(line, soft_wrap=True, markup=False)
    show_lines(closing_lines(page))


def show_lines(lines: Sequence[str]) -> None:
    """Plain lines; on a terminal a line that is too long goes on below, between two words."""
    out = console()
    for line in lines:
        out.print(folded(line, out.width if out.is_terminal else None, HANGING), soft_wrap=True, markup=False)


def folded(line: str, width: int | None, indent: str) -> str:
    """A line of at most `width` columns; what is too long goes on below, after `indent`. None: any length.

    It is parted between two words: a word, a path or a command stays whole.
    """
    if width is None or len(line) <= width:
        return line
    return textwrap.fill(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def error_width() -> int | None:
    """Columns of the terminal that standard error is; None where it is none."""
    return shutil.get_terminal_size().columns if sys.stderr.isatty() else None
