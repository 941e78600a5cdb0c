"""Does the rate grow linearly? The rate per unit of load against that of the smallest load, with its interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from linerate.scale import Curve, Parts, Procedure, SearchLimits, growth, runs_of_curve, runs_planned

from tests.scale.simulated import LIMIT_MS, Disks, carried_out, response_ms

LOADS = range(1, 11)
NOISE = 0.02
MARGIN = 0.1


def measured(true: Mapping[int, float], seed: int, repeats: int = 4) -> dict[int, list[float]]:
    """Rates with the noise of runs."""
    random = np.random.default_rng(seed)
    return {
        load: [rate * math.exp(random.normal(0, NOISE)) for _ in range(repeats)]
        for load, rate in true.items()
    }


def saturating(disks: int) -> dict[int, float]:
    """The rates of a closed network with four I/Os in flight per unit of load."""
    return {load: 4000 * load / response_ms(4 * load, disks, 5.0) for load in LOADS}


def shares(rates: Mapping[int, float]) -> list[float]:
    return [rates[load] / load / rates[1] for load in LOADS]


def test_a_line_is_linear_at_every_load_in_95_of_100_seeds() -> None:
    line = {load: 500.0 * load for load in LOADS}
    sure = 0
    for seed in range(100):
        found = growth(measured(line, seed), MARGIN)
        assert not any(point.growth in ("less", "more") for point in found)
        sure += all(point.growth == "linear" for point in growth(measured(line, seed, repeats=8), MARGIN))
    assert sure >= 95


def test_saturation_is_seen_in_95_of_100_seeds() -> None:
    seen = 0
    for seed in range(100):
        found = growth(measured(saturating(24), seed), MARGIN)
        seen += found[-1].growth == "less"
        assert not any(point.growth == "more" for point in found)
    assert shares(saturating(24))[-1] < 0.6
    assert seen >= 95


@pytest.mark.parametrize("disks", [24, 200])
def test_all_intervals_hold_the_true_shares_together_in_95_of_100_seeds(disks: int) -> None:
    rates = saturating(disks)
    true = shares(rates)
    held = sum(
        all(
            point.low <= share <= point.high
            for point, share in zip(growth(measured(rates, seed), MARGIN), true, strict=True)
        )
        for seed in range(100)
    )
    assert held >= 95


def test_what_is_near_the_margin_is_undecided_and_more_than_linear_is_told() -> None:
    near = {1: 100.0, 2: 2 * 100.0 * (1 - MARGIN)}
    more = {1: 100.0, 2: 260.0}
    assert growth(measured(near, 1), MARGIN)[-1].growth == "undecided"
    assert growth(measured(more, 1), MARGIN)[-1].growth == "more"


def test_the_first_load_is_the_measure_of_the_others() -> None:
    first, second = growth({2: [200.0, 200.0], 4: [300.0, 300.0]}, MARGIN)
    assert (first.load, first.share, first.growth) == (2, 1.0, "linear")
    assert second.iops == pytest.approx(300.0)
    assert second.share == pytest.approx(0.75)
    assert second.low < 0.75 < second.high, "equal figures are not without error"


@pytest.mark.parametrize("rates", [{1: [1.0, 1.0]}, {1: [1.0, 1.0], 2: [2.0]}])
def test_one_load_or_one_run_shows_no_growth(rates: dict[int, Sequence[float]]) -> None:
    with pytest.raises(ValueError, match="two loads or more"):
        growth(rates, MARGIN)


def test_a_curve_has_the_same_number_of_runs_of_each_load_whatever_the_search_did() -> None:
    curve = Curve((1, 2, 3, 5), repeats=3)
    limits = SearchLimits(LIMIT_MS, most=64)
    procedure = carried_out(
        Disks(24, 5.0, seed=3).run, Parts(down=False, headroom=False, curve=curve), limits
    )
    counted = runs_of_curve(procedure.runs, curve)
    assert {load: len(runs) for load, runs in counted.items()} == dict.fromkeys(curve.loads, 3)
    assert {run.load for run in procedure.runs if run.purpose == "curve"} == {3, 5}, (
        "the search has the others"
    )
    assert {run.purpose for run in counted[1]} == {"up"}
    planned = runs_planned(limits, Parts(down=False, headroom=False, curve=curve))
    assert planned.least <= len(procedure.runs) <= planned.most
    assert planned.curve_most == 12


def test_a_curve_is_measured_also_where_no_load_keeps_the_threshold() -> None:
    curve = Curve((1, 2), repeats=3)
    slow = SearchLimits(1.0, most=8)
    procedure: Procedure = carried_out(Disks(24, 5.0).run, Parts(curve=curve), slow)
    assert procedure.capacity().kept is None
    assert [run.load for run in procedure.runs if run.purpose == "curve"].count(2) == 3
