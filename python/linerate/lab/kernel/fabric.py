"""KernelFabric: the SAN's switches and links out of bridges, veth pairs and HTB."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pyroute2.netlink.exceptions import NetlinkError

from linerate.errors import HostError, UserError
from linerate.lab.keeper.counters import traffic_counters
from linerate.lab.keeper.nodes import Node
from linerate.lab.kernel import receive, shape
from linerate.san import Link, Nic, Port, Switch, Topology, Trunk
from linerate.san import Node as Member

_SWITCH_MTU = 9216
"""Switches forward jumbo frames whatever their neighbours send."""
_NAME_MAX = 15
"""Longest name of a Linux interface."""
_LINK_UNSUPPORTED = ("delay_us", "jitter_us", "loss")
_NIC_UNSUPPORTED = ("rx_ring_frames", "moderation_us", "rsc")


@dataclass(slots=True)
class End:
    """One end of a cable: an interface of a node or a switch, with the line that leads out of it."""

    node: Node
    interface: str
    index: int


@dataclass(slots=True)
class Cable:
    """A link as it is: its values in force, and its two ends. `far` is at the switch; unplugging happens there."""

    link: Link
    near: End
    far: End

    @property
    def ends(self) -> tuple[End, End]:
        """Both ends."""
        return self.near, self.far


class KernelFabric:
    """Bridges joined by veth pairs. Its switches are nodes of the lab, so that one can look into them."""

    name: Literal["kernel"] = "kernel"

    def __init__(self, topology: Topology, nodes: dict[str, Node]) -> None:
        self._topology = topology
        self._nodes = nodes
        self._cables: dict[str, Cable] = {}
        self._bridges: dict[tuple[str, int], int] = {}
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
            by_node.setdefault(end.node.name, []).append(end.interface)
        for name, ends in by_node.items():
            receive.send_frames(self._nodes[name], ends)
        threads = [receive.receive_in_threads(self._nodes[name], ends) for name, ends in by_node.items()]
        self.receives_in_threads = all(threads)

    def _plug(self, member: Member, port: Port) -> None:
        (interface,) = port.interfaces
        node, switch = self._nodes[member.name], self._nodes[port.switch]
        plug = self._plug_name(f"{member.name}.{port.name}")
        node.route.link(
            "add",
            ifname=interface.name,
            kind="veth",
            address=interface.mac,
            mtu=port.link.mtu,
            peer={"ifname": plug, "net_ns_fd": switch.fd, "mtu": _SWITCH_MTU},
        )
        near = End(node, interface.name, node.index(interface.name))
        far = End(switch, plug, switch.index(plug))
        self._finish(f"{member.name}.{port.name}", Cable(port.link, near, far))
        self._attach(far, interface.vlan)

    def _join(self, trunk: Trunk) -> None:
        a, b = self._nodes[trunk.a], self._nodes[trunk.b]
        plug = self._plug_name(trunk.name)
        a.route.link(
            "add",
            ifname=plug,
            kind="veth",
            mtu=trunk.link.mtu,
            peer={"ifname": plug, "net_ns_fd": b.fd, "mtu": trunk.link.mtu},
        )
        near, far = End(a, plug, a.index(plug)), End(b, plug, b.index(plug))
        self._finish(trunk.name, Cable(trunk.link, near, far))
        vlans = {
            network.vlan for network in self._topology.networks if {trunk.a, trunk.b} <= set(network.switches)
        }
        (vlan,) = vlans or {0}
        self._attach(near, vlan)
        self._attach(far, vlan)

    def _finish(self, name: str, cable: Cable) -> None:
        for end in cable.ends:
            shape.shape(
                end.node.route,
                end.index,
                cable.link.rate_bits_per_s,
                self._buffer_bytes(name, end, cable.link.mtu),
            )
        self._cables[name] = cable

    def _buffer_bytes(self, name: str, end: End, mtu: int) -> int:
        """A switch's buffer for the port, or what an adapter's transmit ring holds."""
        if end.node.kind == "switch":
            return self.switches[end.node.name].buffer_bytes
        return self.nics[name].tx_ring_frames * (mtu + shape.ETHERNET_HEADER_BYTES)

    def _plug_name(self, name: str) -> str:
        """The name of an interface inside a switch: that of its link, if the kernel takes it."""
        return name if len(name) <= _NAME_MAX else f"link{len(self._cables)}"

    def _attach(self, end: End, vlan: int) -> None:
        """Puts a switch's end of a link into the bridge of its VLAN."""
        bridge = self._bridges.get((end.node.name, vlan)) or self._bridge(end.node, vlan)
        end.node.route.link("set", index=end.index, master=bridge, state="up")

    def _bridge(self, switch: Node, vlan: int) -> int:
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
        (state,) = cable.near.node.route.get_links(cable.near.index)
        (plug,) = cable.far.node.route.get_links(cable.far.index)
        return cable.link.model_copy(
            update={
                "rate_bits_per_s": shape.read_rate(cable.far.node.route, cable.far.index),
                "mtu": state.get_attr("IFLA_MTU"),
                "up": plug["state"] == "up",
            }
        )

    def change_link(self, name: str, link: Link) -> Link:
        """Gives a link new values; all of them, or after a failure none. Raises HostError for what is not possible."""
        cable = self._cables[name]
        _refuse(name, cable.link, link, _LINK_UNSUPPORTED)
        before = cable.link
        try:
            self._apply(name, cable, link)
        except NetlinkError as error:
            self._apply(name, cable, before)
            raise HostError(
                f"{name}: the kernel refused the change: {error}", "the link is as before"
            ) from error
        return self._read(cable)

    def _apply(self, name: str, cable: Cable, link: Link) -> None:
        for end in cable.ends:
            shape.change_rate(end.node.route, end.index, link.rate_bits_per_s)
            shape.change_buffer(end.node.route, end.index, self._buffer_bytes(name, end, link.mtu))
        cable.near.node.route.link("set", index=cable.near.index, mtu=link.mtu)
        if cable.near.node.kind == "switch":
            cable.far.node.route.link("set", index=cable.far.index, mtu=link.mtu)
        cable.far.node.route.link("set", index=cable.far.index, state="up" if link.up else "down")
        cable.link = link

    def change_nic(self, name: str, nic: Nic) -> Nic:
        """Gives an adapter a new transmit ring. Raises HostError for what a veth pair does not have."""
        _refuse(name, self.nics[name], nic, _NIC_UNSUPPORTED)
        self.nics[name] = nic
        cable = self._cables[name]
        mtu = cable.link.mtu
        shape.change_buffer(
            cable.near.node.route, cable.near.index, self._buffer_bytes(name, cable.near, mtu)
        )
        return nic

    def change_switch(self, name: str, switch: Switch) -> Switch:
        """Gives a switch new buffers. Raises HostError for what bridges and HTB do not have."""
        others = [field for field in Switch.model_fields if field not in ("name", "buffer_bytes")]
        _refuse(name, self.switches[name], switch, others)
        self.switches[name] = switch
        for cable in self._cables.values():
            for end in cable.ends:
                if end.node.name == name:
                    shape.change_buffer(end.node.route, end.index, switch.buffer_bytes)
        return switch

    def counters(self) -> dict[str, float]:
        """Traffic of every link, and drops: in the node's own queue, and in the switch's buffer towards it."""
        dropped = {
            name: shape.drops(node.route) for name, node in self._nodes.items() if node.kind != "control"
        }
        nears: dict[str, dict[str, str]] = {}
        for name, cable in self._cables.items():
            nears.setdefault(cable.near.node.name, {})[name] = cable.near.interface
        counted: dict[str, float] = {}
        for node, interfaces in nears.items():
            counted |= traffic_counters(self._nodes[node], interfaces)
        for name, cable in self._cables.items():
            near, far = cable.near, cable.far
            counted[f"port.{name}.drops"] += dropped[near.node.name].get(near.index, 0)
            counted[f"port.{name}.switch_drops"] = dropped[far.node.name].get(far.index, 0)
        return counted

    def receive_cpu_s(self, node: str) -> float:
        """Nothing beyond what the kernel tells of every interface."""
        return 0.0

    def facts(self) -> dict[str, Any]:
        """How the fabric carries frames."""
        return {"receive_threads": self.receives_in_threads}

    def stop(self) -> None:
        """Nothing to stop: bridges and links go with their namespaces."""


def check(topology: Topology) -> None:
    """Raises UserError for a part that this fabric cannot build."""
    for member in topology.nodes:
        for port in member.ports:
            if len(port.interfaces) > 1:
                raise UserError(
                    f"{member.name}.{port.name}: several interfaces on one port", 'use fabric = "user"'
                )


def _refuse(name: str, before: Any, after: Any, fields: Any) -> None:
    changed = [field for field in fields if getattr(before, field) != getattr(after, field)]
    if changed:
        raise HostError(
            f"{name}: the kernel fabric has no {', '.join(changed)}", 'bring the lab up with fabric = "user"'
        )
