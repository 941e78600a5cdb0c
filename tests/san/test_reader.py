"""Topology files: what they become, and what is said about mistakes in them."""

from __future__ import annotations

from pathlib import Path

import pytest
from linerate.errors import UserError
from linerate.san import Topology, load_topology, parse_topology, paths, shipped_topologies, volume_urls

SMALL = """\
[link]
rate = "250mbit"
delay = "10us"

[[switch]]
name = "sw1"
buffer = "256k"

[[host]]
name = "h{n}"
count = 2

[[host.port]]
name = "p0"
switch = "sw1"
mtu = 9000

[[array]]
name = "a1"
port = [{ name = "p0", switch = "sw1", rate = 1e9, delay = 0 }]
volume = [{ name = "v", count = 3, size = "8m" }]
"""


def test_defaults_counts_and_units_are_resolved() -> None:
    san = parse_topology(SMALL, name="small")
    assert [host.name for host in san.hosts] == ["h1", "h2"]
    assert san.links["h2.p0"].rate_bits_per_s == 250e6
    assert san.links["h2.p0"].mtu == 9000
    assert san.links["h2.p0"].delay_us == 10
    assert san.links["a1.p0"].rate_bits_per_s == 1e9
    assert san.links["a1.p0"].delay_us == 0
    assert [(v.name, v.lun, v.size_bytes) for v in san.arrays[0].volumes] == [
        ("v1", 0, 8 << 20),
        ("v2", 1, 8 << 20),
        ("v3", 2, 8 << 20),
    ]


def test_addresses_and_macs_are_unique_and_the_same_each_time() -> None:
    for name in shipped_topologies():
        first, second = load_topology(name), load_topology(name)
        assert first == second
        inside = [interface for node in first.nodes for interface in node.interfaces]
        assert len({interface.address for interface in inside}) == len(inside)
        assert len({interface.mac for interface in inside}) == len(inside)
        assert len({node.control_address for node in first.nodes}) == len(first.nodes)


def test_switches_without_a_trunk_are_networks_of_their_own() -> None:
    base, sites = load_topology("base-san"), load_topology("two-sites")
    assert [network.switches for network in base.networks] == [("sw1",), ("sw2",)]
    assert [network.switches for network in sites.networks] == [("sw1", "sw2")]


def test_a_vlan_is_a_network_and_interfaces_share_a_port() -> None:
    san = load_topology("converged")
    storage, lan = san.node("h1").ports[0].interfaces
    assert (storage.vlan, storage.priority, lan.vlan, lan.priority) == (10, 3, 20, 0)
    assert storage.network != lan.network
    assert (san.lan[0].source, san.lan[0].sink) == ("l1.p0", "h1.lan0")
    assert paths(san, "l1") == ()


def test_volumes_are_spread_over_the_ports_of_both_ends() -> None:
    congested = volume_urls(load_topology("congested-san"), "h1")
    assert [path.array_interface for path, _ in congested.values()] == ["p0", "p1", "p2", "p3"] * 2
    assert congested["a1.v3"][1] == "iscsi://10.231.1.103:3260/iqn.2026-11.lab.linerate:a1/2"
    mpio = paths(load_topology("mpio-1gbe"), "h1")
    assert len(mpio) == 8
    assert {path.host_interface for path in mpio[:4]} == {"p0", "p1", "p2", "p3"}
    assert {path.array_interface for path in mpio[:2]} == {"p0", "p1"}


def test_the_links_of_a_team_add_up() -> None:
    assert load_topology("mpio-team").line_rates == {"h1.team0": 4e9, "a1.p0": 1e9, "a1.p1": 1e9}
    assert load_topology("two-sites").line_rates["wan"] == 250e6


def test_a_topology_survives_json() -> None:
    for name in shipped_topologies():
        san = load_topology(name)
        assert Topology.model_validate_json(san.model_dump_json()) == san


def _changed(old: str, new: str) -> str:
    assert old in SMALL
    return SMALL.replace(old, new, 1)


@pytest.mark.parametrize(
    ("text", "line", "key", "says"),
    [
        (_changed('buffer = "256k"', 'bufer = "1k"'), 7, "switch[0].bufer", "did you mean buffer"),
        (_changed('rate = "250mbit"', 'rate = "fast"'), 2, "link.rate", "1gbit"),
        (_changed('delay = "10us"', "delay = 10"), 3, "link.delay", "200us"),
        (_changed("mtu = 9000", "mtu = 100"), 16, "host[0].port[0].mtu", "must be at least 576"),
        (_changed('switch = "sw1"', 'switch = "sw9"'), 15, "host[0].port[0].switch", "there is sw1"),
        (_changed('name = "a1"', 'name = "h2"'), 19, "array[0].name", "host[0]"),
        (_changed('name = "a1"', 'name = "Array One"'), 19, "array[0].name", "pattern"),
        (_changed('buffer = "256k"', "buffer = 0"), 7, "switch[0].buffer", "above 0"),
        (_changed('buffer = "256k"', 'flow_control = "pfc"'), 7, "switch[0].flow_control", "lossless = [3]"),
        (_changed('buffer = "256k"', 'xoff = "2m"'), 7, "switch[0].xoff", "xon < xoff <= buffer"),
        (
            _changed('buffer = "256k"', 'schedule = { kind = "ets", shares = { 3 = 50, 0 = 40 } }'),
            7,
            "switch[0].schedule",
            "90, not 100",
        ),
        (SMALL + '[[trunk]]\nname = "t"\na = "sw1"\nb = "sw2"\n', 25, "trunk[0].b", "no switch sw2"),
        (SMALL + '[[trunk]]\nname = "t"\na = "sw1"\nb = "sw1"\n', 22, "trunk[0]", "links = 2"),
        (SMALL + '[[lan]]\nname = "t"\nsource = "h1"\nsink = "h9"\n', 25, "lan[0].sink", "hosts are h1, h2"),
        (SMALL + '[[lan]]\nname = "t"\nsource = "h1"\nsink = "h1"\n', 22, "lan[0]", "share no network"),
        (SMALL + "[[[", 22, "", "TOML"),
    ],
)
def test_a_mistake_is_told_with_file_line_and_key(text: str, line: int, key: str, says: str) -> None:
    with pytest.raises(UserError) as error:
        parse_topology(text, "lab.toml")
    assert error.value.message.startswith(f"lab.toml:{line}: {key}")
    assert says in error.value.message + error.value.hint


def test_all_mistakes_are_told_at_once() -> None:
    text = _changed('rate = "250mbit"', 'rate = "x"').replace("mtu = 9000", "mtu = 1")
    with pytest.raises(UserError) as error:
        parse_topology(text, "lab.toml")
    assert "lab.toml:2:" in error.value.message
    assert "lab.toml:16:" in error.value.message


def test_an_unknown_topology_names_those_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such topology") as error:
        load_topology("bas-san")
    assert "base-san" in error.value.hint
    with pytest.raises(UserError, match="No such file"):
        load_topology(tmp_path / "none.toml")
    assert load_topology("base-san.toml") == load_topology("base-san")
