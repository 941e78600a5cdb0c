"""Test types that cycle, against what the source of Iometer 1.1.0 does."""

from __future__ import annotations

import pytest
from linerate.cli.job.where import Where
from linerate.cluster.deal import deal
from linerate.workload import RunPlan

from .conftest import ReadIcf, refusal
from .writer import Icf, Work

WORKERS = (Work("a", targets=("p", "q", "r")), Work("b", targets=("s",)), Work("c", targets=("t", "u")))


def shapes(plan: RunPlan) -> list[tuple[str, str]]:
    """(loop values, targets of each worker) of all runs."""
    return [
        (
            " ".join(f"{key}={text}" for key, text in run.loops),
            " ".join(f"{stream.name}{len(stream.volumes)}" for stream in run.spec.streams),
        )
        for run in plan.steps()
    ]


CYCLES = {
    "CYCLE_TARGETS": (
        {"disk_cycling": "1 1 LINEAR"},
        [("targets=1", "a1 b1 c1"), ("targets=2", "a2 b1 c2"), ("targets=3", "a3 b1 c2")],
    ),
    "CYCLE_TARGETS by 2": (
        {"disk_cycling": "1 2 LINEAR"},
        [("targets=1", "a1 b1 c1"), ("targets=3", "a3 b1 c2")],
    ),
    "CYCLE_TARGETS from 2": (
        {"disk_cycling": "2 5 LINEAR"},
        [("targets=2", "a2 b1 c2"), ("targets=7", "a3 b1 c2")],
    ),
    "CYCLE_TARGETS doubled": (
        {"disk_cycling": "1 2 EXPONENTIAL"},
        [("targets=1", "a1 b1 c1"), ("targets=2", "a2 b1 c2"), ("targets=4", "a3 b1 c2")],
    ),
    "CYCLE_TARGETS by a factor of 1": (
        {"disk_cycling": "2 1 EXPONENTIAL"},
        [("targets=2", "a2 b1 c2"), ("targets=3", "a3 b1 c2")],
    ),
    "CYCLE_WORKERS": (
        {"worker_cycling": "1 1 LINEAR"},
        [("workers=1", "a3"), ("workers=2", "a3 b1"), ("workers=3", "a3 b1 c2")],
    ),
    "CYCLE_WORKERS by 9": (
        {"worker_cycling": "2 9 LINEAR"},
        [("workers=2", "a3 b1"), ("workers=11", "a3 b1 c2")],
    ),
    "INCREMENT_TARGETS_PARALLEL": (
        {"disk_cycling": "2 2 LINEAR"},
        [("targets=2", "a2"), ("targets=4", "a3 b1"), ("targets=6", "a3 b1 c2")],
    ),
    "INCREMENT_TARGETS_SERIAL": (
        {"disk_cycling": "1 3 EXPONENTIAL"},
        [("targets=1", "a1"), ("targets=3", "a3"), ("targets=9", "a3 b1 c2")],
    ),
    "CYCLE_WORKERS_AND_TARGETS": (
        {"worker_cycling": "1 2 LINEAR", "disk_cycling": "1 2 EXPONENTIAL"},
        [
            ("workers=1 targets=1", "a1"),
            ("workers=1 targets=2", "a2"),
            ("workers=1 targets=4", "a3"),
            ("workers=3 targets=1", "a1 b1 c1"),
            ("workers=3 targets=2", "a2 b1 c2"),
            ("workers=3 targets=4", "a3 b1 c2"),
        ],
    ),
    "CYCLE_WORKERS_AND_TARGETS with a worker step of 1": (
        {"worker_cycling": "1 1 LINEAR", "disk_cycling": "1 2 EXPONENTIAL"},
        [
            ("workers=1 targets=1", "a1"),
            ("workers=1 targets=3", "a3"),
            ("workers=2 targets=1", "a1 b1"),
            ("workers=2 targets=3", "a3 b1"),
            ("workers=3 targets=1", "a1 b1 c1"),
            ("workers=3 targets=3", "a3 b1 c2"),
        ],
    ),
    "CYCLE_OUTSTANDING_IOS": (
        {"depth_cycling": "1 20 4 EXPONENTIAL"},
        [(f"outstanding={depth}", "a3 b1 c2") for depth in (1, 4, 16)],
    ),
    "CYCLE_OUTSTANDING_IOS by 3": (
        {"depth_cycling": "2 8 3 LINEAR"},
        [(f"outstanding={depth}", "a3 b1 c2") for depth in (2, 5, 8)],
    ),
    "CYCLE_OUTSTANDING_IOS_AND_TARGETS": (
        {"disk_cycling": "1 4 LINEAR", "depth_cycling": "1 2 2 EXPONENTIAL"},
        [
            ("targets=1 outstanding=1", "a1 b1 c1"),
            ("targets=1 outstanding=2", "a1 b1 c1"),
            ("targets=5 outstanding=1", "a3 b1 c2"),
            ("targets=5 outstanding=2", "a3 b1 c2"),
        ],
    ),
    "NORMAL": ({}, [("", "a3 b1 c2")]),
}


