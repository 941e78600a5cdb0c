"""How the figures of a study are written: changes, intervals, probabilities, values with their unit."""

from __future__ import annotations

from linerate.analysis.verdict import METRICS, Deviance, Effect, Metric
from linerate.report import figures

_NAMED_MAX = 3


def percent(change: float | None) -> str:
    """A relative change: `+5.1 %`, `-0.3 %`, `0.0 %`; whole numbers from 100 % on."""
    if change is None:
        return figures.NOTHING
    return f"{_signed(change)} %"


def change(effect: Effect) -> str:
    """A case's change in the unit that its metric is compared in: percent of the baseline, or points."""
    if effect.scale == "difference":
        return f"{_points(effect.change)} points"
    return percent(effect.change)


def detectable(change: float) -> str:
    """The smallest change that a study would find."""
    return f"{change:.1f} %" if change >= 0.1 else "below 0.1 %"


def bounds(effect: Effect) -> str:
    """The 95 % bounds of a change without their unit: `+4.8 .. +5.4`."""
    if effect.change_low is None or effect.change_high is None:
        return figures.NOTHING
    written = _points if effect.scale == "difference" else _signed
    return f"{written(effect.change_low)} .. {written(effect.change_high)}"


def interval(one: Deviance) -> str:
    """The 95 % bounds of a measured change: `-92.4 .. -91.8`."""
    if one.low is None or one.high is None:
        return figures.NOTHING
    return f"{_signed(one.low)} .. {_signed(one.high)}"


def _signed(amount: float) -> str:
    digits = 0 if abs(amount) >= 99.5 else 1
    rounded = round(amount, digits)
    return f"{rounded:+,.{digits}f}" if rounded else f"{0:.{digits}f}"


def _points(amount: float) -> str:
    digits = 1 if abs(amount) >= 9.95 else 2 if abs(amount) >= 0.995 else 3
    rounded = round(amount, digits)
    return f"{rounded:+.{digits}f}" if rounded else "0"


def label(metric: str) -> str:
    """What people call a metric."""
    return METRICS[metric].label


def probability(p: float | None) -> str:
    """A p-value with no more digits than it deserves."""
    if p is None:
        return figures.NOTHING
    return "< 0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def number(amount: float | None, metric: Metric) -> str:
    """A measured value without its unit."""
    return figures.NOTHING if amount is None else _WRITTEN.get(metric.unit, figures.significant)(amount)


def value(amount: float | None, metric: Metric) -> str:
    """A measured value with its unit."""
    return figures.NOTHING if amount is None else f"{number(amount, metric)} {metric.unit}".rstrip()


def where(group: figures.FindingGroup, of: int) -> str:
    """The runs that a doubt is about, of `of` in all, and the run of its figures where they differ."""
    steps = group.steps
    figures_of = "" if group.same or len(steps) < 2 else f"; figures of {steps[0]}"
    if len(steps) == of > 1:
        return f"every run{figures_of}"
    if len(steps) > _NAMED_MAX:
        return f"{len(steps)} of {of} runs{figures_of or f', {steps[0]} first'}"
    return f"{', '.join(steps)}{figures_of}"


def small(amount: float | None) -> str:
    """A share in percent whose small values count: retransmits of 0.11 % are not 0.1 %."""
    if amount is None:
        return figures.NOTHING
    if amount == 0:
        return "0"
    return f"{amount:.3f}" if amount < 0.1 else f"{amount:.2f}" if amount < 10 else f"{amount:.1f}"


_WRITTEN = {"IOPS": figures.rate, "MB/s": figures.mib_s, "ms": figures.ms, "%": small}
