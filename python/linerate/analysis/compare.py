"""Two sets of runs side by side.

The unit of replication is the run: intervals of one run are similar and say nothing about the next run. With one
run on a side, only ratios are shown. With more, a Welch interval on the logarithms bounds the ratio at 95 %. With few
runs it is wide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from linerate.analysis.difference import Difference, differences_between
from linerate.analysis.metric import Metric
from linerate.analysis.summary import StepSummary, summarise
from linerate.analysis.welch import mean, welch_interval
from linerate.results import RunDirectory

MARGIN_PERCENT = 5.0
_Side = Sequence[Mapping[str, StepSummary]]
"""The steps of each run of a side, by key."""


def _quantile(q: float) -> Callable[[StepSummary], float | None]:
    def read(step: StepSummary) -> float | None:
        quantile = step.total.quantile(q)
        return quantile.value_ms if quantile and quantile.reliable else None

    return read


def _with_wait(step: StepSummary) -> float | None:
    """Response time, from the intended start; only a load with a rate to keep has one of its own."""
    return step.total.response_mean_ms if step.paced else None


def _tail_with_wait(step: StepSummary) -> float | None:
    quantile = step.total.response_quantile(0.99) if step.paced else None
    return quantile.value_ms if quantile and quantile.reliable else None


_QUANTILES = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99, "p999_ms": 0.999}
METRICS: tuple[tuple[Metric, Callable[[StepSummary], float | None]], ...] = (
    (Metric("iops", "i/o rate", "IOPS", +1), lambda step: step.total.iops),
    (Metric("mib_s", "MB/sec", "MB/s", +1), lambda step: step.total.mib_s),
    (Metric("service_ms", "resp", "ms", -1), lambda step: step.total.mean_ms),
    (Metric("response_ms", "with wait", "ms", -1), _with_wait),
    *((Metric(name, f"p{100 * q:g}", "ms", -1), _quantile(q)) for name, q in _QUANTILES.items()),
    (Metric("response_p99_ms", "p99 with wait", "ms", -1), _tail_with_wait),
    (Metric("queue_depth", "queue depth", "", 0), lambda step: step.queue_depth),
    (Metric("host_cpu_percent", "cpu% sys+u", "%", -1), lambda step: step.usage.cpu_busy_percent),
    (Metric("cycles_per_byte", "cycles/byte", "", -1), lambda step: step.usage.cycles_per_byte),
    (Metric("host_retransmit_percent", "retransmits", "%", -1), lambda step: step.usage.retransmits_percent),
)
"""The figures of a step that two sides are compared by, and how to read each.

