"""The law of scaling: known parameters are found, and its intervals hold loads that it has not seen."""

from __future__ import annotations

import numpy as np
import pytest
from linerate.scale.laws.universal import Parameters, fit, peak

from tests.scale.simulated import response_ms

LOADS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64)


def rates(
    truth: Parameters, noise: float, seed: int, loads: tuple[int, ...] = LOADS
) -> dict[int, list[float]]:
    random = np.random.default_rng(seed)
    return {
        load: [truth.rate(load) * float(np.exp(random.normal(0, noise))) for _ in range(3)] for load in loads
    }


def test_parameters_are_found() -> None:
    truth = Parameters(150.0, 0.04, 2e-4)
    law = fit(rates(truth, 0.001, 1))
    assert law is not None
    assert law.model.g == pytest.approx(150.0, rel=0.01)
    assert law.model.a == pytest.approx(0.04, rel=0.05)
    assert law.model.b == pytest.approx(2e-4, rel=0.05)
    assert peak(law) == pytest.approx((0.96 / 2e-4) ** 0.5, rel=0.03)


def test_equal_disks_have_contention_and_no_peak() -> None:
    """Eight equal disks: a = 1 / 8, b = 0."""
    closed = {load: [1000 * load / response_ms(load, 8, 5.0, 0.0)] for load in LOADS}
    law = fit(closed)
    assert law is not None
    assert law.model.a == pytest.approx(1 / 8, rel=0.01)
    assert peak(law) is None


@pytest.mark.long
@pytest.mark.parametrize("noise", [0.005, 0.03])
@pytest.mark.parametrize("case", ["law", "disks behind a delay"])
def test_intervals_hold_loads_that_were_not_measured(case: str, noise: float) -> None:
    """With ten loads an interval of 95 % can hold at most 10 of 11."""
    truth = Parameters(150.0, 0.04, 2e-4)
    held = 0
    total = 100
    for seed in range(total):
        random = np.random.default_rng(1000 + seed)
        load = int(random.integers(3, 64))
        if case == "law":
            law, true = fit(rates(truth, noise, seed)), truth.rate(load)
        else:
            closed = {
                one: [1000 * one / response_ms(one, 8, 5.0, 3.0) * float(np.exp(random.normal(0, noise)))]
                for one in LOADS
            }
            law, true = fit(closed), 1000 * load / response_ms(load, 8, 5.0, 3.0)
        assert law is not None
        low, high = law.interval(load)
        held += low <= true <= high
    assert held >= 90


def test_it_says_nothing_without_enough_loads_or_out_of_reach() -> None:
    truth = Parameters(150.0, 0.04, 2e-4)
    assert fit(rates(truth, 0.01, 1, LOADS[:4])) is None
    law = fit(rates(truth, 0.01, 1, LOADS[:5]))
    assert law is not None
    assert law.rate(2 * LOADS[4]) > 0
    with pytest.raises(ValueError, match="largest that was measured is 12"):
        law.interval(2 * LOADS[4] + 1)
