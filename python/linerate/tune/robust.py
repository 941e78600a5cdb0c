"""Least squares in which runs far from all others count little or nothing: a run that was disturbed must not decide.

The estimate is Tukey's biweight, begun from Huber's (Huber and Ronchetti, Robust Statistics, chapter 7). The weight of
a run falls with its residual, relative to a spread that is the median of the residuals. The standard error is that of
their section 7.6, which counts what the weights cost. It is used with Student's t and the degrees of freedom of the
fit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linerate.analysis.verdict.estimate import Array

_HUBER = 1.345  # 95 % of the efficiency of least squares where all runs are normal
_BIWEIGHT = 4.685  # likewise
_STEPS = 30
_MEDIAN_OF_NORMAL = 0.6745
_CLOSE = 1e-4  # of the spread: then the steps end
_SPREAD_LEAST = 1e-9  # runs in modelled time may agree to the bit


@dataclass(frozen=True, slots=True)
class Fit:
    """Coefficients of the columns (columns,), their standard errors (columns,), and the degrees of freedom.

    `spread` is the standard deviation of a run, and `weights` (runs,) are from 0 (left out) to 1.
    """

    coefficients: Array
    errors: Array
    freedom: int
    spread: float
    weights: Array


def fit(columns: Array, values: Array) -> Fit:
    """Fits `values` (runs,) by `columns` (runs, columns), which are independent and fewer than the runs.

    Raises ValueError for columns that are not.
    """
    runs, count = columns.shape
    freedom = runs - count
    if freedom < 1 or np.linalg.matrix_rank(columns) < count:
        raise ValueError(f"{runs} runs do not tell {count} effects apart")
    coefficients, spread = _solved(columns, values, np.ones(runs)), _SPREAD_LEAST
    for _ in range(_STEPS):
        residuals = values - columns @ coefficients
        spread = _spread(residuals, freedom)
        weights = np.minimum(1.0, _HUBER * spread / np.maximum(np.abs(residuals), _SPREAD_LEAST))
        before, coefficients = coefficients, _solved(columns, values, weights)
        if np.abs(coefficients - before).max() < _CLOSE * spread:
            break
    for _ in range(_STEPS):  # it has several solutions: it keeps the spread that Huber's estimate found
        weights = _biweights(values - columns @ coefficients, spread)
        before, coefficients = coefficients, _solved(columns, values, weights)
        if np.abs(coefficients - before).max() < _CLOSE * spread:
            break
    residuals = values - columns @ coefficients
    weights = _biweights(residuals, spread)
    deviation = _deviation(residuals / spread, weights, count) * spread
    inverse = np.linalg.inv(columns.T @ columns)
    return Fit(coefficients, deviation * np.sqrt(np.diag(inverse)), freedom, deviation, weights)


def _solved(columns: Array, values: Array, weights: Array) -> Array:
    """The weighted least squares, of the smallest length where too many weights are 0."""
    weighted = columns * weights[:, None]
    try:
        return np.asarray(np.linalg.solve(weighted.T @ columns, weighted.T @ values))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(weighted.T @ columns, weighted.T @ values, rcond=None)[0])


def _biweights(residuals: Array, spread: float) -> Array:
    return np.asarray(np.clip(1 - (residuals / spread / _BIWEIGHT) ** 2, 0.0, None) ** 2)


def _spread(residuals: Array, freedom: int) -> float:
    """The standard deviation of normal runs that have these residuals in the middle.

    A fit of many columns makes residuals small: as many of them as there are columns are about zero and left out.
    """
    sizes = np.sort(np.abs(residuals))[len(residuals) - freedom :]
    return max(float(np.median(sizes)) / _MEDIAN_OF_NORMAL, _SPREAD_LEAST)


def _deviation(distance: Array, weights: Array, count: int) -> float:
    """The standard deviation in units of the spread that gives the right standard errors."""
    runs = len(distance)
    scores = weights * distance
    inside = np.abs(distance) < _BIWEIGHT
    square = (distance / _BIWEIGHT) ** 2
    slopes = np.where(inside, (1 - square) * (1 - 5 * square), 0.0)
    slope = max(float(slopes.mean()), 0.05)
    correction = 1 + count / runs * float(slopes.var()) / slope**2
    return correction * float(np.sqrt((scores**2).sum() / (runs - count))) / slope
