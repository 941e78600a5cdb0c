"""Result tables for terminals: rich tables for people, plain lines for pipes."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from linerate.analysis import Comparison, StepSummary
from linerate.results import Validity


def result_table(steps: Sequence[StepSummary]) -> Table:
    """The end-of-run table, vdbench's words first:

    i/o rate, MB/sec, resp, queue depth, cpu% sys+u, then percentiles.
    """
    raise NotImplementedError


def result_lines(steps: Sequence[StepSummary]) -> list[str]:
    """The same table as plain lines, without colour or frames, no wider than the data."""
    raise NotImplementedError


def validity_lines(validity: Validity) -> list[str]:
    """The stamp and each finding with its reason and advice."""
    raise NotImplementedError


def comparison_lines(comparison: Comparison) -> list[str]:
    """Two sides, ratios and their bounds, then what differed in the environment."""
    raise NotImplementedError
