"""Addresses and routes of the SAN's interfaces, as a lab is built and as they come and go while it runs.

With one interface in a network a node has the usual address and route. With several, the kernel would send everything
by the first one: there every address is a /32 and has a table of routes of its own, which packets from
that address use. What has not chosen a source yet goes by the paths of the topology.
"""

from __future__ import annotations

import errno
import ipaddress
from collections import Counter
from collections.abc import Mapping
from typing import Any

from pyroute2.netlink.exceptions import NetlinkError

from linerate.errors import UserError
from linerate.lab.supervisor.nodes import NodeNamespace, write_sysctl
from linerate.san import PREFIX_LENGTH, Host, Interface, Topology, paths
from linerate.san import Node as Member

_FIRST_TABLE = 100
_MAIN_TABLE = 254


def address_node(node: NodeNamespace, member: Member, topology: Topology) -> None:
    """Gives a host's or an array's interfaces their addresses and routes, and turns them on."""
    shared = _shared(member)
    for interface in member.interfaces:
        index = node.index(interface.name)
        # Else the kernel takes all addresses of a network away with the first one.
        with node.visit():
            write_sysctl(f"net.ipv4.conf.{interface.name}.promote_secondaries", "1")
        _give(node, index, interface.address, alone=interface.network in shared)
        node.route.link("set", index=index, state="up")
    _route_all(node, member, topology)


def add(
    topology: Topology, nodes: Mapping[str, NodeNamespace], name: str, interface_name: str, address: str
) -> list[str]:
    """Gives an interface one more address of its network; all that it has then. Raises UserError."""
    member, interface = _found(topology, name, interface_name)
    subnet = ipaddress.ip_network(topology.network(interface.network).subnet)
    try:
        wanted = ipaddress.ip_address(address)
    except ValueError as error:
        raise UserError(str(error), f"give an address of {subnet}") from error
    if wanted not in subnet or wanted in (subnet.network_address, subnet.broadcast_address):
        raise UserError(f"{address} is no address of {name}.{interface_name}'s network", f"it is {subnet}")
    for other in topology.nodes:
        for one in other.interfaces:
            theirs = _addresses(nodes[other.name], nodes[other.name].index(one.name))
            if address in theirs:
                raise UserError(f"{address} is an address of {other.name}.{one.name}", "choose another one")
    node = nodes[name]
    index = node.index(interface_name)
    _give(node, index, address, alone=interface.network in _shared(member))
    _route_all(node, member, topology)
    return list(_addresses(node, index))


def remove(
    topology: Topology, nodes: Mapping[str, NodeNamespace], name: str, interface_name: str, address: str
) -> list[str]:
    """Takes an address of an interface away; those that are left. Raises UserError."""
    member, interface = _found(topology, name, interface_name)
    node = nodes[name]
    index = node.index(interface_name)
    known = _addresses(node, index)
    if address not in known:
        raise UserError(f"{name}.{interface_name} has no address {address}", f"it has {', '.join(known)}")
    if interface.network in _shared(member):
        node.route.rule("del", **_rule(address, _table(member, interface)))
    node.route.addr("del", index=index, address=address, prefixlen=known[address])
    # Routes that named it as their source went with it.
    _route_all(node, member, topology)
    return list(_addresses(node, index))


def _found(topology: Topology, name: str, interface_name: str) -> tuple[Member, Interface]:
    for member in topology.nodes:
        for interface in member.interfaces:
            if (member.name, interface.name) == (name, interface_name):
                return member, interface
    known = [f"{member.name} {one.name}" for member in topology.nodes for one in member.interfaces]
    raise UserError(f"there is no interface {name} {interface_name}", f"there are {', '.join(known)}")


def _shared(member: Member) -> set[str]:
    """Networks in which a node has several interfaces."""
    counts = Counter(interface.network for interface in member.interfaces)
    return {network for network, count in counts.items() if count > 1}


def _addresses(node: NodeNamespace, index: int) -> dict[str, int]:
    """Address -> length of its prefix, of an interface."""
    return {
        found.get_attr("IFA_LOCAL"): found["prefixlen"]
        for found in node.route.get_addr(index=index)
        if found.get_attr("IFA_LOCAL")
    }


def _give(node: NodeNamespace, index: int, address: str, *, alone: bool) -> None:
    node.route.addr("add", index=index, address=address, prefixlen=32 if alone else PREFIX_LENGTH)


def _table(member: Member, interface: Interface) -> int:
    return _FIRST_TABLE + member.interfaces.index(interface)


def _rule(address: str, table: int) -> dict[str, Any]:
    return {"src": address, "src_len": 32, "table": table, "priority": table}


def _route_all(node: NodeNamespace, member: Member, topology: Topology) -> None:
    """Makes sure of all rules and routes that the node's addresses need; those that are there stay."""
    shared = _shared(member)
    inside = [interface for interface in member.interfaces if interface.network in shared]
    indices = {interface.name: node.index(interface.name) for interface in inside}
    held = {interface.name: list(_addresses(node, indices[interface.name])) for interface in inside}
    for interface in inside:
        table = _table(member, interface)
        for address in held[interface.name]:
            _add(node, "rule", **_rule(address, table))
        if held[interface.name]:
            subnet = topology.network(interface.network).subnet
            _route(node, indices[interface.name], held[interface.name][0], subnet, table)
    first_way: dict[str, Interface] = {}
    if isinstance(member, Host):
        by_name = {interface.name: interface for interface in inside}
        for path in paths(topology, member.name):
            if path.host_interface in by_name:
                first_way.setdefault(f"{path.array_address}/32", by_name[path.host_interface])
    for interface in inside:
        first_way.setdefault(topology.network(interface.network).subnet, interface)
    for target, interface in first_way.items():
        if held[interface.name]:
            _route(node, indices[interface.name], held[interface.name][0], target, _MAIN_TABLE)


def _route(node: NodeNamespace, index: int, source: str, target: str, table: int) -> None:
    _add(node, "route", dst=target, oif=index, prefsrc=source, scope="link", table=table)


def _add(node: NodeNamespace, kind: str, **fields: Any) -> None:
    """Adds a rule or a route, unless it is there."""
    try:
        getattr(node.route, kind)("add", **fields)
    except NetlinkError as error:
        if error.code != errno.EEXIST:
            raise
