"""How figures are written.

Enough digits to compare, none to impress. Used by the terminal tables and the HTML report alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from linerate.analysis import Quantile
from linerate.results import Finding

NOTHING = "-"
_FIGURE = r"[+-]?\w*\d(?:[\w%]|[.,](?=\d))*"
_FIGURES = re.compile(f"{_FIGURE}(?:, {_FIGURE})*")
"""A word with a digit in it, or a list of such words."""
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


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
    """A quantile in milliseconds; the caller greys those that are not reliable."""
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


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """One doubt that may hold for several steps, in the words of the step where it changes most."""

    finding: Finding
    steps: tuple[str, ...]
    same: bool
    """The figures in the reason hold for all of the steps, not for the first alone."""
    of: int
    """Steps of the run; 0 when that is not known."""

    def where(self, most: int = 8) -> str:
        """The steps, as they stand behind the reason."""
        if len(self.steps) == self.of > 1:
            return "every step" if self.same else f"{self.steps[0]}; likewise the other steps"
        named = [*self.steps[:most], *([f"{len(self.steps) - most} more"] if len(self.steps) > most else [])]
        if self.same or len(named) < 2:
            return ", ".join(named)
        return f"{named[0]}; likewise {', '.join(named[1:])}"


def _effect(finding: Finding) -> list[float]:
    """The figures of an effect, in their order; a doubt without an effect has none."""
    return [float(figure.replace(",", "")) for figure in _NUMBER.findall(finding.effect)]


def grouped_findings(findings: Iterable[Finding], of: int = 0) -> list[FindingGroup]:
    """The gravest first. Findings that differ in nothing but figures and the step are one group.

    In a group the finding with the largest effect is the first. `of` is the number of steps of the run.
    """
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        words = _FIGURES.sub("#", finding.reason)
        groups.setdefault((finding.severity, finding.rule, words), []).append(finding)
    for group in groups.values():
        group.sort(key=_effect, reverse=True)
    order = {"void": 0, "caution": 1, "note": 2}
    return [
        FindingGroup(
            finding=group[0],
            steps=tuple(dict.fromkeys(finding.step for finding in group if finding.step)),
            same=len({finding.reason for finding in group}) == 1,
            of=of,
        )
        for group in sorted(groups.values(), key=lambda group: order[group[0].severity])
    ]
