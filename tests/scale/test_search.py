"""The search for a knee that is known: exact mean-value analysis of a closed network, with noise on every run."""

from __future__ import annotations

import math

import numpy as np
import pytest
from linerate.errors import UserError
from linerate.scale import Capacity, Search, SearchLimits, Threshold, standing

from tests.scale.simulated import LIMIT_MS, MOST, knee, response_ms

SEEDS = 100


def searched(seed: int, disks: int, service_ms: float, noise: float) -> Search:
    random = np.random.default_rng(seed)
    search = Search(SearchLimits(LIMIT_MS, most=MOST))
    while (load := search.next()) is not None:
        search.record(load, response_ms(load, disks, service_ms) * math.exp(random.normal(0, noise)))
    return search


def holds(found: Capacity, true: int) -> bool:
    return (found.kept or 0) <= true and (found.missed is None or true < found.missed)


@pytest.mark.long
@pytest.mark.parametrize(
    ("disks", "service_ms", "noise"), [(8, 4.0, 0.005), (24, 5.0, 0.02), (24, 4.0, 0.05)]
)
def test_the_true_knee_is_in_the_interval_at_half_the_runs(
    disks: int, service_ms: float, noise: float
) -> None:
    true = knee(disks, service_ms)
    assert 2 < true < MOST, "the case has a knee"
    found = [searched(seed, disks, service_ms, noise) for seed in range(SEEDS)]
    assert sum(holds(search.capacity(), true) for search in found) >= 95
    sweep = 6 * (true + 1)  # each load up to the first that misses the limit, with all repeats
    runs = sorted(search.runs for search in found)
    assert runs[len(runs) // 2] <= sweep / 2
    widths = sorted((search.capacity().missed or MOST) - (search.capacity().kept or 0) for search in found)
    assert widths[len(widths) // 2] <= max(2, 10 * noise * true)


def test_without_noise_the_answer_is_exact() -> None:
    for disks in (1, 3, 8, 20):
        true = knee(disks, 5.0)
        found = searched(1, disks, 5.0, 1e-6).capacity()
        assert holds(found, true)
        assert found.missed is not None
        assert found.missed - (found.kept or 0) <= 1 + len(found.undecided)


def test_a_limit_that_is_always_or_never_kept() -> None:
    always = Search(SearchLimits(LIMIT_MS, most=40))
    while (load := always.next()) is not None:
        always.record(load, 1.0 + load / 1e6)
    assert always.capacity() == Capacity(40, None, ())
    never = Search(SearchLimits(LIMIT_MS, least=4, most=40))
    while (load := never.next()) is not None:
        assert load == 4
        never.record(load, 30.0 + never.runs / 1e6)
    assert never.capacity() == Capacity(None, 4, ())


def test_it_ends_whatever_is_measured() -> None:
    random = np.random.default_rng(3)
    for _ in range(50):
        search = Search(SearchLimits(LIMIT_MS, most=MOST))
        while (load := search.next()) is not None:
            search.record(load, float(random.choice([1.0, 19.0, 20.0, 21.0, 900.0])))
            assert search.runs <= 6 * MOST


def test_resolution_ends_it_earlier() -> None:
    fine, coarse = (Search(SearchLimits(LIMIT_MS, most=4096, resolution=one)) for one in (0.0, 0.1))
    for search in (fine, coarse):
        while (load := search.next()) is not None:
            search.record(load, load / 100 + 1e-6 * search.runs)
    assert coarse.runs < fine.runs
    kept, missed = coarse.capacity().kept, coarse.capacity().missed
    assert kept is not None
    assert missed is not None
    assert kept <= 2000 < missed <= kept + 0.1 * kept + 1


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((10.0,), "undecided"),
        ((10.0, 10.1), "below"),
        ((30.0, 30.2), "above"),
        ((19.0, 21.0, 20.0), "undecided"),
        ((20.0, 20.0, 20.0), "undecided"),
    ],
)
def test_standing(values: tuple[float, ...], expected: str) -> None:
    assert standing(values, LIMIT_MS, 0.05) == expected


def test_thresholds_are_read() -> None:
    assert Threshold.parse("mean=20ms") == Threshold("mean", 20.0)
    assert Threshold.parse("p99=1.5s") == Threshold("p99", 1500.0)
    assert Threshold.parse("p50=200us") == Threshold("p50", 0.2)
    for text in ("20ms", "p98=1ms", "mean=0ms", "mean=-1ms", "mean=20", ""):
        with pytest.raises(UserError, match="threshold"):
            Threshold.parse(text)


def test_bad_limits() -> None:
    for limits in ({"least": 0}, {"least": 9, "most": 8}, {"repeats_least": 1}, {"repeats_most": 1}):
        with pytest.raises(UserError):
            SearchLimits(LIMIT_MS, **limits)
    with pytest.raises(ValueError, match="response time"):
        Search(SearchLimits(LIMIT_MS)).record(1, 0.0)
