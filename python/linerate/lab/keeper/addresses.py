"""Addresses and routes of the SAN's interfaces.

With one interface in a network a node has the usual address and route. With several, the kernel would send everything
by the first one: there every address stands alone (/32) and has a table of routes of its own, which packets from
that address use. What has not chosen a source yet goes by the paths of the topology.
"""

from __future__ import annotations

from collections import Counter

from linerate.lab.keeper.nodes import Node
from linerate.san import PREFIX_LENGTH, Host, Interface, Topology, paths
from linerate.san import Node as Member

_FIRST_TABLE = 100


def address_node(node: Node, member: Member, topology: Topology) -> None:
    """Gives a host's or an array's interfaces their addresses and routes, and turns them on."""
    shared = {
        network
        for network, count in Counter(interface.network for interface in member.interfaces).items()
        if count > 1
    }
    for number, interface in enumerate(member.interfaces):
        index = node.index(interface.name)
        alone = interface.network in shared
        node.route.addr(
            "add", index=index, address=interface.address, prefixlen=32 if alone else PREFIX_LENGTH
        )
        node.route.link("set", index=index, state="up")
        if alone:
            _own_table(node, interface, index, topology, _FIRST_TABLE + number)
    if shared and isinstance(member, Host):
        _paths_first(node, member, topology, shared)
    for network in sorted(shared):
        first = next(interface for interface in member.interfaces if interface.network == network)
        _route(node, first, node.index(first.name), topology.network(network).subnet)


def _own_table(node: Node, interface: Interface, index: int, topology: Topology, table: int) -> None:
    _route(node, interface, index, topology.network(interface.network).subnet, table)
    node.route.rule("add", src=interface.address, src_len=32, table=table, priority=table)


def _paths_first(node: Node, member: Host, topology: Topology, shared: set[str]) -> None:
    """One route per address of an array, by the first path that leads to it."""
    by_name = {interface.name: interface for interface in member.interfaces}
    routed: set[str] = set()
    for path in paths(topology, member.name):
        interface = by_name[path.host_interface]
        if interface.network in shared and path.array_address not in routed:
            routed.add(path.array_address)
            _route(node, interface, node.index(interface.name), f"{path.array_address}/32")


def _route(node: Node, interface: Interface, index: int, target: str, table: int = 254) -> None:
    node.route.route("add", dst=target, oif=index, prefsrc=interface.address, scope="link", table=table)
