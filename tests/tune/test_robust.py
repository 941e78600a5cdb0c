"""The robust fit against least squares, and with disturbed runs."""

from __future__ import annotations

import numpy as np
import pytest
from linerate.tune.robust import fit


def test_normal_runs_have_the_estimate_of_least_squares_and_intervals_that_hold() -> None:
    dice = np.random.default_rng(5)
    columns = np.column_stack([np.ones(64), dice.choice((-1.0, 1.0), (64, 15))])
    covered = apart = 0.0
    for _ in range(200):
        values = dice.normal(0, 1, 64)
        found = fit(columns, values)
        least = np.linalg.lstsq(columns, values, rcond=None)[0]
        apart = max(apart, float(np.abs(found.coefficients - least).max()))
        covered += float((np.abs(found.coefficients) <= 2.01 * found.errors).mean()) / 200
    assert covered == pytest.approx(0.95, abs=0.02)
    assert apart < 0.3  # a standard error is about 0.14


def test_a_disturbed_run_does_not_count() -> None:
    dice = np.random.default_rng(6)
    columns = np.column_stack([np.ones(32), np.tile((-1.0, 1.0), 16)])
    values = 2 + 0.5 * columns[:, 1] + dice.normal(0, 0.01, 32)
    values[7] -= 5
    found = fit(columns, values)
    assert found.coefficients == pytest.approx([2, 0.5], abs=0.01)
    assert found.weights[7] == 0
    assert found.spread == pytest.approx(0.01, rel=0.4)


def test_runs_that_agree_to_the_bit_are_fitted() -> None:
    columns = np.column_stack([np.ones(8), np.tile((-1.0, 1.0), 4)])
    found = fit(columns, columns @ np.array([3.0, 1.0]))
    assert found.coefficients == pytest.approx([3, 1])
    assert (found.errors < 1e-6).all()


def test_too_few_runs_are_refused() -> None:
    with pytest.raises(ValueError, match="2 runs do not tell 2 effects apart"):
        fit(np.eye(2), np.ones(2))
