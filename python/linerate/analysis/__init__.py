"""What a run's figures come down to, whether to believe them, and how two runs differ.

Open `summary.py` first: it turns a run directory into summary rows. `check.py` doubts them with the rules of
`rules/`; `compare.py` puts two sets of runs side by side; `verdict/` judges a whole study. Nothing here writes or
draws.
"""

from linerate.analysis.check import check_run
from linerate.analysis.compare import Comparison, MetricComparison, StepComparison, compare_runs
from linerate.analysis.difference import Difference
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
    "Comparison",
    "Difference",
    "MetricComparison",
    "OpSummary",
    "PartSummary",
    "Quantile",
    "StepComparison",
    "StepSummary",
    "UsageSummary",
    "check_run",
    "compare_runs",
    "summarise",
    "summarise_interval",
]
