"""What is to be run next, and what a run reached: the two values that a search exchanges with a SAN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import ConfigDict, Field

from linerate.model import Model

Axis = Literal["threads", "volumes", "rate", "hosts"]
"""hosts: each with its own volumes, all at the same load."""
_RATE_UNIT = "I/Os per s"
Purpose = Literal["up", "curve", "down", "headroom"]
"""up: the search for the largest load. curve: a load whose rate is asked for, whether or not the search needs it.
down: a load of the search once more, after the highest one. headroom: a share of the rate at the largest load, with
Poisson arrivals."""


@dataclass(frozen=True, slots=True)
class ScaleTask:
    """A run that is to be made at a load. `rate_iops` is set for headroom: the share of the rate that is asked for."""

    purpose: Purpose
    load: int
    share_percent: int | None = None
    rate_iops: float | None = None

    @property
    def name(self) -> str:
        """The end of the run directory's name."""
        if self.purpose == "headroom":
            return f"-headroom-{self.share_percent}"
        return "" if self.purpose == "up" else f"-{self.purpose}"


class Reached(Model):
    """One run. Times are response times of a paced load, service times of a closed loop."""

    model_config = ConfigDict(extra="ignore")

    purpose: Purpose = "up"
    load: int
    response_ms: float
    """By the threshold's metric."""
    mean_ms: float
    p99_ms: float | None
    iops: float
    """I/Os per second."""
    share_percent: int | None = None
    asked_iops: float | None = None
    in_flight: int | None = None
    """I/Os that a closed loop kept in flight over all volumes."""
    demands_s: dict[str, float] = Field(default_factory=dict)
    """Of a closed loop, per station the busy seconds per I/O (`laws.demands_s`)."""
    directory: str
    doubts: tuple[str, ...] = ()
    """What makes it less certain, in sentences: hosts whose clocks moved apart."""

    @property
    def is_on_curve(self) -> bool:
        """Whether it counts for the response curve: a run of the search, or of chosen loads."""
        return self.purpose in ("up", "curve")


def sought_text(axis: Axis) -> str:
    """What a search looks for: `the largest number of threads`."""
    return "the largest rate" if axis == "rate" else f"the largest number of {axis}"


def unit_text(axis: Axis) -> str:
    """The unit of several loads: `threads`, `I/Os per s`."""
    return _RATE_UNIT if axis == "rate" else axis


def load_text(axis: Axis, load: int) -> str:
    """A load with its unit: `1 thread`, `2,000 I/Os per s`."""
    return (
        f"{load:,} {_RATE_UNIT}"
        if axis == "rate"
        else f"{load:,} {axis.removesuffix('s') if load == 1 else axis}"
    )
