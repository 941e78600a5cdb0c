"""The answer of a search in words, for every way in which it can end."""

from __future__ import annotations

import pytest
from linerate.scale import Capacity, SearchLimits, Threshold
from linerate.scale.words import answer


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (Capacity(9, 10, ()), "Largest load: 9 threads with a mean of 20 ms (95 % confidence)."),
        (
            Capacity(9, 13, (10, 11)),
            "Largest load: between 9 and 12 threads with a mean of 20 ms (95 % confidence).",
        ),
        (Capacity(64, None, ()), "at least 64 threads"),
        (Capacity(32, None, (64,)), "at least 32 threads with a mean of 20 ms; larger ones are too close"),
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
