"""What a run's figures come down to, whether to believe them, and how two runs differ."""

from linerate.analysis.check import check_run
from linerate.analysis.compare import Comparison, compare_runs
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
    "OpSummary",
    "PartSummary",
    "Quantile",
    "StepSummary",
    "UsageSummary",
    "check_run",
    "compare_runs",
    "summarise",
    "summarise_interval",
]
