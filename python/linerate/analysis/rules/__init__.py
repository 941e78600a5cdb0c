"""The rules of `check`: each one doubt that a careful reader would raise about a result.

A rule looks at one step (a `StepView`) or at the whole run and yields findings: how grave, why, and what to
do. A note explains how to read the figures. A caution says what may be wrong and by how much, from the measurement. A
void result must not be used. What a user chose is a note. Thresholds are named constants beside their rule, with where
they come from; below them a rule is silent.
"""

from linerate.analysis.rules import data, generator, hosts, laboratory, network, timing, whole
from linerate.analysis.rules.base import Doubt, RunRule, StepRule, StepView

RUN_RULES: tuple[RunRule, ...] = whole.RULES
STEP_RULES: tuple[StepRule, ...] = (
    *timing.RULES,
    *generator.RULES,
    *laboratory.RULES,
    *network.RULES,
    *hosts.RULES,
    *data.RULES,
)

__all__ = ["RUN_RULES", "STEP_RULES", "Doubt", "RunRule", "StepRule", "StepView"]
