"""How figures are written.

Enough digits to compare, none to impress. Used by the terminal tables and the HTML report alike.
"""

from __future__ import annotations

from collections.abc import Iterable

from linerate.analysis import Quantile
from linerate.results import Finding

NOTHING = "-"


def rate(value: float | None) -> str:
    """I/Os per second."""
    if value is None:
        return NOTHING
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def mib_s(value: float | None) -> str:
    """MB/s, with 2^20 bytes to the MB."""
    if value is None:
        return NOTHING
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def ms(value: float | None) -> str:
    """Milliseconds with microseconds where they count."""
    if value is None:
        return NOTHING
    if 0 < value < 0.1:
        return f"{value:.4f}"
    return f"{value:.3f}" if value < 10 else f"{value:.2f}" if value < 100 else f"{value:,.1f}"


def quantile_ms(quantile: Quantile | None) -> str:
    """A quantile in milliseconds; the caller greys those that are not honest."""
    return ms(quantile.value_ms if quantile else None)


def percent(value: float | None) -> str:
    """A share, without the percent sign."""
    if value is None:
        return NOTHING
    return f"{value:.1f}"


def count(value: float | None) -> str:
    """A whole number."""
    return NOTHING if value is None else f"{value:,.0f}"


def decimal(value: float | None, digits: int = 1) -> str:
    """A number with a fixed count of decimals."""
    return NOTHING if value is None else f"{value:,.{digits}f}"


def significant(value: float | None) -> str:
    """Three significant digits, for metrics of any size."""
    if value is None:
        return NOTHING
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def size(value: int) -> str:
    """Bytes in the largest binary unit that keeps them short: `8 KiB`, `1.5 GiB`."""
    amount = float(value)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.4g} {unit}"
        amount /= 1024
    return f"{amount:.4g} TiB"


def grouped_findings(findings: Iterable[Finding]) -> list[tuple[Finding, list[str]]]:
    """Findings with the steps they hold for, the gravest first.

    The same doubt about fifty steps is told once.
    """
    groups: dict[tuple[str, str, str], tuple[Finding, list[str]]] = {}
    for finding in findings:
        _, steps = groups.setdefault((finding.rule, finding.severity, finding.reason), (finding, []))
        if finding.step:
            steps.append(finding.step)
    order = {"void": 0, "suspect": 1, "note": 2}
    return sorted(groups.values(), key=lambda group: order[group[0].severity])
