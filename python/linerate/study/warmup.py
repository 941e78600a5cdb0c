"""Warm-up by rule: how long the baseline takes until its rate is steady (SNIA's window test).

It is found once per workload, before the first block, and then holds for every case: cases that were warmed up for
different times would differ in that, too.
"""

from __future__ import annotations

import math

from linerate.analysis.steady import steady_state
from linerate.study.laboratory import Measured
from linerate.study.model import Workload


def trial(workload: Workload) -> Workload:
    """The run that shows it: no warm-up, and twice the longest that one may be, since the test wants half of the run to
    be steady."""
    return workload.timed(0.0, 2 * workload.warmup_s)


def found(workload: Workload, measured: Measured) -> tuple[float, bool]:
    """Seconds to warm up, in whole intervals, and whether the rate became steady; the most allowed if it did not."""
    state = steady_state(measured.series)
    if state is None or state.steady_from is None:
        return workload.warmup_s, False
    seconds = state.steady_from * measured.interval_s
    return min(math.ceil(seconds / measured.interval_s) * measured.interval_s, workload.warmup_s), True
