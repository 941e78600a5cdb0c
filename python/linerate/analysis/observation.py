"""What goes into a judgement: one run of a study as its figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Observation:
    """One run: one case under one workload in one block.

    `values` holds one number per metric (names of `linerate.analysis.metric.METRICS`; others are ignored), and `ios`,
    the number of I/Os that a rate was counted from, if it is known. `position` is the run's place in the order of its
    block, from 0. The baseline may be observed several times in a block: that is the A/A comparison, and makes every
    verdict sharper. Runs that `check` found void are not observations.
    """

    case: str
    workload: str
    block: int
    values: Mapping[str, float]
    position: int | None = None
