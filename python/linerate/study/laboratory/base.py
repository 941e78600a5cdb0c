"""What a study needs of the place where it runs. `virtual` and `hosts` give it, and a simulation in the tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from linerate.host import SetUp
from linerate.results.manifest import Stamp
from linerate.study.model import San, Settings, Workload

__all__ = ["Laboratory", "Measured", "SetUp"]


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run came to."""

    values: Mapping[str, float]
    """By the names of `linerate.analysis.verdict`."""
    stamp: Stamp | None = None
    reason: str = ""
    """Why it is void, if it is."""
    series: Sequence[float] = ()
    """The figure that decides, or I/Os per second, interval by interval, warm-up left out."""
    interval_s: float = 1.0
    demands_s: Mapping[str, float] = field(default_factory=dict)
    """Of a closed loop, per station the busy seconds per I/O (`linerate.scale.laws`)."""


class Laboratory(Protocol):
    """Where steps run. One SAN is up at a time; a setting holds until the next `apply`, `restore` or `close`.

    Every call raises LinerateError when it cannot do what it says, and KeyboardInterrupt when the user stops it.
    """

    def bring_up(self, san: San, cases: Iterable[Settings]) -> Mapping[str, Any]:
        """Makes a SAN ready, in place of the one before, and says what carries it and what holds on it by default.

        `cases` are all settings that will be asked for, so that a fabric can be chosen that has them.
        """

    def apply(self, settings: Settings) -> SetUp:
        """Makes these settings hold and puts back everything else that an earlier call changed.

        A setting that cannot be had is refused, not an error.
        """

    def measure(self, workload: Workload, directory: Path, record: Mapping[str, Any]) -> Measured:
        """Runs a workload into a new run directory; `record` goes into the manifest beside what it measures.

        A run that failed raises; its directory then says why.
        """

    def restore(self) -> None:
        """Puts every setting back as it was found. Twice is once."""

    def close(self) -> None:
        """Restores, and takes away what `bring_up` made. Twice is once."""
