"""A metric: a figure that runs are compared by, with its unit and which way is good."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Scale = Literal["ratio", "difference"]
"""How two values are compared. Retransmits can be zero, so they are compared by difference, in points."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure that is compared. `better` is +1 when more is good, -1 when less is good, and 0 when neither is.

    `margin` replaces the relative margin of a study where values are compared by difference.
    """

    name: str
    label: str
    unit: str
    better: int
    scale: Scale = "ratio"
    margin: float | None = None
