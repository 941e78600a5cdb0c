"""The answer of a search in words, for every way in which it can end."""

from __future__ import annotations

import pytest
from linerate.scale import Capacity, Reached, SearchLimits, Threshold
from linerate.scale.reached import Axis, sought_text
from linerate.scale.words import answer, curve_lines


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (Capacity(9, 10, ()), "Largest load: 9 threads with a mean of 20 ms (95 % confidence)."),
        (
            Capacity(9, 13, (10, 11)),
            "Largest load: between 9 and 12 threads with a mean of 20 ms (95 % confidence).",
        ),
        (Capacity(64, None, ()), "at least 64 threads"),
        (
            Capacity(32, None, (64,)),
            "at least 32 threads with a mean of 20 ms; larger ones could not be told",
        ),
        (Capacity(None, None, (2, 64)), "no number of threads with a mean of 20 ms is sure"),
        (Capacity(None, 2, ()), "Even the smallest load, 2 threads, misses a mean of 20 ms."),
        (
            Capacity(None, 4, (2, 3)),
            "at most 3 threads with a mean of 20 ms (95 % confidence); none is surely below",
        ),
    ],
)
def test_answer(found: Capacity, said: str) -> None:
    assert said in answer("threads", Threshold("mean", 20.0), SearchLimits(20.0, least=2, most=64), found)


@pytest.mark.parametrize(
    ("axis", "found", "said"),
    [
        ("hosts", Capacity(None, 1, ()), "Even the smallest load, 1 host, misses a mean of 20 ms."),
        ("hosts", Capacity(1, 2, ()), "Largest load: 1 host with a mean of 20 ms"),
        ("rate", Capacity(2000, 2400, ()), "between 2,000 and 2,399 I/Os per s with a mean of 20 ms"),
        ("rate", Capacity(4000, None, ()), "at least 4,000 I/Os per s with a mean of 20 ms"),
        ("rate", Capacity(None, None, (2, 64)), "no rate with a mean of 20 ms is sure"),
    ],
)
def test_loads_have_their_units(axis: Axis, found: Capacity, said: str) -> None:
    assert said in answer(axis, Threshold("mean", 20.0), SearchLimits(20.0, least=1, most=4000), found)


def test_what_is_sought() -> None:
    assert (sought_text("rate"), sought_text("hosts")) == ("the largest rate", "the largest number of hosts")


def test_one_run_is_counted_as_one() -> None:
    run = Reached(load=8, response_ms=90.0, mean_ms=90.0, p99_ms=None, iops=100.0, directory="runs/0")
    for runs, words in (([run], "not decided by 1 run"), ([run] * 2, "not decided by 2 runs")):
        lines = list(curve_lines("threads", Threshold.parse("mean=20ms"), runs, Capacity(4, 16, (8,))))
        assert lines[-1].endswith(words), lines
