"""Welch's interval: how far the means of two small samples are apart.

Source: B. L. Welch, The generalization of "Student's" problem when several different population variances are
involved, Biometrika 34 (1947) 28-35. Both sides may scatter differently; each value is assumed to scatter normally.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

CONFIDENCE = 0.95


def welch_interval(a: Sequence[float], b: Sequence[float]) -> tuple[float, float] | None:
    """Bounds of mean(b) - mean(a) at 95 %, two-sided; None with fewer than two values on a side."""
    if len(a) < 2 or len(b) < 2:
        return None
    part_a, part_b = _variance(a) / len(a), _variance(b) / len(b)
    error = math.sqrt(part_a + part_b)
    difference = mean(b) - mean(a)
    if error == 0:
        return difference, difference
    from scipy import special  # type: ignore[import-untyped]  # loads slowly; a run needs the module, not this

    freedom = (part_a + part_b) ** 2 / (part_a**2 / (len(a) - 1) + part_b**2 / (len(b) - 1))
    reach = float(special.stdtrit(freedom, (1 + CONFIDENCE) / 2)) * error
    return difference - reach, difference + reach


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean."""
    return sum(values) / len(values)


def _variance(values: Sequence[float]) -> float:
    middle = mean(values)
    return sum((value - middle) ** 2 for value in values) / (len(values) - 1)
