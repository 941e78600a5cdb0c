"""The window test: what it accepts, what it refuses, and where it says that steady state began."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linerate.analysis.steady import steady_state, window_test


def test_five_known_rounds() -> None:
    mean, spread, slope = window_test([90, 95, 100, 105, 110])
    assert (mean, spread, slope) == pytest.approx((100, 20, 20))


@pytest.mark.parametrize(
    ("values", "attained"),
    [
        ([100] * 5, True),
        ([100, 109, 91, 109, 100], True),
        ([100, 111, 90, 111, 100], False),  # range 21 %
        ([94, 97, 100, 103, 106], False),  # slope 12 %
        ([96, 98, 100, 102, 104], True),
        ([100, 100, 100, 100, 0], False),
    ],
)
def test_limits_of_range_and_slope(values: list[float], attained: bool) -> None:
    steady = steady_state(values)
    assert steady is not None
    assert steady.attained is attained


def test_the_end_of_a_ramp_is_found() -> None:
    steady = steady_state([20, 40, 60, 80] + [100] * 16)
    assert steady is not None
    assert not steady.attained
    assert steady.steady_from is not None
    assert 2 <= steady.steady_from <= 5


def test_too_little_to_judge() -> None:
    assert steady_state([100] * 4) is None
    assert steady_state([0] * 10) is None
    assert steady_state([]) is None


@given(st.lists(st.floats(1, 1e6), min_size=5, max_size=60), st.floats(0.001, 1000))
def test_the_unit_does_not_matter(values: list[float], factor: float) -> None:
    plain, scaled = steady_state(values), steady_state([value * factor for value in values])
    assert plain is not None
    assert scaled is not None
    assert scaled.range_percent == pytest.approx(plain.range_percent, abs=1e-6)
    assert scaled.slope_percent == pytest.approx(plain.slope_percent, abs=1e-6)


@given(st.floats(1, 1e6), st.integers(5, 60))
def test_a_constant_is_steady(value: float, length: int) -> None:
    steady = steady_state([value] * length)
    assert steady is not None
    assert steady.attained
