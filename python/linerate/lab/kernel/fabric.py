"""KernelFabric: the SAN's switches and links out of bridges, veth pairs and HTB."""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pyroute2.netlink.exceptions import NetlinkError

from linerate.errors import HostError
from linerate.lab.kernel import receive, shape
from linerate.lab.supervisor.counters import traffic_counters
from linerate.lab.supervisor.faults import NO_IMPAIRMENT, Impairment
from linerate.lab.supervisor.nodes import NodeNamespace
from linerate.san import Link, Network, Nic, Port, Switch, Topology, Trunk
from linerate.san import Node as Member

_SWITCH_MTU = 9216
"""Switches forward jumbo frames."""
_HOLE = "hole"
_NAME_MAX = 15
"""Longest name of a Linux interface."""
_LINK_UNSUPPORTED = ("delay_us", "jitter_us", "loss")
_SWITCH_SUPPORTED = ("name", "buffer_bytes", "schedule")
_LEAST_SHARE = 0.01
"""Of a class that has no share: it lives on what the others leave."""
_REFUSED = (NetlinkError, struct.error, ZeroDivisionError)
"""By the kernel, or already by its message, which has no room for the number."""
_NIC_UNSUPPORTED = ("rx_ring_frames", "moderation_us", "rsc")


@dataclass(frozen=True, slots=True)
class Strand:
    """One network on a link: a veth pair. A link of several has a line that they share."""

    interface: str
    """Its name at the near end; the far end's is made up."""
    network: Network
    priority: int = 0
    mac: str | None = None


@dataclass(frozen=True, slots=True)
class CableEnd:
    """One end of a link: interfaces of a node or a switch, and the one whose line leads out of it."""

    node: NodeNamespace
    interfaces: dict[str, int]
    """Numbers by name, one for each strand."""
    line: int
    """Number of the interface that has the line: the only one, or the one that models the wire."""


@dataclass(slots=True)
class Cable:
    """A link as it is: its values in force, and its two ends. `far` is at the switch; unplugging happens there."""

    link: Link
    strands: tuple[Strand, ...]
    near: CableEnd
    far: CableEnd
    impairment: Impairment = NO_IMPAIRMENT

    @property
    def ends(self) -> tuple[CableEnd, CableEnd]:
        """Both ends."""
        return self.near, self.far


