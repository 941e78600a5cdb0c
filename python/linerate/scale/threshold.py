"""Whether a load keeps a threshold: below, above, or undecided, from repeated measurements of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

from linerate.errors import UserError
from linerate.scale.interval import interval

Standing = Literal["below", "above", "undecided"]
"""below: the threshold is kept."""
Metric = Literal["mean", "p50", "p95", "p99"]
FORM = "mean=20ms, p50=, p95= or p99=, in us, ms or s"
_UNITS_MS = {"us": 0.001, "ms": 1.0, "s": 1000.0}
_TEXT = re.compile(r"(mean|p50|p95|p99)=(\d+(?:\.\d+)?)(us|ms|s)")


@dataclass(frozen=True, slots=True)
class Threshold:
    """The longest response time that is accepted, in ms: the mean, or a percentile."""

    metric: Metric
    limit_ms: float

    @classmethod
    def parse(cls, text: str) -> Self:
        """From `mean=20ms`. Raises UserError."""
        found = _TEXT.fullmatch(text.strip())
        if found is None or float(found[2]) == 0:
            raise UserError(f"--until {text}: no threshold", f"write {FORM}")
        metric: Metric = found[1]  # type: ignore[assignment]
        return cls(metric, float(found[2]) * _UNITS_MS[found[3]])

    def __str__(self) -> str:
        return f"{self.metric} of {self.limit_ms:g} ms"


def standing(values_ms: Sequence[float], limit_ms: float, alpha: float) -> Standing:
    """The t interval of the mean logarithm against the limit, at a two-sided error of `alpha`.

    One value decides nothing.
    """
    found = interval(values_ms, alpha)
    if found is None:
        return "undecided"
    if found.high <= limit_ms:
        return "below"
    return "above" if found.low > limit_ms else "undecided"
