"""Mean-value analysis: rates of a closed network that is known, also of loads that were held out."""

from __future__ import annotations

import numpy as np
import pytest
from linerate.scale.laws.choice import Laws, laws_of
from linerate.scale.laws.network import Seen, analysed, fit
from linerate.scale.laws.universal import Parameters
from linerate.scale.laws.words import laws_lines
from linerate.scale.reached import Reached

LOADS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64)
DISKS_S = (0.0005, 0.0006, 0.0007, 0.0004, 0.0005, 0.0005)
DELAY_S = 0.002
SEEDS = 100


def truth(disks_s: tuple[float, ...], delay_s: float, most: int) -> list[float]:
    """Rates of 1 to `most` customers, by the convolution algorithm: another way than mean-value analysis.

    Source: J. Buzen, Computational Algorithms for Closed Queueing Networks, Communications of the ACM 1973. The delay
    is a station with as many servers as customers: its terms are z^n / n!.
    """
    constants = [1.0]
    for number in range(1, most + 1):
        constants.append(constants[-1] * 1000 * delay_s / number)  # in ms, for seconds are too small a power
    for demand in disks_s:
        for number in range(1, most + 1):
            constants[number] += 1000 * demand * constants[number - 1]
    return [1000 * constants[number - 1] / constants[number] for number in range(1, most + 1)]


RATES = truth(DISKS_S, DELAY_S, 2 * LOADS[-1])


def measured(seed: int, noise: float, loads: tuple[int, ...] = LOADS, factor: int = 1) -> list[Reached]:
    """Three runs of each load; each load has `factor` customers. The counters of busy time have noise of their own."""
    random = np.random.default_rng(seed)
    runs = []
    for load in loads:
        for _ in range(3):
            iops = RATES[factor * load - 1] * float(np.exp(random.normal(0, noise)))
            demands = {
                f"disk {place}": demand * float(np.exp(random.normal(0, noise / 4)))
                for place, demand in enumerate(DISKS_S)
            }
            time_ms = 1000 * factor * load / iops
            runs.append(
                Reached(
                    load=load,
                    response_ms=time_ms,
                    mean_ms=time_ms,
                    p99_ms=None,
                    iops=iops,
                    in_flight=factor * load,
                    demands_s=demands,
                    directory="",
                )
            )
    return runs


def seen(runs: list[Reached]) -> list[Seen]:
    """As the law takes them."""
    return [Seen(run.load, run.iops, float(run.in_flight or 0), run.demands_s) for run in runs]


def test_the_analysis_is_exact() -> None:
    demands = np.tile(np.array([DISKS_S, DISKS_S[::-1]]), (2 * LOADS[-1], 1, 1))
    found = analysed(np.array([[0.0, DELAY_S], [DELAY_S, 1.0]]), demands)
    assert found[:, 0, 1] == pytest.approx(RATES, rel=1e-9)
    assert found[:, 1, 0] == pytest.approx(RATES, rel=1e-9)
    assert found[0, 0, 0] == pytest.approx(1 / sum(DISKS_S))


def test_the_delay_is_found_and_loads_have_several_customers() -> None:
    for factor in (1, 2):
        law = laws_of("threads", measured(1, 0.0005, factor=factor)).network
        assert law is not None
        assert law.model.delay_s == pytest.approx(DELAY_S, rel=0.02)
        assert law.model.busiest[0] == "disk 2"
        for load in (1, 20, 64):
            assert law.rate(load) == pytest.approx(RATES[factor * load - 1], rel=0.005)


@pytest.mark.long
def test_intervals_hold_loads_that_were_held_out() -> None:
    """With ten loads an interval can have at most 10 of 11. It is of a measured rate: the mean of three runs.

    The rate without noise is in it more often.
    """
    noise = 0.02
    held = {"among": 0, "beyond": 0}
    true = 0
    for seed in range(SEEDS):
        random = np.random.default_rng(1000 + seed)
        law = fit(seen(measured(seed, noise)))
        assert law is not None
        for place, load in (
            ("among", int(random.integers(1, 64))),
            ("beyond", int(random.integers(65, 128))),
        ):
            low, high = law.interval(load)
            again = RATES[load - 1] * np.exp(random.normal(0, noise, 3)).mean()
            held[place] += low <= again <= high
            true += low <= RATES[load - 1] <= high
    assert 90 <= held["among"] <= 98
    assert 90 <= held["beyond"] <= 98
    assert true >= 180


def test_the_law_that_misses_by_less_is_chosen() -> None:
    """The one knows unequal disks; the other knows a cost of agreement that no queue has."""
    unequal = laws_of("threads", measured(1, 0.005))
    assert unequal.chosen == "network"
    *both, last = laws_lines("threads", unequal)
    assert len(both) == 2
    assert "Mean-value analysis of 6 disks: 3.2 ms of work" in both[1]
    assert last.startswith("Mean-value analysis misses by less: it expects 1,4")
    assert "at 128 threads" in last
    agreement = Parameters(1000.0, 0.02, 1e-3)
    falling = [
        run.model_copy(update={"iops": agreement.rate(run.load), "demands_s": {"disk 1": 0.0001}})
        for run in measured(1, 0.005)
    ]
    assert laws_of("threads", falling).chosen == "universal"


def test_demands_of_the_nearest_loads_count() -> None:
    """A disk that orders its commands works less per I/O when its queue is long."""
    work_s = {load: 0.004 / (1 + 0.1 * np.log2(load)) for load in (1, 2, 4, 8, 16, 32)}
    demands = np.array([[[0.004 / (1 + 0.1 * np.log2(number))]] for number in range(1, 33)])
    rates = analysed(np.array([[DELAY_S]]), demands)[:, 0, 0]
    law = fit([Seen(load, float(rates[load - 1]), load, {"disk": work_s[load]}) for load in work_s])
    assert law is not None
    assert law.rate(24) == pytest.approx(rates[23], rel=0.01)
    name, demand_s = law.model.busiest
    assert name == "disk"
    assert demand_s == pytest.approx(work_s[32])


def test_it_says_nothing_without_enough_loads_or_demands() -> None:
    runs = measured(1, 0.005)
    assert fit(seen(runs[:9])) is None
    assert fit(seen(runs[:12])) is not None
    without = [run.model_copy(update={"demands_s": {}}) for run in runs]
    assert laws_of("threads", without).network is None
    assert laws_of("threads", without).chosen == "universal"
    assert laws_of("rate", runs) == Laws(None, None)
    assert list(laws_lines("threads", Laws(None, None))) == []
    law = fit(seen(runs))
    assert law is not None
    with pytest.raises(ValueError, match="largest that was measured is 64"):
        law.rate(129)