OF_MANAGERS = {
    "CYCLE_TARGETS": ({"disk_cycling": "1 2 LINEAR"}, ["a1 b1 x1", "a3 b1 x2"]),
    "CYCLE_WORKERS": ({"worker_cycling": "1 1 LINEAR"}, ["a3 x2", "a3 b1 x2"]),
    "INCREMENT_TARGETS_PARALLEL": ({"disk_cycling": "1 1 LINEAR"}, ["a1 x1", "a2 x2", "a3 x2", "a3 b1 x2"]),
    "INCREMENT_TARGETS_SERIAL": ({"disk_cycling": "3 2 LINEAR"}, ["a3", "a3 b1 x1", "a3 b1 x2"]),
    "CYCLE_WORKERS_AND_TARGETS": (
        {"worker_cycling": "1 1 LINEAR", "disk_cycling": "1 2 LINEAR"},
        ["a1 x1", "a3 x2", "a1 b1 x1", "a3 b1 x2"],
    ),
    "CYCLE_OUTSTANDING_IOS": ({"depth_cycling": "1 2 1 LINEAR"}, ["a3 b1 x2", "a3 b1 x2"]),
    "CYCLE_OUTSTANDING_IOS_AND_TARGETS": (
        {"disk_cycling": "1 2 LINEAR", "depth_cycling": "1 1 1 LINEAR"},
        ["a1 b1 x1", "a3 b1 x2"],
    ),
}


@pytest.mark.parametrize("name", OF_MANAGERS)
def test_each_manager_goes_through_its_own_workers(icf: ReadIcf, name: str) -> None:
    settings, expected = OF_MANAGERS[name]
    second = (Work("x", targets=("p", "q")),)
    plan = icf(Icf(workers=WORKERS[:2], more_managers=(second,), test=name, **settings))
    found = [text.replace("HOST1 ", "").replace("HOST2 ", "") for _, text in shapes(plan)]
    assert found == expected


def test_a_host_without_targets_in_a_run_has_no_part(icf: ReadIcf) -> None:
    second = (Work("x", targets=("p",)),)
    plan = icf(
        Icf(
            workers=WORKERS[:1],
            more_managers=(second,),
            test="INCREMENT_TARGETS_SERIAL",
            disk_cycling="3 1 LINEAR",
        )
    )
    where = Where.of(None, "load1,load2", None, None, None).of_plan(plan)
    assert where.hosts is not None
    assert where.hosts.dealt is not None
    dealt = where.hosts.dealt
    first, last = (deal(run.spec, dealt)[0] for run in plan.steps())
    assert set(first) == {"HOST1"}
    assert set(last) == {"HOST1", "HOST2"}


@pytest.mark.parametrize("name", CYCLES)
def test_runs_use_what_iometer_would(icf: ReadIcf, name: str) -> None:
    settings, expected = CYCLES[name]
    plan = icf(Icf(workers=WORKERS, test=name.split()[0], **settings))
    assert shapes(plan) == expected


def test_the_depth_of_a_cycle_is_that_of_each_worker_on_each_target(icf: ReadIcf) -> None:
    workers = (Work("a", targets=("x",), outstanding=9), Work("b", targets=("x",), outstanding=7))
    plan = icf(Icf(workers=workers, test="CYCLE_OUTSTANDING_IOS", depth_cycling="4 8 4 LINEAR"))
    depths = [sum(volume.outstanding for volume in run.spec.volumes) for run in plan.steps()]
    assert depths == [8, 16]


def test_all_runs_of_a_specification_come_before_the_next(icf: ReadIcf) -> None:
    plan = icf(
        Icf(workers=(Work(specs=("4k", "4k")),), test="CYCLE_OUTSTANDING_IOS", depth_cycling="1 2 1 LINEAR")
    )
    labels = [run.label for run in plan.steps()]
    assert labels == ["4k outstanding=1", "4k outstanding=2", "4k outstanding=1 #2", "4k outstanding=2 #2"]


@pytest.mark.parametrize("cycling", ["0 1 LINEAR", "1 0 LINEAR", "1 0 EXPONENTIAL"])
def test_a_cycle_that_would_not_end_or_begin_is_refused(icf: ReadIcf, cycling: str) -> None:
    error = refusal(icf, Icf(test="CYCLE_TARGETS", disk_cycling=cycling))
    assert "'Test Type CYCLE_TARGETS: start" in error.message
    assert len(icf(Icf(test="NORMAL", disk_cycling=cycling))) == 1


def test_too_many_runs_are_refused(icf: ReadIcf) -> None:
    error = refusal(icf, Icf(test="CYCLE_OUTSTANDING_IOS", depth_cycling="1 60000 1 LINEAR"))
    assert "more than 10,000 runs" in error.message
