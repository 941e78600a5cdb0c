"""Factors of a search: settings with their levels, and the combinations that must not be tried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from pydantic import Field

from linerate.setting import Value
from linerate.workload.spec import FrozenSpec

Point: TypeAlias = tuple[int, ...]
"""A configuration: of each factor the index of its level. All zeros is the baseline."""


class Factor(FrozenSpec):
    """A setting and the values that it may have. The first one is the baseline's, the last one is screened against it.

    Levels between are measured only if the factor matters.
    """

    name: str
    levels: tuple[Value, ...] = Field(min_length=2)

    @property
    def last(self) -> int:
        """The index of the level that screening compares with the baseline's."""
        return len(self.levels) - 1


class Exclusion(FrozenSpec):
    """Values of factors that must not come together."""

    values: dict[str, Value] = Field(min_length=1)
    reason: str = ""
    """Why the SAN cannot have them together; empty: the user forbids it."""


class Space(FrozenSpec):
    """All configurations that may be tried."""

    factors: tuple[Factor, ...] = Field(min_length=1)
    exclusions: tuple[Exclusion, ...] = ()

    @property
    def baseline(self) -> Point:
        """Every factor at its first level."""
        return (0,) * len(self.factors)

    def settings(self, point: Point) -> dict[str, Value]:
        """The value of every factor at a point."""
        return {one.name: one.levels[level] for one, level in zip(self.factors, point, strict=True)}

    def changed(self, point: Point) -> dict[str, Value]:
        """The values in which a point differs from the baseline."""
        both = zip(self.factors, point, strict=True)
        return {one.name: one.levels[level] for one, level in both if level}

    def allows(self, point: Point) -> bool:
        """Whether no exclusion holds at a point."""
        settings = self.settings(point)
        return not any(_holds(one.values, settings) for one in self.exclusions)

    def signs(self, points: Sequence[Point]) -> Iterator[tuple[int, ...]]:
        """Points as rows of a design: -1 for the baseline's level, +1 for the last one."""
        for point in points:
            yield tuple(1 if level else -1 for level in point)

    def point(self, signs: Sequence[float]) -> Point:
        """The point of a row of a design."""
        both = zip(self.factors, signs, strict=True)
        return tuple(one.last if sign > 0 else 0 for one, sign in both)


def _holds(values: Mapping[str, Value], settings: Mapping[str, Value]) -> bool:
    return all(name in settings and settings[name] == value for name, value in values.items())
