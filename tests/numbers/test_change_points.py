"""Changes of level: found where they are, rarely found where nothing changed, and p as counted by hand."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from itertools import permutations
from statistics import NormalDist

import pytest
from linerate.history import change_points, points_needed
from linerate.history.change_points import LEVEL_POINTS_MIN, p_of_change

SERIES = 1_000
Noise = Callable[[random.Random], float]

NOISES: dict[str, Noise] = {
    "normal": lambda dice: dice.gauss(100, 1),
    "lognormal": lambda dice: 100 * dice.lognormvariate(0, 0.5),
    "heavy tails": lambda dice: 100 + dice.gauss(0, 1) / max(abs(dice.gauss(0, 1)), 1e-9),
    "one run in ten disturbed": lambda dice: dice.gauss(100, 1) * (0.6 if dice.random() < 0.1 else 1),
    "whole numbers with many ties": lambda dice: float(round(dice.gauss(3, 1))),
}


@pytest.mark.long
@pytest.mark.parametrize("points", [10, 40])
@pytest.mark.parametrize("noise", NOISES)
def test_without_a_change_1_line_in_100_shows_one(noise: str, points: int) -> None:
    """Upper limit: 1 % and three standard errors of the share of 1,000 lines."""
    dice = random.Random(f"null {noise} {points}")
    series = 200 if "ties" in noise else SERIES  # each set of ties has a distribution of its own
    found = sum(bool(change_points([NOISES[noise](dice) for _ in range(points)])) for _ in range(series))
    assert found / series <= 0.01 + 3 * math.sqrt(0.01 * 0.99 / series)


@pytest.mark.long
@pytest.mark.parametrize(("points", "at"), [(30, 15), (40, 36), (60, 10)])
def test_a_step_of_four_standard_deviations_is_found_in_its_place(points: int, at: int) -> None:
    dice = random.Random(f"step {points} {at}")
    found, placed = 0, 0
    for _ in range(200):
        values = [dice.gauss(100 - 4 * (place >= at), 1) for place in range(points)]
        changes = change_points(values)
        found += bool(changes)
        placed += any(abs(change.index - at) <= 1 for change in changes)
    assert found >= 190
    assert placed >= 180


def test_p_is_the_share_of_orders_that_show_as_much() -> None:
    """Of the 720 orders of six values, counted here one by one."""
    values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]

    scores = {rank: NormalDist().inv_cdf(rank / 7) for rank in values}

    def statistic(order: tuple[float, ...]) -> float:
        return abs(sum(scores[rank] for rank in order[:3])) / math.sqrt(3 * 3)

    orders = [statistic(order) for order in permutations(values)]
    exact = sum(one >= statistic(tuple(values)) - 1e-9 for one in orders) / len(orders)
    assert exact == pytest.approx(0.1), "2 in C(6, 3)"
    assert p_of_change(values) == pytest.approx(exact, abs=4 * math.sqrt(0.1 * 0.9 / 9_999))
    (change,) = change_points(values, confidence=0.85)
    assert (change.index, change.before, change.after) == (3, 2.0, 5.0)


def test_two_steps_are_two_changes_with_their_medians() -> None:
    dice = random.Random(5)
    levels = [100.0] * 20 + [90.0] * 20 + [97.0] * 20
    first, second = change_points([level + dice.gauss(0, 0.5) for level in levels])
    assert (first.index, second.index) == (20, 40)
    assert first.change_percent == pytest.approx(-10, abs=0.5)
    assert second.change_percent == pytest.approx(100 * 7 / 90, abs=0.7)
    assert first.after == second.before
    assert first.confidence_percent > 99.9


def test_one_stray_run_is_no_change_of_level() -> None:
    dice = random.Random(3)
    values = [dice.gauss(100, 1) for _ in range(40)]
    values[25] = 1.0
    assert change_points(values) == ()


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 9.0], [5.0] * 50, [1.0, 1.0, 1.0, 9.0, 9.0]])
def test_short_and_constant_lines_have_no_change(values: list[float]) -> None:
    assert change_points(values) == ()


@pytest.mark.parametrize(("confidence", "needed"), [(0.95, 8), (0.99, 10), (0.999, 14)])
def test_from_so_many_points_on_a_clean_step_is_found(confidence: float, needed: int) -> None:
    """2 / C(8,4) = 0.029, 2 / C(10,5) = 0.0079, 2 / C(14,7) = 0.00058."""
    assert points_needed(confidence) == needed
    step = [float(place) + 100 * (place >= needed // 2) for place in range(needed)]
    assert len(change_points(step, confidence)) == 1
    shorter = [value for place, value in enumerate(step) if place not in (0, needed - 1)]
    assert len(shorter) < 2 * LEVEL_POINTS_MIN or change_points(shorter, confidence) == ()


def test_a_zero_level_has_no_change_in_percent() -> None:
    (change,) = change_points([0.0] * 10 + [5.0] * 10)
    assert change.change_percent is None
