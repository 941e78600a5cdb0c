"""Conditions of `compare --fail-if`: what holds, what is only seen, what cannot be judged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from linerate.analysis import RunComparison, StepComparison, compare_runs, judge_conditions, parse_condition
from linerate.analysis.compare import METRICS, compare_values
from linerate.analysis.welch import welch_interval
from linerate.errors import UserError

from tests.support.samples.synthetic import Load, make_run

NAMES = {metric.name: metric for metric, _ in METRICS}


def comparison(metric: str, a: Sequence[float], b: Sequence[float]) -> RunComparison:
    step = StepComparison("rd1", (compare_values(NAMES[metric], a, b),))
    return RunComparison(("a",), ("b",), (step,), (), (), (), ())


def outcome(text: str, a: Sequence[float], b: Sequence[float]) -> str:
    condition = parse_condition(text)
    (result,) = judge_conditions([condition], comparison(condition.metric.name, a, b))
    return result.outcome


def test_the_interval_is_welchs() -> None:
    """By hand: variances 1 and 4, n 3 and 3: error sqrt(5/3), freedom (5/3)^2/((1/3)^2/2+(4/3)^2/2) = 50/17.

    t(0.975, 50/17) = 3.2199 by linear interpolation between t(2) = 4.3027 and t(3) = 3.1824 in 1/freedom: near 3.22.
    """
    interval = welch_interval([9, 10, 11], [18, 20, 22])
    assert interval is not None
    low, high = interval
    assert (low + high) / 2 == pytest.approx(10)
    assert (high - low) / 2 == pytest.approx(3.22 * math.sqrt(5 / 3), rel=0.005)
    assert welch_interval([1], [2, 3]) is None


@pytest.mark.parametrize(
    ("text", "a", "b", "expected"),
    [
        ("iops < -5%", [100, 101, 99], [90, 91, 89], "holds"),
        ("iops < -5%", [100, 101, 99], [97, 98, 96], "does not hold"),
        # -6 %, interval about -12 to +0.5
        ("iops < -5%", [100, 103, 97], [94, 97, 91], "not shown"),
        ("iops < -5 %", [100], [94], "holds"),
        ("iops < -5%", [100], [96], "does not hold"),
        ("iops > +5%", [100, 101, 99], [110, 111, 109], "holds"),
        ("p99_ms > 10%", [2.0, 2.02, 1.98], [2.5, 2.52, 2.48], "holds"),
        ("p99_ms > 10%", [], [2.5], "not judged"),
        ("host_retransmit_percent > 10%", [0.0], [0.5], "not judged"),
        ("host_retransmit_percent > 0.1 points", [0.0], [0.5], "holds"),
        ("host_retransmit_percent > 0.1points", [0.0, 0.01, 0.0], [0.5, 0.51, 0.5], "holds"),
        ("host_cpu_percent > 3 points", [10, 12, 11], [14, 17, 15], "not shown"),
    ],
)
def test_a_condition_holds_only_where_the_interval_excludes_the_limit(
    text: str, a: list[float], b: list[float], expected: str
) -> None:
    assert outcome(text, a, b) == expected


def test_one_run_on_a_side_is_said_plainly() -> None:
    (result,) = judge_conditions([parse_condition("iops < -5%")], comparison("iops", [100], [90, 91]))
    assert "one run on a side: no interval, the ratio alone decided" in result.sentence
    assert (result.low, result.high) == (None, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("iop < -5%", "no metric iop"),
        ("iops -5%", "is not understood"),
        ("iops < -5", "is not understood"),
        ("iops == -5%", "is not understood"),
        ("iops < -5% and more", "is not understood"),
        ("", "is not understood"),
        ("iops < -100%", "can never hold"),
        ("iops < -5 points", "no percentage"),
    ],
)
def test_a_wrong_condition_is_refused(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        parse_condition(text)
    assert caught.value.hint
    if "no metric" in message:
        assert all(name in caught.value.hint for name in NAMES)


def test_a_step_that_the_candidate_lost_is_not_judged(tmp_path: Path) -> None:
    load = Load(intervals=3, warmup=0, volumes=1, points=20)
    a = make_run(tmp_path / "a", [load, replace(load, name="rd2")])
    b = make_run(tmp_path / "b", [load])
    results = judge_conditions([parse_condition("iops < -5%")], compare_runs([a], [b]))
    assert [(result.step, result.outcome) for result in results] == [
        ("rd1", "does not hold"),
        ("rd2", "not judged"),
    ]
