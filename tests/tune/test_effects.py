"""Effects and interactions: their signs, what cannot be told apart, drift, and runs that are missing."""

from __future__ import annotations

import itertools
import random

import pytest
from linerate.errors import HostError
from linerate.tune import Factor, Space, TuneRun, screening_design
from linerate.tune.effects import effects
from linerate.tune.foldover import candidates, fold_factor, folded

SPACE = Space(factors=tuple(Factor(name=f"f{number}", levels=("off", "on")) for number in range(8)))
POINTS = screening_design(SPACE).points
MAIN, JOINT = 0.10, 0.04


def runs(points: tuple[tuple[int, ...], ...], pair: tuple[int, int], stage: str) -> list[TuneRun]:
    """A main effect of the pair's first factor, the interaction, a little noise, and a SAN that becomes slower."""
    dice = random.Random(f"{pair}/{stage}")
    found = []
    for block in range(4):
        for position, point in enumerate(dice.sample(points, len(points))):
            one, two = (1 if point[index] else -1 for index in pair)
            value = MAIN / 2 * one + JOINT / 2 * one * two - 0.01 * position - 0.2 * block
            found.append(TuneRun(stage, block, position, point, value + dice.gauss(0, 0.002)))
    return found


@pytest.mark.parametrize("pair", list(itertools.permutations((0, 3, 6, 7), 2)))
def test_every_interaction_is_told_with_its_sign(pair: tuple[int, int]) -> None:
    measured = runs(POINTS, pair, "screening")
    found = effects(SPACE, measured, margin=0.01)
    # Others may be shown by chance, in one search of ten: what is there must be found.
    assert pair[0] in found.matter()
    assert found.factors[pair[0]].effect == pytest.approx(MAIN, abs=0.005)
    ordered = (min(pair), max(pair))
    (one,) = (one for one, likely in candidates(found) if ordered in likely)
    assert len(one.aliases) == 4
    assert one.effect_of(ordered) == pytest.approx(JOINT, abs=0.005)


def test_two_reasons_are_told_apart_by_a_fold_over_without_the_other_factors() -> None:
    alias = next(
        one.aliases for one in effects(SPACE, runs(POINTS, (0, 3), "s"), 0.01).pairs if one.is_active
    )
    other = next(pair for pair in alias if 0 not in pair)
    both = [
        TuneRun(run.stage, run.block, run.position, run.point, run.value + 0.05 * bool(run.point[other[0]]))
        for run in runs(POINTS, (0, 3), "screening")
    ]
    found = effects(SPACE, both, margin=0.01)
    ((_, likely),) = candidates(found)
    assert set(likely) == {(0, 3), other}
    mirrored = fold_factor(found)
    assert mirrored is not None
    points = folded(SPACE, POINTS, found, mirrored)
    kept = {0, 3, *other}
    assert all(not level for point in points for index, level in enumerate(point) if index not in kept)
    more = [
        TuneRun(run.stage, run.block, run.position, run.point, run.value + 0.05 * bool(run.point[other[0]]))
        for run in runs(points, (0, 3), "fold-over-1")
    ]
    told = effects(SPACE, [*both, *more], 0.01, likely)
    shown = {pair.aliases: pair.effect for pair in told.pairs if pair.is_active}
    assert shown == {((0, 3),): pytest.approx(JOINT, abs=0.005)}


def test_missing_runs_are_no_harm_as_long_as_effects_are_told() -> None:
    measured = runs(POINTS, (0, 3), "screening")
    lost = {POINTS[2], POINTS[9]}
    found = effects(SPACE, [run for run in measured if run.point not in lost], margin=0.01)
    assert 0 in found.matter()
    assert found.factors[0].effect == pytest.approx(MAIN, abs=0.01)
    with pytest.raises(HostError, match="too few runs count"):
        effects(SPACE, [run for run in measured if not run.point[0]], margin=0.01)