class KernelFabric:
    """Bridges joined by veth pairs. Its switches are nodes of the lab, so that one can look into them."""

    name: Literal["kernel"] = "kernel"

    def __init__(self, topology: Topology, nodes: dict[str, NodeNamespace]) -> None:
        self._topology = topology
        self._nodes = nodes
        self._cables: dict[str, Cable] = {}
        self._bridges: dict[tuple[str, int], int] = {}
        self._wires = 0
        self._holes: dict[str, int] = {}
        self.nics = {
            f"{member.name}.{port.name}": port.nic for member in topology.nodes for port in member.ports
        }
        self.switches = {switch.name: switch for switch in topology.switches}
        self.receives_in_threads = False
        """Whether the CPU time of receiving is charged to the receiver."""

    @property
    def processes(self) -> dict[str, int]:
        """None: the kernel does it."""
        return {}

    def build(self) -> None:
        """Makes all switches and links; the interfaces of hosts and arrays are still without addresses, and down."""
        for member in self._topology.nodes:
            for port in member.ports:
                self._plug(member, port)
        for trunk in self._topology.trunks:
            self._join(trunk)

    def settle(self) -> None:
        """What can only be set once all interfaces are up."""
        by_node: dict[str, list[str]] = {}
        for end in (end for cable in self._cables.values() for end in cable.ends):
            by_node.setdefault(end.node.name, []).extend(end.interfaces)
        for name, ends in by_node.items():
            receive.send_frames(self._nodes[name], ends)
        threads = [receive.receive_in_threads(self._nodes[name], ends) for name, ends in by_node.items()]
        self.receives_in_threads = all(threads)

    def _plug(self, member: Member, port: Port) -> None:
        strands = tuple(
            Strand(
                interface.name, self._topology.network(interface.network), interface.priority, interface.mac
            )
            for interface in port.interfaces
        )
        self._lay(f"{member.name}.{port.name}", port.link, strands, member.name, port.switch)

    def _join(self, trunk: Trunk) -> None:
        networks = [
            network for network in self._topology.networks if {trunk.a, trunk.b} <= set(network.switches)
        ]
        strands = tuple(
            Strand(self._plug_name(trunk.name, number, len(networks)), network, self._priority(network))
            for number, network in enumerate(networks)
        )
        self._lay(trunk.name, trunk.link, strands, trunk.a, trunk.b)

    def _priority(self, network: Network) -> int:
        """Of what is sent in a network: a trunk cannot look into frames as a switch does."""
        interfaces = (interface for member in self._topology.nodes for interface in member.interfaces)
        return max(interface.priority for interface in interfaces if interface.network == network.name)

    def _lay(self, name: str, link: Link, strands: tuple[Strand, ...], near: str, far: str) -> None:
        """Lays a link's cable between a node or switch and a switch."""
        nodes = self._nodes[near], self._nodes[far]
        plugs = [self._plug_name(name, number, len(strands)) for number in range(len(strands))]
        for strand, plug in zip(strands, plugs, strict=True):
            nodes[0].route.link(
                "add",
                ifname=strand.interface,
                kind="veth",
                mtu=link.mtu,
                peer={"ifname": plug, "net_ns_fd": nodes[1].fd, "mtu": self._far_mtu(near, link)},
                **({"address": strand.mac} if strand.mac else {}),
            )
        cable = Cable(
            link,
            strands,
            self._end(nodes[0], [strand.interface for strand in strands]),
            self._end(nodes[1], plugs),
        )
        self._cables[name] = cable
        for end in cable.ends:
            buffer_bytes = self._buffer_bytes(name, end, link.mtu)
            classes = self._classes(cable)
            shape.shape(end.node.route, end.line, link.rate_bits_per_s, buffer_bytes, classes)
            if end.node.kind == "switch":
                for index, strand in zip(end.interfaces.values(), strands, strict=True):
                    self._attach(end.node, index, strand.network.vlan)
        if not link.up:
            self._plug_in(cable, up=False)

    def _far_mtu(self, near: str, link: Link, impairment: Impairment = NO_IMPAIRMENT) -> int:
        """Of the switch's end, which receives and sends nothing larger: that is how a link limits packets.

        When it receives, the kernel leaves room for a VLAN tag, so from the node 4 bytes more get through.
        """
        mtu = link.mtu if near in self.switches else _SWITCH_MTU
        return mtu if impairment.mtu is None else min(mtu, impairment.mtu)

    def _end(self, node: NodeNamespace, interfaces: list[str]) -> CableEnd:
        indices = {interface: node.index(interface) for interface in interfaces}
        if len(indices) == 1:
            return CableEnd(node, indices, next(iter(indices.values())))
        wire = f"wire{self._wires}"
        self._wires += 1
        node.route.link("add", ifname=wire, kind="ifb")
        line = node.index(wire)
        node.route.link("set", index=line, state="up")
        for index in indices.values():
            shape.redirect(node.route, index, line)
        return CableEnd(node, indices, line)

    def _classes(self, cable: Cable) -> tuple[shape.TrafficClass, ...]:
        """How the networks on a cable share it, by the schedule of the switch at its far end."""
        if len(cable.strands) == 1:
            return ()
        schedule = self.switches[cable.far.node.name].schedule
        sharing = sum(strand.priority in schedule.shares for strand in cable.strands)
        classes = []
        for strand in cable.strands:
            alike = sum(other.priority == strand.priority for other in cable.strands)
            percent = schedule.shares.get(strand.priority, 0.0) / alike if sharing else 0.0
            classes.append(
                shape.TrafficClass(
                    strand.network.subnet,
                    max(percent / 100, _LEAST_SHARE),
                    7 - strand.priority if not sharing else 0,
                )
            )
        return tuple(classes)

    def _buffer_bytes(self, name: str, end: CableEnd, mtu: int) -> int:
        """A switch's buffer for the port, or what an adapter's transmit ring holds."""
        if end.node.kind == "switch":
            return self.switches[end.node.name].buffer_bytes
        return self.nics[name].tx_ring_frames * (mtu + shape.ETHERNET_HEADER_BYTES)

    def _plug_name(self, name: str, number: int, strands: int) -> str:
        """The name of an interface inside a switch: that of its link, if the kernel takes it."""
        if strands == 1:
            return name if len(name) <= _NAME_MAX else f"link{len(self._cables)}"
        return f"link{len(self._cables)}.{number}"

    def _attach(self, switch: NodeNamespace, index: int, vlan: int) -> None:
        """Puts a switch's end of a link into the bridge of its VLAN."""
        bridge = self._bridges.get((switch.name, vlan)) or self._bridge(switch, vlan)
        switch.route.link("set", index=index, master=bridge, state="up")

    def _bridge(self, switch: NodeNamespace, vlan: int) -> int:
        name = f"br{vlan}"
        switch.route.link("add", ifname=name, kind="bridge", br_mcast_snooping=0, br_stp_state=0)
        index = switch.index(name)
        # Else it would follow its smallest port.
        switch.route.link("set", index=index, mtu=_SWITCH_MTU, state="up")
        self._bridges[switch.name, vlan] = index
        return index

    def links(self) -> dict[str, Link]:
        """Every link with what is in force, rate, MTU and cable read back from the kernel."""
        return {name: self._read(cable) for name, cable in self._cables.items()}

    def _read(self, cable: Cable) -> Link:
        (state,) = cable.near.node.route.get_links(next(iter(cable.near.interfaces.values())))
        (plug,) = cable.far.node.route.get_links(next(iter(cable.far.interfaces.values())))
        return cable.link.model_copy(
            update={
                "rate_bits_per_s": shape.read_rate(cable.far.node.route, cable.far.line),
                "mtu": state.get_attr("IFLA_MTU"),
                "up": cable.link.up if cable.impairment.down else plug["state"] == "up",
            }
        )

    def change_link(self, name: str, link: Link) -> Link:
        """Gives a link new values; all of them, or after a failure none. Raises HostError for what is not possible."""
        cable = self._cables[name]
        _refuse(name, cable.link, link, _LINK_UNSUPPORTED)
        before = cable.link
        try:
            self._apply(name, cable, link)
        except _REFUSED as error:
            self._apply(name, cable, before)
            raise _refused(name, error) from error
        return self._read(cable)

    def _apply(self, name: str, cable: Cable, link: Link) -> None:
        self._reshape(name, cable, link)
        for index in cable.near.interfaces.values():
            cable.near.node.route.link("set", index=index, mtu=link.mtu)
        self._limit(cable, link, cable.impairment)
        self._plug_in(cable, up=link.up and not cable.impairment.down)
        cable.link = link

    def _limit(self, cable: Cable, link: Link, impairment: Impairment) -> None:
        mtu = self._far_mtu(cable.near.node.name, link, impairment)
        for index in cable.far.interfaces.values():
            cable.far.node.route.link("set", index=index, mtu=mtu)

    def _plug_in(self, cable: Cable, *, up: bool) -> None:
        for index in cable.far.interfaces.values():
            cable.far.node.route.link("set", index=index, state="up" if up else "down")

    def impairment(self, links: Mapping[str, Impairment]) -> int:
        """Gives links their impairments, one right after the other; the time is that of the first."""
        before = {name: self._cables[name].impairment for name in links}
        at_ns = time.monotonic_ns()
        try:
            for name, impairment in links.items():
                self._disturb(self._cables[name], impairment)
        except _REFUSED as error:
            for name, impairment in before.items():
                self._disturb(self._cables[name], impairment)
            raise _refused(", ".join(links), error) from error
        return at_ns

    def _disturb(self, cable: Cable, impairment: Impairment) -> None:
        """Makes a link as bad as that. All of it happens at the switch's end."""
        before, cable.impairment = cable.impairment, impairment
        if impairment.down != before.down:
            self._plug_in(cable, up=cable.link.up and not impairment.down)
        route = cable.far.node.route
        for index in cable.far.interfaces.values():
            for lost, was, way in (
                (impairment.lost_from, before.lost_from, shape.ARRIVING),
                (impairment.lost_to, before.lost_to, shape.LEAVING),
            ):
                if lost and not was:
                    shape.lose(route, index, self._hole(cable.far.node), way)
                elif was and not lost:
                    shape.lose_no_more(route, index, way)
        if impairment.mtu != before.mtu:
            self._limit(cable, cable.link, impairment)

    def _hole(self, switch: NodeNamespace) -> int:
        """An interface that swallows what is sent to it."""
        if switch.name not in self._holes:
            switch.route.link("add", ifname=_HOLE, kind="ifb")
            index = switch.index(_HOLE)
            switch.route.link("set", index=index, state="up")
            shape.swallow(switch.route, index)
            self._holes[switch.name] = index
        return self._holes[switch.name]

    def _reshape(self, name: str, cable: Cable, link: Link) -> None:
        """Gives both lines of a link the rate, shares and buffers that they should have."""
        classes = self._classes(cable)
        for end in cable.ends:
            shape.change_rate(end.node.route, end.line, link.rate_bits_per_s, classes)
            buffer_bytes = self._buffer_bytes(name, end, link.mtu)
            shape.change_buffer(end.node.route, end.line, buffer_bytes, classes)

    def change_nic(self, name: str, nic: Nic) -> Nic:
        """Gives an adapter a new transmit ring. Raises HostError for what a veth pair does not have."""
        _refuse(name, self.nics[name], nic, _NIC_UNSUPPORTED)
        before, self.nics[name] = self.nics[name], nic
        try:
            self._reshape_all([name])
        except _REFUSED as error:
            self.nics[name] = before
            self._reshape_all([name])
            raise _refused(name, error) from error
        return nic

    def change_switch(self, name: str, switch: Switch) -> Switch:
        """Gives a switch new buffers and another schedule. Raises HostError for what bridges and HTB do not have."""
        others = [field for field in Switch.model_fields if field not in _SWITCH_SUPPORTED]
        _refuse(name, self.switches[name], switch, others)
        links = [
            link
            for link, cable in self._cables.items()
            if name in (cable.near.node.name, cable.far.node.name)
        ]
        before, self.switches[name] = self.switches[name], switch
        try:
            self._reshape_all(links)
        except _REFUSED as error:
            self.switches[name] = before
            self._reshape_all(links)
            raise _refused(name, error) from error
        return switch

    def _reshape_all(self, names: Sequence[str]) -> None:
        for name in names:
            self._reshape(name, self._cables[name], self._cables[name].link)

    def counters(self) -> dict[str, float]:
        """Traffic of every link, and drops: in the node's own queue, and in the switch's buffer towards it."""
        counted, _ = self._counted()
        return counted

    def traffic(self) -> dict[str, float]:
        """Traffic and drops of every link, and the bytes that wait at its ends."""
        counted, waiting = self._counted()
        return counted | waiting

    def _counted(self) -> tuple[dict[str, float], dict[str, float]]:
        """The counters of every link, and what waits at its ends."""
        buffers = {
            name: shape.buffers(node.route) for name, node in self._nodes.items() if node.kind != "control"
        }
        ports: dict[str, dict[str, list[str]]] = {}
        for name, cable in self._cables.items():
            ports.setdefault(cable.near.node.name, {})[name] = list(cable.near.interfaces)
        counted: dict[str, float] = {}
        waiting: dict[str, float] = {}
        for node, interfaces in ports.items():
            counted |= traffic_counters(self._nodes[node], interfaces)
        for name, cable in self._cables.items():
            near = buffers[cable.near.node.name].get(cable.near.line, shape.EMPTY)
            far = buffers[cable.far.node.name].get(cable.far.line, shape.EMPTY)
            counted[f"port.{name}.drops"] += near.drops
            counted[f"port.{name}.switch_drops"] = far.drops
            waiting[f"port.{name}.queue_bytes"] = near.queued_bytes
            waiting[f"port.{name}.switch_queue_bytes"] = far.queued_bytes
        return counted, waiting

    @property
    def receivers(self) -> list[int]:
        """Threads that stand in for interrupts: here what receives also switches, and is left as it is."""
        return []

    def receive_cpu_s(self, node: str) -> float:
        """Nothing beyond what the kernel tells of every interface."""
        return 0.0

    def facts(self) -> dict[str, Any]:
        """How the fabric carries frames."""
        return {"receive_threads": self.receives_in_threads}

    def stop(self) -> None:
        """Nothing to stop: bridges and links go with their namespaces."""


def _refused(name: str, error: Exception) -> HostError:
    return HostError(
        f"{name}: the kernel refused the change: {error}", "everything is as before; give another value"
    )


def _refuse(name: str, before: Any, after: Any, fields: Any) -> None:
    changed = [field for field in fields if getattr(before, field) != getattr(after, field)]
    if changed:
        raise HostError(
            f"{name}: the kernel fabric has no {', '.join(changed)}",
            "build the lab on the other one: linerate lab up ... --fabric user",
        )
