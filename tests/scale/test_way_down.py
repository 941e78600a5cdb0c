"""The way down: it tells of a SAN that is slower after a larger load, and is silent about one that is not."""

from __future__ import annotations

import pytest
from linerate.scale import Parts, SearchLimits, Threshold, runs_planned
from linerate.scale.way_down import LOADS_MOST, compared, loads_down
from linerate.scale.words import way_down_text

from tests.scale.simulated import LIMIT_MS, Disks, carried_out

DOWN = Parts(headroom=False)
MEAN = Threshold("mean", LIMIT_MS)


def test_it_begins_above_the_threshold_and_repeats_measured_loads() -> None:
    procedure = carried_out(Disks().run, DOWN)
    kept = procedure.capacity().kept
    assert kept is not None
    *up, highest, largest, half, quarter = procedure.runs
    assert {run.purpose for run in up} == {"up"}
    assert [run.purpose for run in (highest, largest, half, quarter)] == ["down"] * 4
    assert highest.load == max(run.load for run in up)
    assert largest.load == kept
    assert kept / 3 < half.load < 0.75 * kept
    assert quarter.load < half.load
    assert {run.load for run in procedure.runs[-4:]} <= {run.load for run in up}
    assert loads_down(up, 1) == [highest.load, 1]


def test_a_san_that_stays_slow_is_told() -> None:
    procedure = carried_out(Disks(noise=0.01, past=100, slower_after=1.3).run, DOWN)
    text = way_down_text("threads", MEAN, procedure.runs)
    assert "The way down differs by more than repeats explain" in text
    kept = procedure.capacity().kept
    assert f"at {kept} threads a mean of" in text
    assert text.count(". ") == 1, "one finding, and what it means"


@pytest.mark.long
def test_noise_alone_is_no_difference() -> None:
    """At most 5 in 100 searches may tell of one; 200 allow for 18 by chance (a binomial limit of 99 %)."""
    told = sum(
        any(one.differs for one in compared(carried_out(Disks(seed=seed).run, DOWN).runs))
        for seed in range(200)
    )
    assert told <= 18
    text = way_down_text("threads", MEAN, carried_out(Disks().run, DOWN).runs)
    assert text.startswith("On the way down (")
    assert text.endswith("nothing differs by more than repeats explain.")


def test_it_can_be_left_out_and_is_planned() -> None:
    procedure = carried_out(Disks().run, Parts(down=False, headroom=False))
    assert {run.purpose for run in procedure.runs} == {"up"}
    assert way_down_text("threads", MEAN, procedure.runs) == ""
    limits = SearchLimits(LIMIT_MS)
    longer, shorter = runs_planned(limits, Parts()), runs_planned(limits, Parts(down=False))
    assert longer.down_most == LOADS_MOST
    assert longer.most - shorter.most == LOADS_MOST