The name is for programs and has the unit at its end; the label is the word of the run tables. `service_ms` and the
percentiles are from submit to completion, `response_ms` and `response_p99_ms` from the intended start of paced I/Os.
`mib_s` counts 2^20 bytes.
"""


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """One metric of one step on both sides, one value per run.

    `metric` and `label` are the name and the label of `METRICS`.
    `ratio` is b/a of the geometric means; `low` and `high` bound it at 95 % when both sides have at least two
    runs. None where a value is missing or zero. `verdict` is one phrase for people.
    """

    metric: str
    label: str
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
class RunComparison:
    """Result of `compare_runs`. `warnings` say what weakens the comparison as a whole."""

    a: tuple[str, ...]
    b: tuple[str, ...]
    steps: tuple[StepComparison, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    differences: tuple[Difference, ...]
    warnings: tuple[str, ...]


def compare_runs(a: Sequence[RunDirectory], b: Sequence[RunDirectory]) -> RunComparison:
    """Compare side `b` with side `a` (the baseline), step by step by key."""
    sides = [[{step.step: step for step in summarise(run)} for run in side] for side in (a, b)]
    keys_a, keys_b = ([key for run in side for key in run] for side in sides)
    if pair := _pair_of_imports([*a, *b], *sides):
        sides = [[{pair: step} for run in side for step in run.values()] for side in sides]
        keys_a = keys_b = [pair]
    common = [key for key in dict.fromkeys(keys_a) if key in set(keys_b)]
    return RunComparison(
        a=tuple(str(run.path) for run in a),
        b=tuple(str(run.path) for run in b),
        steps=tuple(_compare_step(key, *sides) for key in common),
        only_a=tuple(key for key in dict.fromkeys(keys_a) if key not in set(keys_b)),
        only_b=tuple(key for key in dict.fromkeys(keys_b) if key not in set(keys_a)),
        differences=differences_between(a, b),
        warnings=tuple(_warnings(a, b, nothing_common=not common)),
    )


def _pair_of_imports(runs: Sequence[RunDirectory], a: _Side, b: _Side) -> str:
    """The common name of the steps of runs that have one step each, where a tool of its own named one of them.

    Empty where names decide: without an imported run, with several steps, and if the names are the same.
    """
    names = [list(dict.fromkeys(key for run in side for key in run)) for side in (a, b)]
    single = all(len(run) == 1 for run in (*a, *b)) and all(len(side) == 1 for side in names)
    if not single or names[0] == names[1] or all(run.manifest.imported is None for run in runs):
        return ""
    return f"{names[0][0]} / {names[1][0]}"


def compare_values(metric: Metric, a: Sequence[float], b: Sequence[float]) -> MetricComparison:
    """Compare one value per run of each side."""
    ratio = low = high = None
    if a and b and min(*a, *b) > 0:
        log_a, log_b = [math.log(value) for value in a], [math.log(value) for value in b]
        ratio = math.exp(mean(log_b) - mean(log_a))
        if (bounds := welch_interval(log_a, log_b)) is not None:
            low, high = math.exp(bounds[0]), math.exp(bounds[1])
    return MetricComparison(
        metric=metric.name,
        label=metric.label,
        unit=metric.unit,
        a=tuple(a),
        b=tuple(b),
        ratio=ratio,
        low=low,
        high=high,
        verdict=_verdict(metric, len(a), len(b), ratio, low, high),
    )


def _compare_step(key: str, a: _Side, b: _Side) -> StepComparison:
    metrics = []
    for metric, read in METRICS:
        values_a, values_b = (
            [value for run in side if key in run and (value := read(run[key])) is not None] for side in (a, b)
        )
        if values_a or values_b:
            metrics.append(compare_values(metric, values_a, values_b))
    return StepComparison(step=key, metrics=tuple(metrics))


def _verdict(
    metric: Metric, runs_a: int, runs_b: int, ratio: float | None, low: float | None, high: float | None
) -> str:
    if not runs_a or not runs_b:
        return "measured on one side only"
    if ratio is None:
        return "zero on a side: no ratio"
    if low is None or high is None:
        return "one run on a side"
    if low <= 1 <= high:
        return "no difference shown"
    small = abs(ratio - 1) * 100 < MARGIN_PERCENT
    direction = "higher" if ratio > 1 else "lower"
    judged = "" if not metric.better else (", better" if (ratio > 1) == (metric.better > 0) else ", worse")
    return f"{direction}{judged}" + (f", below the {MARGIN_PERCENT:g} % margin" if small else "")


def _not_given(run: RunDirectory) -> str:
    """What the tool of an imported run does not say."""
    summaries = summarise(run)
    missing = [
        metric.label
        for metric, read in METRICS
        if all(
            read(step) is None and step.total.quantile(_QUANTILES.get(metric.name, 0)) is None
            for step in summaries
        )
    ]
    words = run.manifest.imported.words if run.manifest.imported else ""
    return f"imported from {words}, which does not give {', '.join(missing) or 'nothing'}"


def _warnings(a: Sequence[RunDirectory], b: Sequence[RunDirectory], *, nothing_common: bool) -> list[str]:
    warnings = []
    if nothing_common:
        warnings.append("no step of A is in B: nothing was compared; steps are compared by their names")
    fewest = min(len(a), len(b))
    if fewest < 2:
        warnings.append(
            "one run on a side: the ratios describe these runs; repeat both sides to see if they hold"
        )
    elif fewest < 4:
        warnings.append(
            f"{fewest} runs on a side: the bounds are wide, and they assume that runs scatter normally"
        )
    for side, runs in (("A", a), ("B", b)):
        for run in runs:
            if run.manifest.imported is not None:
                warnings.append(f"side {side}: {run.path}: {_not_given(run)}")
            validity = run.manifest.validity
            if validity is None or validity.stamp != "valid":
                words = validity.words if validity else "not judged"
                warnings.append(f"side {side}: {run.path} is {words}: see its check")
    return warnings
