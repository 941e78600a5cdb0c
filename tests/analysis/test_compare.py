"""Two sides: the run is the unit, and what cannot be said is not said."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linerate.analysis import compare_runs
from linerate.analysis.compare import METRICS, compare_values
from linerate.results import RunDirectory

from tests.support.samples.synthetic import ENVIRONMENT, Load, make_run

LOAD = Load(intervals=10, warmup=0, volumes=2, points=20)
RATE = METRICS[0][0]


def runs(path: Path, load: Load, seeds: range) -> list[RunDirectory]:
    return [make_run(path / f"{load.name}-{load.iops}-{seed}", [load], seed=seed) for seed in seeds]


def test_one_run_on_a_side_gives_ratios_without_a_verdict(tmp_path: Path) -> None:
    a = runs(tmp_path, LOAD, range(1))
    b = runs(tmp_path, replace(LOAD, iops=50_000), range(1))
    comparison = compare_runs(a, b)
    rate = comparison.steps[0].metrics[0]
    assert (rate.metric, rate.label) == ("iops", "i/o rate")
    assert rate.ratio == pytest.approx(1.25, rel=0.05)
    assert (rate.low, rate.high) == (None, None)
    assert rate.verdict == "one run on a side"
    assert any("one run on a side" in warning for warning in comparison.warnings)


def test_repeats_bound_the_ratio(tmp_path: Path) -> None:
    a = runs(tmp_path, LOAD, range(4))
    b = runs(tmp_path, replace(LOAD, iops=50_000), range(4))
    rate = compare_runs(a, b).steps[0].metrics[0]
    assert rate.ratio
    assert rate.low
    assert rate.high
    assert 1.2 < rate.low < rate.ratio < rate.high < 1.3
    assert rate.verdict == "higher, better"


def test_runs_without_a_common_step_say_that_nothing_was_compared(tmp_path: Path) -> None:
    a = runs(tmp_path, LOAD, range(1))
    b = runs(tmp_path, replace(LOAD, name="other"), range(1))
    comparison = compare_runs(a, b)
    assert (comparison.steps, comparison.only_a, comparison.only_b) == ((), ("rd1",), ("other",))
    assert comparison.differences == (), "keys of a step that one side does not have are no differences"
    assert comparison.warnings[0].startswith("no step of A is in B: nothing was compared")


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        ([100, 101, 99], [100, 102, 98], "no difference shown"),
        ([100, 101, 99], [120, 121, 119], "higher, better"),
        ([100, 101, 99], [80, 81, 79], "lower, worse"),
        ([100, 100.1, 99.9], [102, 102.1, 101.9], "higher, better, below the 5 % margin"),
        ([100], [120], "one run on a side"),
        ([100], [], "measured on one side only"),
        ([0.0], [5.0], "zero on a side: no ratio"),
    ],
)
def test_verdicts(a: list[float], b: list[float], verdict: str) -> None:
    assert compare_values(RATE, a, b).verdict == verdict


values = st.lists(st.floats(1, 1e6), min_size=2, max_size=6)


@given(values, values)
def test_swapping_the_sides_inverts_the_ratio(a: list[float], b: list[float]) -> None:
    there, back = compare_values(RATE, a, b), compare_values(RATE, b, a)
    assert there.ratio
    assert there.low
    assert there.high
    assert back.ratio
    assert back.low
    assert there.low <= there.ratio * (1 + 1e-9)
    assert math.isclose(there.ratio, 1 / back.ratio, rel_tol=1e-9)
    assert math.isclose(there.high, 1 / back.low, rel_tol=1e-6)


def test_steps_of_one_side_are_named(tmp_path: Path) -> None:
    a = make_run(tmp_path / "a", [LOAD, replace(LOAD, name="only-a")])
    b = make_run(tmp_path / "b", [LOAD, replace(LOAD, name="only-b")])
    comparison = compare_runs([a], [b])
    assert [step.step for step in comparison.steps] == ["rd1"]
    assert (comparison.only_a, comparison.only_b) == (("only-a",), ("only-b",))


def test_the_environment_diff_folds_volumes_and_leaves_out_addresses(tmp_path: Path) -> None:
    other = replace(LOAD, session={"congestion_control": "bbr", "local": "10.0.0.1:50000"})
    changed = {**ENVIRONMENT, "port.eth1.mtu_bytes": 1500, "host.name": "another"}
    a = make_run(tmp_path / "a", [LOAD])
    b = make_run(tmp_path / "b", [other], environment=changed)
    found = {item.label: (item.a, item.b) for item in compare_runs([a], [b]).differences}
    assert found == {
        "eth1: MTU": ("9000 bytes", "1500 bytes"),
        "rd1: used.volumes.session.congestion_control": ("cubic", "bbr"),
    }


def test_a_run_is_like_itself(tmp_path: Path) -> None:
    a = make_run(tmp_path / "a", [LOAD])
    comparison = compare_runs([a], [a])
    assert comparison.differences == ()
    assert all(metric.ratio in (None, 1.0) for metric in comparison.steps[0].metrics)


def test_what_differs_between_any_two_runs_is_no_difference(tmp_path: Path) -> None:
    """Ports of connections and rates of curve points follow from the run itself."""
    point = replace(LOAD, name="rd1_(50%)", spec={"arrival": {"kind": "open", "rate_iops": 1000.0}})
    later = replace(
        point,
        spec={"arrival": {"kind": "open", "rate_iops": 1100.0}},
        session={"local_address": "10.0.0.1:50000", "peer_address": "10.0.0.10:3260"},
    )
    earlier = replace(point, session={"local_address": "10.0.0.1:40001", "peer_address": "10.0.0.10:3261"})
    a, b = make_run(tmp_path / "a", [earlier]), make_run(tmp_path / "b", [later])
    assert compare_runs([a], [b]).differences == ()
    asked = make_run(tmp_path / "c", [replace(later, name="rd1")])
    other = make_run(tmp_path / "d", [replace(earlier, name="rd1")])
    assert [item.key for item in compare_runs([other], [asked]).differences] == [
        "rd1: asked.arrival.rate_iops"
    ]
