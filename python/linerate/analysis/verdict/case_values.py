"""How the own figures of cases are written in a claim: of each metric one line with all cases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from linerate.analysis.metric import METRICS

_NAMES = {
    "io_errors": ("errors", ""),
    "failover_s": ("failover", "s"),
    "slow_ios": ("I/Os over 1 s", ""),
    "response_max_ms": ("longest wait", "ms"),
    "stall_s": ("longest time without I/O", "s"),
    "paths_down": ("paths still down at the end", ""),
}
"""Figures of faults: what people call them, and their unit."""


@dataclass(frozen=True, slots=True)
class CaseValue:
    """A case's own figure under one workload, in the unit that the metric's name says."""

    case: str
    workload: str
    metric: str
    value: float


def metric_name(metric: str) -> str:
    """What people call a metric."""
    if metric in _NAMES:
        return _NAMES[metric][0]
    return METRICS[metric].label if metric in METRICS else metric.replace("_percent", " %").replace("_", " ")


def value_lines(values: Iterable[CaseValue]) -> Iterator[str]:
    """One line per metric: `failover: cable 0.02 s, switch 0.04 s`. A value that all cases share is written once."""
    by_metric: dict[str, dict[CaseValue, None]] = {}
    for value in values:
        by_metric.setdefault(value.metric, {})[value] = None
    several = len({value.workload for seen in by_metric.values() for value in seen}) > 1
    for metric, seen in by_metric.items():
        shown = {value: _amount(metric, value.value) for value in seen}
        if len(seen) > 1 and len(set(shown.values())) == 1:
            yield f"{metric_name(metric)}: {next(iter(shown.values()))} in each of {len(seen)} cases"
            continue
        parts = [
            f"{value.case}{f' ({value.workload})' if several else ''} {amount}"
            for value, amount in shown.items()
        ]
        yield f"{metric_name(metric)}: {', '.join(parts)}"


def bounds_words(metric: str, low: float | None, high: float | None) -> str:
    """The values that were expected of a metric, in words: `failover at most 1.5 s`."""
    name = metric_name(metric)
    if low is not None and high is not None:
        return f"{name} {low:g} to {_with_unit(metric, f'{high:g}')}"
    if low is not None:
        return f"{name} at least {_with_unit(metric, f'{low:g}')}"
    return f"no {name}" if not high else f"{name} at most {_with_unit(metric, f'{high:g}')}"


def _amount(metric: str, value: float) -> str:
    """Times to hundredths of a second; of others four digits."""
    if metric.endswith("_s"):
        return _with_unit(metric, f"{value:.2f}" if value < 10 else f"{value:.1f}")
    return _with_unit(metric, f"{value:,.0f}" if value == int(value) else f"{value:.4g}")


def _with_unit(metric: str, text: str) -> str:
    unit = _NAMES[metric][1] if metric in _NAMES else METRICS[metric].unit if metric in METRICS else ""
    return f"{text} {unit}".rstrip()
