"""The Universal Scalability Law, fitted to measured throughput.

    X(N) = g N / (1 + a (N - 1) + b N (N - 1))

N is the load, X the rate, g the rate of one, a the share that is done one at a time (contention), b the cost of
agreement between all (coherency). a and b are not negative. With b = 0 it is also the exact rate of a closed network of
1 / a equal disks. Source: N. Gunther, A General Theory of Computational Scalability Based on Rational Functions, 2008.

Its intervals are those of the jackknife+ (R. Barber et al., Predictive inference with the jackknife+, Annals of
Statistics 2021): they hold what repeats differ by, and how far the law misses a load that it has not seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, log, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares  # type: ignore[import-untyped]

REACH = 2.0
"""A prediction reaches no further than this many times the largest load that was measured."""
_LOADS_MIN = 5  # three parameters, one load left out, and one more
_NO_COHERENCY = 1e-9
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Parameters:
    """g in I/Os per second, a and b without a unit."""

    g: float
    a: float
    b: float

    def rate(self, load: float) -> float:
        """X(N)."""
        return self.g * load / (1 + self.a * (load - 1) + self.b * load * (load - 1))


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The law without one load, and the logarithm of what that load had over what the law says of it."""

    parameters: Parameters
    error: float


@dataclass(frozen=True, slots=True)
class Law:
    """The law of all loads, and the laws that leave out one of them."""

    parameters: Parameters
    left_out: tuple[LeftOut, ...]
    largest_load: int

    def rate(self, load: float) -> float:
        """Predicted rate. Raises ValueError beyond its reach."""
        self._check(load)
        return self.parameters.rate(load)

    def interval(self, load: float, share: float = 0.95) -> tuple[float, float]:
        """Where a measured rate is with this probability, if there are enough loads; with n loads at most n / (n + 1).

        Raises ValueError beyond its reach.
        """
        self._check(load)
        logs = [log(one.parameters.rate(load)) for one in self.left_out]
        errors = [abs(one.error) for one in self.left_out]
        low = sorted(centre - error for centre, error in zip(logs, errors, strict=True))
        high = sorted(centre + error for centre, error in zip(logs, errors, strict=True))
        rank = min(ceil(share * (len(logs) + 1)), len(logs))
        return float(np.exp(low[len(logs) - rank])), float(np.exp(high[rank - 1]))

    @property
    def largest_error(self) -> float:
        """By how much, relative, the law misses a load that was left out, at most."""
        return max(abs(float(np.expm1(one.error))) for one in self.left_out)

    @property
    def peak(self) -> float | None:
        """The load with the highest rate, sqrt((1 - a) / b).

        None where the loads do not show that the rate falls again: a law without one of them has b = 0, or the peak is
        beyond reach.
        """
        if min(one.parameters.b for one in self.left_out) <= 0 or self.parameters.b <= 0:
            return None
        peak = sqrt((1 - self.parameters.a) / self.parameters.b)
        return peak if peak <= REACH * self.largest_load else None

    def _check(self, load: float) -> None:
        if load > REACH * self.largest_load:
            raise ValueError(f"a load of {load:g}: the largest that was measured is {self.largest_load}")


def fit(rates: Mapping[int, Sequence[float]]) -> Law | None:
    """The law of measured rates, repeats by load; None with fewer than five loads."""
    means = {load: float(np.mean(values)) for load, values in rates.items() if len(values)}
    if len(means) < _LOADS_MIN:
        return None
    loads = np.array(sorted(means), float)
    measured = np.array([means[int(load)] for load in loads])
    left_out = []
    for place, (load, rate) in enumerate(zip(loads, measured, strict=True)):
        parameters = _fitted(np.delete(loads, place), np.delete(measured, place))
        left_out.append(LeftOut(parameters, log(rate / parameters.rate(load))))
    return Law(_fitted(loads, measured), tuple(left_out), int(loads[-1]))


def _fitted(loads: Floats, rates: Floats) -> Parameters:
    """Least squares of logarithms: errors are relative."""
    first = float(rates[0] / loads[0])

    def misfit(tried: Floats) -> Floats:
        g, a, b = tried
        model = g * first * loads / (1 + a * (loads - 1) + b * loads * (loads - 1))
        return np.asarray(np.log(model) - np.log(rates))

    bounds = ([1e-6, 0, 0], [1e6, 1.0, 1.0])
    found = least_squares(misfit, [1.0, 0.01, 1e-4], bounds=bounds, x_scale=[1.0, 0.01, 1e-4])
    g, a, b = (float(value) for value in found.x)
    return Parameters(g * first, a, b if b > _NO_COHERENCY else 0.0)
