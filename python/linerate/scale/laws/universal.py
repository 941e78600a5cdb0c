"""The Universal Scalability Law, fitted to measured throughput.

    X(N) = g N / (1 + a (N - 1) + b N (N - 1))

N is the load, X the rate, g the rate of one, a the share that is done one at a time (contention), b the cost of
agreement between all (coherency). a and b are not negative. With b = 0 it is also the exact rate of a closed network of
1 / a equal disks. Source: N. Gunther, A General Theory of Computational Scalability Based on Rational Functions, 2008.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from linerate.scale.laws.jackknife import REACH, Law, left_out_one_by_one

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


def peak(law: Law[Parameters]) -> float | None:
    """The load with the highest rate, sqrt((1 - a) / b).

    None where the loads do not show that the rate falls again: a law without one of them has b = 0, or the peak is
    beyond reach.
    """
    if min(one.model.b for one in law.left_out) <= 0 or law.model.b <= 0:
        return None
    load = sqrt((1 - law.model.a) / law.model.b)
    return load if load <= REACH * law.largest_load else None


def fit(rates: Mapping[int, Sequence[float]]) -> Law[Parameters] | None:
    """The law of measured rates, repeats by load; None with fewer than five loads."""
    if len(rates) < _LOADS_MIN:
        return None
    means = {load: float(np.mean(values)) for load, values in rates.items()}

    def fitted(choices: Sequence[Sequence[int]]) -> list[Parameters]:
        return [
            _fitted(np.array(loads, float), np.array([means[load] for load in loads])) for loads in choices
        ]

    return left_out_one_by_one(means, fitted)


def _fitted(loads: Floats, rates: Floats) -> Parameters:
    """Least squares of logarithms: errors are relative."""
    from scipy.optimize import least_squares  # type: ignore[import-untyped]  # loads slowly, and few need it

    first = float(rates[0] / loads[0])

    def misfit(tried: Floats) -> Floats:
        g, a, b = tried
        model = g * first * loads / (1 + a * (loads - 1) + b * loads * (loads - 1))
        return np.asarray(np.log(model) - np.log(rates))

    bounds = ([1e-6, 0, 0], [1e6, 1.0, 1.0])
    found = least_squares(misfit, [1.0, 0.01, 1e-4], bounds=bounds, x_scale=[1.0, 0.01, 1e-4])
    g, a, b = (float(value) for value in found.x)
    return Parameters(g * first, a, b if b > _NO_COHERENCY else 0.0)
