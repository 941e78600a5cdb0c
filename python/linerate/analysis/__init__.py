"""Summaries of runs, checks of their results, and comparisons.

Open `summary.py` first: it turns a run directory into summary rows. `check.py` checks them with the rules of
`rules/`; `limits/` says what limited a run; `compare.py` puts two sets of runs side by side, and `condition.py`
holds limits against their changes; `verdict/` judges a whole study. `metric.py` says what a metric is. Nothing here
writes or draws.
"""

from linerate.analysis.check import check_run, stamp_of
from linerate.analysis.compare import MetricComparison, RunComparison, StepComparison, compare_runs
from linerate.analysis.condition import Condition, ConditionResult, judge_conditions, parse_condition
from linerate.analysis.difference import Difference
from linerate.analysis.limits.bottleneck import Bottleneck, bottleneck, bottleneck_of_run, limit_of
from linerate.analysis.summary import (
    OpSummary,
    PartSummary,
    Quantile,
    StepSummary,
    UsageSummary,
    summarise,
    summarise_interval,
)

__all__ = [
    "Bottleneck",
    "Condition",
    "ConditionResult",
    "Difference",
    "MetricComparison",
    "OpSummary",
    "PartSummary",
    "Quantile",
    "RunComparison",
    "StepComparison",
    "StepSummary",
    "UsageSummary",
    "bottleneck",
    "bottleneck_of_run",
    "check_run",
    "compare_runs",
    "judge_conditions",
    "limit_of",
    "parse_condition",
    "stamp_of",
    "summarise",
    "summarise_interval",
]
