"""Designs: their resolution, and that they never hold what is excluded."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from linerate.errors import UserError
from linerate.tune import Exclusion, Factor, Space, screening_design
from linerate.tune.design import FACTORS_MOST


def space(factors: int, *exclusions: dict[str, str]) -> Space:
    return Space(
        factors=tuple(Factor(name=f"f{number}", levels=("off", "on")) for number in range(factors)),
        exclusions=tuple(Exclusion(values=dict(values)) for values in exclusions),
    )


@pytest.mark.parametrize(
    ("factors", "points"), [(1, 2), (2, 4), (3, 8), (4, 8), (5, 16), (8, 16), (9, 32), (15, 32)]
)
def test_without_exclusions_main_effects_are_free_of_interactions(factors: int, points: int) -> None:
    design = screening_design(space(factors))
    assert (len(design.points), design.mixed) == (points, 0.0)
    assert design.points[0] == (0,) * factors
    rows = np.array(list(space(factors).signs(design.points)))
    assert (rows.sum(axis=0) == 0).all()
    for one, two in itertools.combinations(range(factors), 2):
        assert rows[:, one] @ rows[:, two] == 0


@pytest.mark.long
@pytest.mark.parametrize("factors", [2, 3, 4, 5, 8, 12])
def test_what_is_excluded_is_in_no_design(factors: int) -> None:
    dice = random.Random(factors)
    for _ in range(5):
        one, two = dice.sample(range(factors), 2)
        pair = {f"f{one}": "on", f"f{two}": dice.choice(("on", "off"))}
        asked = space(factors, pair)
        design = screening_design(asked)
        assert all(asked.allows(point) for point in design.points)
        assert len(set(design.points)) == len(design.points)
        rows = np.array(list(asked.signs(design.points)), dtype=float)
        told = np.column_stack([np.ones(len(rows)), rows])
        assert np.linalg.matrix_rank(told) == factors + 1
        assert design.mixed < 0.7


def test_what_no_design_can_have_is_refused() -> None:
    with pytest.raises(UserError, match=f"16 settings to tune; at most {FACTORS_MOST}"):
        screening_design(space(16))
    with pytest.raises(UserError, match="the baseline itself is excluded"):
        screening_design(space(3, {"f0": "off"}))
    with pytest.raises(UserError, match=r"f1: what is forbidden leaves no configurations"):
        screening_design(space(3, {"f1": "on"}))
