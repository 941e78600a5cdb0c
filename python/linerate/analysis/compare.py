"""Two sets of runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linerate.results import RunDirectory


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """One metric of one step on both sides.

    `ratio` is b/a of the geometric means; `low` and `high` bound it at 95 % when both sides have at least two
    runs, else they are None and `verdict` says that nothing can be said about significance.
    """

    metric: str
    unit: str
    a: tuple[float, ...]
    b: tuple[float, ...]
    ratio: float | None
    low: float | None
    high: float | None
    verdict: str


@dataclass(frozen=True, slots=True)
class StepComparison:
    """All metrics of one step that both sides have."""

    step: str
    metrics: tuple[MetricComparison, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """A fact, setting or spec entry that differs between the sides. Values are as shown to people."""

    key: str
    label: str
    a: str
    b: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Result of `compare_runs`."""

    steps: tuple[StepComparison, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    differences: tuple[Difference, ...]
    warnings: tuple[str, ...]


def compare_runs(a: Sequence[RunDirectory], b: Sequence[RunDirectory]) -> Comparison:
    """Compare side `b` with side `a` (the baseline), step by step by name.

    The unit of replication is the run.
    """
    raise NotImplementedError
