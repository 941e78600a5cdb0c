"""A law of measured rates, how far it misses a load that it has not seen, and the intervals that follow.

The law is fitted again without each load in turn. Its intervals are those of the jackknife+ (R. Barber et al.,
Predictive inference with the jackknife+, Annals of Statistics 2021): they hold what repeats differ by, and how far the
law misses. They are of loads among those that were measured. Beyond the largest nothing proves them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, exp, fsum, log, sqrt
from typing import Generic, Protocol, TypeVar

REACH = 2.0
"""A prediction reaches no further than this many times the largest load that was measured."""


class Model(Protocol):
    """Gives a rate in I/Os per second for a load."""

    def rate(self, load: float) -> float:
        """X(N), above 0."""


ModelT = TypeVar("ModelT", bound=Model, covariant=True)


@dataclass(frozen=True, slots=True)
class LeftOut(Generic[ModelT]):
    """The law without one load, and the logarithm of what that load had over what the law says of it."""

    model: ModelT
    error: float


@dataclass(frozen=True, slots=True)
class Law(Generic[ModelT]):
    """The law of all loads, and the laws that leave out one of them."""

    model: ModelT
    left_out: tuple[LeftOut[ModelT], ...]
    largest_load: int

    def rate(self, load: float) -> float:
        """Predicted rate. Raises ValueError beyond its reach."""
        self._check(load)
        return self.model.rate(load)

    def interval(self, load: float, share: float = 0.95) -> tuple[float, float]:
        """Where a measured rate is with this probability, or with `probability` if that is less.

        Raises ValueError beyond its reach.
        """
        self._check(load)
        logs = [log(one.model.rate(load)) for one in self.left_out]
        errors = [abs(one.error) for one in self.left_out]
        low = sorted(centre - error for centre, error in zip(logs, errors, strict=True))
        high = sorted(centre + error for centre, error in zip(logs, errors, strict=True))
        rank = min(ceil(share * (len(logs) + 1)), len(logs))
        return exp(low[len(logs) - rank]), exp(high[rank - 1])

    @property
    def probability(self) -> float:
        """The most that an interval of so many loads can have."""
        return len(self.left_out) / (len(self.left_out) + 1)

    @property
    def largest_error(self) -> float:
        """By how much the law misses a load that was left out, at most: a difference of logarithms."""
        return max(abs(one.error) for one in self.left_out)

    @property
    def typical_error(self) -> float:
        """The same as a root mean square of logarithms."""
        return sqrt(fsum(one.error**2 for one in self.left_out) / len(self.left_out))

    def _check(self, load: float) -> None:
        if load > REACH * self.largest_load:
            raise ValueError(f"a load of {load:g}: the largest that was measured is {self.largest_load}")


def left_out_one_by_one(
    rates: Mapping[int, float], fitted: Callable[[Sequence[Sequence[int]]], Sequence[ModelT]]
) -> Law[ModelT]:
    """The law of mean rates by load. `fitted` makes a model from each of several choices of loads, which ascend."""
    loads = sorted(rates)
    without = [[other for other in loads if other != load] for load in loads]
    whole, *others = fitted([loads, *without])
    left_out = (
        LeftOut(model, log(rates[load] / model.rate(load))) for load, model in zip(loads, others, strict=True)
    )
    return Law(whole, tuple(left_out), loads[-1])
