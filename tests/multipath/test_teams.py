"""A team: one address over several links, each connection on one of them, and what a pulled cable makes of that."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from linerate.lab import Lab
from linerate.san import parse_fault

from tests.lab.conftest import run, unique
from tests.multipath.test_paths import KNOCK
from tests.support.traffic import python

LEAST_BYTES = 2000
"""More than neighbours tell each other, less than a connection brings."""


@pytest.fixture(scope="module")
def team() -> Iterator[Lab]:
    """A host with four links in a team."""
    name = unique("team")
    up = run("up", "mpio-team", "--name", name, rights="user")
    assert up.returncode == 0, up.stderr
    with Lab.look(name) as lab:
        yield lab
        lab.down()


def _carried(lab: Lab) -> dict[int, float]:
    """Bytes that each link of the team sent and received while there were connections to both ports of the array."""
    host = lab.topology.node("h1").interfaces[0].address
    before = lab.counters()
    for interface in lab.topology.node("a1").interfaces:
        assert lab.execute("h1", python(KNOCK, host, interface.address)).returncode == 0
    after = lab.counters()
    moved = {name: after[name] - before[name] for name in after if name.startswith("link.h1.team0.")}
    return {
        number: sum(value for name, value in moved.items() if name.startswith(f"link.h1.team0.{number}."))
        for number in range(1, 5)
    }


@pytest.mark.long
def test_connections_are_spread_over_the_links_that_are_there(team: Lab) -> None:
    assert team.fabric_reasons == ("h1.team0: a team of 4 links",)
    every = _carried(team)
    assert sum(carried > LEAST_BYTES for carried in every.values()) >= 3  # twenty connections on four links
    pulled = [parse_fault(f"cable h1.team0/{number}") for number in (1, 2)]
    for fault in pulled:
        team.fault(fault)
    two = _carried(team)
    assert [number for number, carried in two.items() if carried] == [3, 4]
    assert team.links["h1.team0"].up
    for fault in pulled:
        team.heal(fault)
    assert sum(carried > LEAST_BYTES for carried in _carried(team).values()) >= 3


def test_a_team_loses_its_carrier_with_its_last_link(team: Lab) -> None:
    def carrier() -> str:
        return team.execute("h1", ["cat", "/sys/class/net/team0/carrier"]).stdout.strip()

    faults = [parse_fault(f"cable h1.team0/{number}") for number in range(1, 5)]
    seen = []
    for fault in faults:
        team.fault(fault)
        seen.append(carrier())
    for fault in faults:
        team.heal(fault)
    assert (seen, carrier()) == (["1", "1", "1", "0"], "1")
