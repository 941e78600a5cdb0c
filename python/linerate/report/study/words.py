"""How the figures of a study are written: changes, intervals, probabilities, values with their unit."""

from __future__ import annotations

from linerate.analysis.verdict import Effect, Metric
from linerate.report import figures


def change(percent: float | None) -> str:
    """A change relative to the baseline: `+5.1 %`, `-0.3 %`, `0.0 %`; whole numbers from 100 % on."""
    if percent is None:
        return figures.NOTHING
    digits = 0 if abs(percent) >= 99.5 else 1
    rounded = round(percent, digits)
    return f"{rounded:+,.{digits}f} %" if rounded else f"{0:.{digits}f} %"


def interval(effect: Effect) -> str:
    """The 95 % bounds of a change: `+4.8 .. +5.4 %`."""
    if effect.change_low is None or effect.change_high is None:
        return figures.NOTHING
    return f"{change(effect.change_low).removesuffix(' %')} .. {change(effect.change_high)}"


def probability(p: float | None) -> str:
    """A p-value with no more digits than it deserves."""
    if p is None:
        return figures.NOTHING
    return "< 0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def value(amount: float | None, metric: Metric) -> str:
    """A measured value with its unit."""
    if amount is None:
        return figures.NOTHING
    return f"{_WRITTEN.get(metric.unit, figures.significant)(amount)} {metric.unit}".rstrip()


def small(amount: float | None) -> str:
    """A share in percent whose small values count: retransmits of 0.11 % are not 0.1 %."""
    if amount is None:
        return figures.NOTHING
    if amount == 0:
        return "0"
    return f"{amount:.3f}" if amount < 0.1 else f"{amount:.2f}" if amount < 10 else f"{amount:.1f}"


def duration(seconds: float) -> str:
    """A length of time as people say it: `48 s`, `12 min`, `3 h 20 min`."""
    minutes = round(seconds / 60)
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


_WRITTEN = {"IOPS": figures.rate, "MB/s": figures.mib_s, "ms": figures.ms, "%": small}
