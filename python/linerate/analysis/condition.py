"""Conditions on a comparison, for scripts: `iops < -5%`, `host_cpu_percent > 3 points`.

A condition is METRIC OP CHANGE. The change is that of the candidate against the baseline: in percent of the baseline,
or in points for a metric that is a percentage itself. With repeats on both sides a condition holds only when the
95 % interval of the change excludes the limit. So a change that is exactly at the limit is reported in at most 1 of
40 tests. With one run on a side there is no interval, and the change alone decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from linerate.analysis.compare import METRICS, MetricComparison, RunComparison, StepComparison
from linerate.analysis.metric import Metric
from linerate.analysis.welch import mean, welch_interval
from linerate.errors import UserError

Unit = Literal["%", "points"]
Outcome = Literal["holds", "not shown", "does not hold", "not judged"]

_CONDITION = re.compile(r"\s*([\w./%-]+)\s*(<|>)=?\s*([+-]?\d+(?:\.\d+)?)\s*(%|points?)\s*", re.ASCII)
_FORM = 'METRIC OP CHANGE, for instance "iops < -5%" or "host_cpu_percent > 3 points"'


@dataclass(frozen=True, slots=True)
class Condition:
    """A limit on the change of a metric. `below`: it holds for a change that is below the limit, else above it."""

    text: str
    metric: Metric
    below: bool
    limit: float
    unit: Unit

    def beyond(self, change: float) -> bool:
        """Whether a change is on the far side of the limit."""
        return change < self.limit if self.below else change > self.limit


@dataclass(frozen=True, slots=True)
class ConditionResult:
    """What became of a condition in one step.

    `change`, `low` and `high` are in `unit`. `not shown`: the change is beyond the limit, but its interval includes
    the limit. `sentence` says it in words.
    """

    condition: str
    step: str
    metric: str
    outcome: Outcome
    unit: Unit
    limit: float
    change: float | None
    low: float | None
    high: float | None
    sentence: str


def parse_condition(text: str) -> Condition:
    """Read METRIC OP CHANGE. Raises UserError that names the metrics when there is no such metric."""
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise UserError(f"condition {text!r} is not understood", f"write {_FORM}")
    name, operator, number, unit = found.groups()
    metrics = {metric.name: metric for metric, _ in METRICS}
    if name not in metrics:
        raise UserError(f"condition {text!r}: no metric {name}", f"use one of {', '.join(metrics)}")
    metric, limit = metrics[name], float(number)
    if unit == "%":
        if operator == "<" and limit <= -100:
            raise UserError(f"condition {text!r} can never hold", "a change is never below -100 %")
        return Condition(text, metric, operator == "<", limit, "%")
    if metric.unit != "%":
        raise UserError(
            f"condition {text!r}: {name} is no percentage, so it has no points", "give the change in percent"
        )
    return Condition(text, metric, operator == "<", limit, "points")


def judge_conditions(
    conditions: Sequence[Condition], comparison: RunComparison
) -> tuple[ConditionResult, ...]:
    """The result of every condition in every step of both sides.

    A step that only the baseline has is `not judged`: a candidate that lost a step must not pass unseen.
    """
    return tuple(_results(conditions, comparison))


def _results(conditions: Sequence[Condition], comparison: RunComparison) -> Iterator[ConditionResult]:
    for condition in conditions:
        for step in comparison.steps:
            yield _judge(condition, step)
        for name in comparison.only_a:
            yield _not_judged(condition, name, "the candidate does not have this step")


def _judge(condition: Condition, step: StepComparison) -> ConditionResult:
    values = next((item for item in step.metrics if item.metric == condition.metric.name), None)
    if values is None or not values.a or not values.b:
        return _not_judged(condition, step.step, "the metric was not measured on both sides")
    found = _percent(values) if condition.unit == "%" else _points(values)
    if found is None:
        reason = "a value is zero, so there is no change in percent"
        if condition.metric.unit == "%":
            reason += "; give the limit in points"
        return _not_judged(condition, step.step, reason)
    change, interval = found
    outcome: Outcome = "does not hold"
    if condition.beyond(change):
        shown = interval is None or all(condition.beyond(bound) for bound in interval)
        outcome = "holds" if shown else "not shown"
    low, high = interval or (None, None)
    return ConditionResult(
        condition=condition.text,
        step=step.step,
        metric=condition.metric.name,
        outcome=outcome,
        unit=condition.unit,
        limit=condition.limit,
        change=change,
        low=low,
        high=high,
        sentence=_sentence(condition, outcome, change, interval),
    )


def _percent(values: MetricComparison) -> tuple[float, tuple[float, float] | None] | None:
    if values.ratio is None:
        return None
    bounds = None if values.low is None or values.high is None else (values.low, values.high)
    interval = bounds and (100 * (bounds[0] - 1), 100 * (bounds[1] - 1))
    return 100 * (values.ratio - 1), interval


def _points(values: MetricComparison) -> tuple[float, tuple[float, float] | None]:
    return mean(values.b) - mean(values.a), welch_interval(values.a, values.b)


def _sentence(
    condition: Condition, outcome: Outcome, change: float, interval: tuple[float, float] | None
) -> str:
    unit = condition.unit
    said = f"{condition.metric.name} changed by {change:+.2f} {unit}"
    if interval is None:
        what = "ratio" if unit == "%" else "difference"
        return f"{said}; one run on a side: no interval, the {what} alone decided"
    said += f", 95 % interval {interval[0]:+.2f} .. {interval[1]:+.2f}"
    if outcome == "not shown":
        said += f"; the interval includes the limit {condition.limit:+g} {unit}"
    return said


def _not_judged(condition: Condition, step: str, reason: str) -> ConditionResult:
    return ConditionResult(
        condition=condition.text,
        step=step,
        metric=condition.metric.name,
        outcome="not judged",
        unit=condition.unit,
        limit=condition.limit,
        change=None,
        low=None,
        high=None,
        sentence=reason,
    )
