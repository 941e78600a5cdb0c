"""The rules of `check`: each one doubt that a careful reader would raise about a result.

A rule looks at one step (a `StepView`) or at the whole run and yields findings: how grave, why, and what to
do. A note explains how to read the figures and leaves them valid; a suspect result may be wrong; a void one
must not be used. Thresholds are named constants beside their rule, with where they come from.
"""

from linerate.analysis.rules import data, generator, laboratory, network, timing, whole
from linerate.analysis.rules.base import RunRule, StepRule, StepView

RUN_RULES: tuple[RunRule, ...] = whole.RULES
STEP_RULES: tuple[StepRule, ...] = (
    *timing.RULES,
    *generator.RULES,
    *laboratory.RULES,
    *network.RULES,
    *data.RULES,
)

__all__ = ["RUN_RULES", "STEP_RULES", "RunRule", "StepRule", "StepView"]
