"""What two paths carry: two equal ones twice as much as one, an unequal pair by its policy.

Least queue depth takes what both have; round robin waits for the slow one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from linerate.analysis import summarise
from linerate.lab import Lab
from linerate.lab.cpu.idle import kept_awake
from linerate.results import RunDirectory
from linerate.san.reader import TOPOLOGIES

from tests.lab.conftest import run, unique
from tests.support.patience import a_busy_machine_may_spoil

pytestmark = pytest.mark.long

EQUAL = ["10.231.1.1 -> 10.231.1.101", "10.231.1.2 -> 10.231.1.102"]
FAST = "10.231.1.1 -> 10.231.1.101"
SLOW = "10.231.2.1 -> 10.231.2.101"
WORKLOAD = """\
elapsed = "2s"
warm_up = "1s"
interval = "1s"

[[volume]]
name = "v1"
target = "iscsi://{portal}/iqn.2026-11.lab.linerate:a1/0"
paths = {paths}
multipath = {{ policy = "{policy}" }}
outstanding = {outstanding}

[[stream]]
name = "sequential"
size = "256k"
read = {read_percent}
random = 0
"""


@pytest.fixture(scope="module")
def equal() -> Iterator[Lab]:
    """The shipped SAN of lines of 1 Gbit/s as it is."""
    name = unique("equal")
    up = run("up", "mpio-1gbe", "--name", name, "--fabric", "kernel", rights="user")
    assert up.returncode == 0, up.stderr
    with Lab.look(name) as lab:
        yield lab
        lab.down()


@pytest.fixture(scope="module")
def unequal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The shipped SAN at a fifth of its rates, so that two CPUs carry it beside other work."""
    text = (TOPOLOGIES / "mpio-unequal.toml").read_text().replace('"100mbit"', '"20mbit"')
    file = tmp_path_factory.mktemp("unequal") / "unequal.toml"
    file.write_text(text.replace('"1gbit"', '"200mbit"'))
    name = unique("unequal")
    up = run("up", str(file), "--name", name, "--fabric", "kernel", rights="user")
    assert up.returncode == 0, up.stderr
    with Lab.look(name) as lab:
        yield lab
        lab.down()


def _mib_s(
    lab: Lab, place: Path, paths: list[str], policy: str, read_percent: int, outstanding: int = 16
) -> float:
    """Throughput of one run over these paths."""
    place.mkdir(parents=True)
    portal = paths[0].split()[-1]
    file = place / "load.toml"
    values = {"portal": portal, "paths": paths, "policy": policy}
    file.write_text(WORKLOAD.format(**values, read_percent=read_percent, outstanding=outstanding))
    command = [
        sys.executable,
        "-m",
        "linerate.cli",
        "run",
        str(file),
        "--output",
        str(place / "run"),
        "--json",
        "--no-report",
    ]
    done = lab.execute("h1", command)
    assert done.returncode == 0, done.stderr
    (summary,) = summarise(RunDirectory.open(place / "run"))
    assert summary.total.errors == 0
    return summary.total.mib_s


@pytest.mark.parametrize("read_percent", [100, 0], ids=["reads", "writes"])
@a_busy_machine_may_spoil
def test_two_equal_paths_carry_nearly_twice_what_one_does(
    equal: Lab, tmp_path_factory: pytest.TempPathFactory, read_percent: int
) -> None:
    place = tmp_path_factory.mktemp("equal")
    with kept_awake():
        one, both = (
            _mib_s(equal, place / name, paths, "round_robin", read_percent, outstanding=8)
            for name, paths in (("one", EQUAL[:1]), ("both", EQUAL))
        )
    assert one > 100, "MiB/s: most of its line"
    assert both >= 1.9 * one


@pytest.mark.parametrize("read_percent", [100, 0], ids=["reads", "writes"])
@a_busy_machine_may_spoil
def test_least_queue_depth_carries_the_sum(
    unequal: Lab, tmp_path_factory: pytest.TempPathFactory, read_percent: int
) -> None:
    place = tmp_path_factory.mktemp("sum")
    with kept_awake():
        fast, slow, both = (
            _mib_s(unequal, place / name, paths, "least_queue_depth", read_percent)
            for name, paths in (("fast", [FAST]), ("slow", [SLOW]), ("both", [FAST, SLOW]))
        )
    print(f"{fast:.1f} MiB/s and {slow:.1f} MiB/s alone, {both:.1f} MiB/s together")
    assert fast > 8 * slow
    assert both >= 0.95 * (fast + slow)


@a_busy_machine_may_spoil
def test_round_robin_goes_at_twice_the_slow_path(
    unequal: Lab, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("drag")
    slow = _mib_s(unequal, place / "slow", [SLOW], "round_robin", 100)
    both = _mib_s(unequal, place / "both", [FAST, SLOW], "round_robin", 100)
    assert 1.8 * slow < both < 2.6 * slow
