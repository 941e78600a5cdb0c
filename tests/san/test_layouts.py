"""Layouts: which ports are joined to paths, and what is said about paths that cannot be."""

from __future__ import annotations

import pytest
from linerate.errors import UserError
from linerate.san import LAYOUTS, Layout, layout, load_topology, parse_topology

from tests.san.test_reader import SMALL


def _joined(topology: str, asked: Layout | list[str] | None) -> list[str]:
    """The paths of the first volume, without what they have in common."""
    found = layout(load_topology(topology), "h1", asked)
    assert len(set(map(tuple, found.values()))) == 1  # the same for every volume
    return [path.name.replace("h1.", "").replace("a1.", "") for path in next(iter(found.values()))]


@pytest.mark.parametrize(
    ("topology", "asked", "joined"),
    [
        ("mpio-1gbe", "one-to-one", ["p0-p0", "p1-p1"]),
        ("mpio-1gbe", "partial", ["p0-p0", "p1-p1", "p2-p0", "p3-p1"]),
        ("mpio-1gbe", ["h1.p0 -> a1.p0"], ["p0-p0"]),
        ("mpio-1gbe", ["h1.p3->a1.p1", "h1.p0  ->  a1.p0"], ["p3-p1", "p0-p0"]),
        ("mpio-team", "one-to-one", ["team0-p0"]),
        ("mpio-unequal", None, ["p0-p0", "p1-p1"]),
        ("mpio-unequal", "mesh", ["p0-p0", "p1-p1"]),  # its two switches know nothing of each other
        ("two-controllers", "partial", ["p0-p0", "p0-p2", "p1-p1", "p1-p3"]),
        ("congested-san", "one-to-one", ["p0-p0"]),
    ],
)
def test_a_layout_joins_ports(topology: str, asked: Layout | list[str], joined: list[str]) -> None:
    assert _joined(topology, asked) == joined


def test_a_mesh_is_every_pair_and_begins_with_pairs_that_share_nothing() -> None:
    mesh = _joined("mpio-1gbe", "mesh")
    assert len(set(mesh)) == 8
    assert mesh[:2] == ["p0-p0", "p1-p1"]


def test_a_path_says_what_a_load_needs() -> None:
    asked = ["h1.p1 -> a1.p0 weight 7", "h1.p2 -> a1.p1 standby"]
    weighted, standby = layout(load_topology("mpio-1gbe"), "h1", asked)["a1.v8"]
    assert (weighted.name, weighted.portal) == ("h1.p1-a1.p0", "10.231.1.101:3260")
    assert (weighted.host_address, weighted.host_interface) == ("10.231.1.2", "p1")
    assert (weighted.weight, weighted.standby, standby.weight, standby.standby) == (7, False, 0, True)


@pytest.mark.parametrize("asked", LAYOUTS)
def test_hosts_without_storage_have_no_paths(asked: Layout) -> None:
    assert layout(load_topology("converged"), "l1", asked) == {}
    assert [path.name for path in layout(load_topology("converged"), "h1", asked)["a1.v1"]] == [
        "h1.san0-a1.p0"
    ]


def test_a_volume_without_paths_of_its_own_has_one() -> None:
    found = layout(load_topology("congested-san"), "h1")
    assert [[path.array_interface for path in ways] for ways in found.values()] == [
        ["p0"], ["p1"], ["p2"], ["p3"]
    ] * 2  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("meshed", "'meshed' is no layout -> write one-to-one, mesh, partial"),
        ([], "is no layout"),
        (["h1.p0 - a1.p0"], "is no layout"),
        (["h1.p9 -> a1.p0"], "has no host port h1.p9 -> there are h1.p0"),
        (["a1.p0 -> a1.p0"], "has no host port a1.p0"),
        (["h1.p0 -> a1.p0 slowly"], "slowly is not understood"),
        (["h1.p0 -> a1.p0 weight"], "weight is not understood"),
        (["h1.p0 -> a1.p1"], "are in different networks"),
        (["h1.p0 -> a1.p0"] * 2, "is given twice -> for several sessions"),
    ],
)
def test_a_path_that_cannot_be_is_explained(asked: Layout | list[str], says: str) -> None:
    with pytest.raises(UserError) as error:
        layout(load_topology("base-san"), "h1", asked)
    assert says in f"{error.value.message} -> {error.value.hint}"


def _with_paths(value: str) -> str:
    return SMALL.replace('size = "8m"', f'size = "8m", paths = {value}')


def test_a_volume_of_a_topology_may_name_its_paths() -> None:
    san = parse_topology(_with_paths('["h2.p0 -> a1.p0"]'))
    assert layout(san, "h1") == {}
    assert [path.name for path in layout(san, "h2")["a1.v2"]] == ["h2.p0-a1.p0"]
    assert layout(san, "h1", "mesh").keys() == {"a1.v1", "a1.v2", "a1.v3"}


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ('"star"', "'star' is no layout"),
        ('["h1.p7 -> a1.p0"]', "has no host port h1.p7"),
        ("3", "3 is no layout"),
    ],
)
def test_paths_in_a_topology_are_checked(value: str, says: str) -> None:
    with pytest.raises(UserError) as error:
        parse_topology(_with_paths(value), "lab.toml")
    assert error.value.message.startswith("lab.toml:21: array[0].volume[0].paths")
    assert says in error.value.message


PORTS = """
[[switch]]
name = "s"
[[host]]
name = "h"
port = [{ name = "p", switch = "s", links = 2 }]
[[array]]
name = "a"
port = [{ name = "p0", switch = "s" }, { name = "p1", switch = "s"%s }, { name = "p2", switch = "s"%s }]
volume = [{ name = "v" }]
"""


@pytest.mark.parametrize(
    ("second", "third", "groups"),
    [
        ("", "", [1, 1, 1]),
        (', controller = "B"', ', controller = "B"', [1, 2, 2]),
        (', controller = "B"', ', controller = "B", alua = "standby"', [1, 2, 3]),
        (", portal_group = 1", ", portal_group = 7", [1, 1, 7]),
    ],
)
def test_portal_groups_follow_controllers_and_states(second: str, third: str, groups: list[int]) -> None:
    if second == ", portal_group = 1":
        text = PORTS % (second, third)
        text = text.replace('"p0", switch = "s"', '"p0", switch = "s", portal_group = 1')
    else:
        text = PORTS % (second, third)
    san = parse_topology(text)
    assert [port.portal_group for port in san.arrays[0].ports] == groups
    assert san.hosts[0].ports[0].links == 2


def test_a_portal_group_has_one_controller_and_one_state() -> None:
    text = PORTS % (', controller = "B", portal_group = 4', ", portal_group = 4")
    with pytest.raises(UserError, match="p2 and p1 share the portal group 4") as error:
        parse_topology(text, "lab.toml")
    assert "portal_group" in error.value.hint
