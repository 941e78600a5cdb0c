"""Several managers, network workers, and targets that are opened again and again (test connection rate)."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from linerate.cli.job.where import Where
from linerate.cluster.deal import deal
from linerate.errors import UserError
from linerate.workload import LunMap, RunPlan

from .conftest import ReadIcf, only_run, refusal
from .test_iometer_properties import read
from .writer import Icf, Spec, Work

SEQUENTIAL = Spec("seq", ((4096, 100, 100, 0, 0, 1, 0, 0),))


def notices(plan: RunPlan) -> str:
    return " ".join(str(notice) for notice in plan.warnings)


def test_each_manager_has_disks_of_its_own(icf: ReadIcf) -> None:
    two = Icf(
        workers=(Work(targets=("PHYSICALDRIVE:1", "C:"), outstanding=4),),
        more_managers=((Work(outstanding=8), Work("x", outstanding=8)),),
    )
    plan = icf(two, luns=LunMap({"*": "null:{n}g"}))
    run = only_run(plan)
    assert [(one.name, one.url, one.outstanding) for one in run.volumes] == [
        ("disk1", f"null:{1 << 30}", 4),
        ("disk2", f"null:{2 << 30}", 4),
        ("disk3", f"null:{3 << 30}", 16),
    ]
    assert {one.name: one.volumes for one in run.streams} == {
        "HOST1 Worker 1": ("disk1", "disk2"),
        "HOST2 Worker 1": ("disk3",),
        "HOST2 x": ("disk3",),
    }
    assert "2 managers with targets (HOST1 and HOST2): this host makes the load of all" in notices(plan)


def test_as_many_hosts_do_what_the_managers_did(icf: ReadIcf) -> None:
    two = Icf(
        workers=(Work(outstanding=4),), more_managers=((Work(outstanding=8), Work("x", outstanding=9)),)
    )
    plan = icf(two, luns=LunMap({"*": "null:{n}g"}))
    with pytest.raises(UserError, match="--hosts names 3 hosts, and w has 2 managers"):
        Where.of(None, "a,b,c", None, None, None).of_plan(plan)
    where = Where.of(None, "load1,root@load2", None, None, None).of_plan(plan)
    assert where.hosts is not None
    dealt = where.hosts.dealt
    assert dealt is not None
    assert [(host.label, host.address) for host in dealt.hosts] == [
        ("HOST1", "load1"),
        ("HOST2", "root@load2"),
    ]
    parts, _ = deal(only_run(plan), dealt)
    depths = {label: [(one.url, one.outstanding) for one in part.volumes] for label, part in parts.items()}
    assert depths == {
        "HOST1": [(f"null:{1 << 30}", 4)],
        "HOST2": [(f"null:{2 << 30}", 8), (f"null:{2 << 30}", 9)],
    }
    assert [one.name for one in parts["HOST2"].streams] == ["HOST2 Worker 1", "HOST2 x"]


def test_one_manager_is_no_host(icf: ReadIcf) -> None:
    assert icf(Icf()).managers is None


@st.composite
def managers(draw: st.DrawFn) -> Icf:
    """One to three managers with workers on few targets, some of which open them again."""

    def worker(number: int) -> Work:
        return Work(
            name=f"w{number}",
            targets=draw(st.lists(st.sampled_from("pqr"), min_size=1, max_size=3, unique=True)),
            outstanding=draw(st.integers(1, 40)),
            transactions=draw(st.one_of(st.none(), st.integers(1, 1000))),
        )

    groups = [
        [worker(number) for number in range(draw(st.integers(1, 3)))] for _ in range(draw(st.integers(1, 3)))
    ]
    return Icf(workers=groups[0], more_managers=groups[1:])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(managers())
def test_ios_in_flight_and_openings_are_those_of_the_file(icf: Icf) -> None:
    (run,) = read(icf.text().encode()).steps()
    volumes = {one.name: one for one in run.spec.volumes}
    groups = [icf.workers, *icf.more_managers]
    workers = [(number, worker) for number, group in enumerate(groups) for worker in group]
    assert sum(one.outstanding for one in volumes.values()) == sum(
        worker.outstanding * len(worker.targets) for _, worker in workers
    )
    disks: dict[str, tuple[int, str]] = {}
    users = Counter(name for stream in run.spec.streams for name in stream.volumes)
    for (number, worker), stream in zip(workers, run.spec.streams, strict=True):
        for target, name in zip(worker.targets, stream.volumes, strict=True):
            assert disks.setdefault(name.partition(".")[0], (number, target)) == (number, target)
            assert volumes[name].reopen_after_ios == worker.transactions
            assert worker.transactions is None or users[name] == 1, "each worker opens its target for itself"
    assert len(set(disks.values())) == len(disks)


def test_a_worker_that_opens_its_targets_says_so(icf: ReadIcf) -> None:
    plan = icf(Icf((SEQUENTIAL,), (Work(specs=("seq",), transactions=1),)))
    assert only_run(plan).volumes[0].reopen_after_ios == 1
    assert "after every 1 I/O on a target" in notices(plan)


def test_a_file_of_a_share_is_not_opened_again(icf: ReadIcf) -> None:
    text = Icf(workers=(Work(transactions=5),))
    with pytest.raises(Exception, match="of a file of a share") as caught:
        icf(text, luns=LunMap({"*": "smb://server/share/file"}))
    assert str(caught.value).startswith("w.icf:")


@pytest.mark.parametrize(
    "idle", [Work("net", kind="NETWORK,TCP", targets=()), Work("net", ("Idle",), kind="NETWORK,TCP")]
)
def test_network_workers_without_work_are_left_out(icf: ReadIcf, idle: Work) -> None:
    plan = icf(Icf(workers=(idle, Work())))
    assert [stream.name for stream in only_run(plan).streams] == ["Worker 1"]
    assert "worker net: NETWORK, and idle" in notices(plan)


def test_a_network_worker_with_work_is_refused_beside_others(icf: ReadIcf) -> None:
    error = refusal(icf, Icf(workers=(Work("net", kind="NETWORK,TCP"), Work())))
    assert "worker net: NETWORK is not supported" in error.message
