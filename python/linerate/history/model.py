"""What a history consists of. Pure data.

A `Recorded` is what was read from one run or study directory. A `HistoryLine` is one workload and one metric over all
directories. A run gives one point per step; a study gives one point per workload and case, the median of its blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

ChangeKind = Literal["host", "kernel", "version", "settings"]
PLACE_POINTS = 2


@dataclass(frozen=True, slots=True)
class WorkloadResult:
    """The result of one workload in one directory.

    `identity` is the same for the same workload (see `identity.py`). `values` has metrics by name, units in the names.
    `facts` are host, versions and settings by key, as shown to people.
    """

    identity: str
    title: str
    source: str
    at: datetime
    values: Mapping[str, float]
    facts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Recorded:
    """What was read from one directory, whose `path` is relative to the folder.

    `left_out` is the reason why it is not counted; empty when it is. `signature` changes when the files change; it is
    empty when the files do not tell all, so that the directory must be read again.
    """

    path: str
    signature: str
    results: tuple[WorkloadResult, ...] = ()
    left_out: str = ""


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """One value of a line, and the directory that it is from."""

    at: datetime
    value: float
    path: str


@dataclass(frozen=True, slots=True)
class LevelChange:
    """A change of level between two neighbouring points of a line.

    `index` is the first point of the new level. `before` and `after` are the medians of the two levels.
    `change_percent` is None where the old level is zero. `p` is the probability of so large a statistic when nothing
    changed.
    """

    index: int
    before: float
    after: float
    p: float

    @property
    def change_percent(self) -> float | None:
        """Change of the level in percent of the old level."""
        return 100 * (self.after / self.before - 1) if self.before else None

    @property
    def confidence_percent(self) -> float:
        """100 (1 - p)."""
        return 100 * (1 - self.p)


@dataclass(frozen=True, slots=True)
class EnvironmentChange:
    """A host, kernel, version or setting that differs from the directory before, with the workloads that show it."""

    at: datetime
    path: str
    path_before: str
    kind: ChangeKind
    key: str
    label: str
    before: str
    after: str
    workloads: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HistoryLine:
    """One metric of one workload over time, oldest point first."""

    identity: str
    workload: str
    metric: str
    label: str
    unit: str
    better: int
    points: tuple[HistoryPoint, ...]
    level_changes: tuple[LevelChange, ...] = ()

    @property
    def change_percent(self) -> float | None:
        """Last against first value; None with a single point or a first value of zero."""
        first, last = self.points[0].value, self.points[-1].value
        return 100 * (last / first - 1) if len(self.points) > 1 and first else None


@dataclass(frozen=True, slots=True)
class History:
    """Everything that `linerate history` shows. `left_out` has (path, reason)."""

    folder: str
    confidence_percent: float
    lines: tuple[HistoryLine, ...]
    environment: tuple[EnvironmentChange, ...]
    left_out: tuple[tuple[str, str], ...]

    def changes_near(self, line: HistoryLine, change: LevelChange) -> tuple[EnvironmentChange, ...]:
        """What else changed at the first point of the new level, or up to two points before or after it.

        Noise can move the place of a small change of level by a few points.
        """
        begin = max(change.index - PLACE_POINTS, 0)
        near = {point.path for point in line.points[begin : change.index + PLACE_POINTS + 1]}
        return tuple(
            found for found in self.environment if found.path in near and line.workload in found.workloads
        )
