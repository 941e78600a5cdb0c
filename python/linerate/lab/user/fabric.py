"""UserFabric: the SAN's switches, links and adapters in one process of Linerate's own, joined to the nodes by TAPs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from linerate.lab import system
from linerate.lab.fabric import change
from linerate.lab.supervisor.faults import NO_IMPAIRMENT, Impairment
from linerate.lab.supervisor.nodes import NodeNamespace
from linerate.lab.user.channel import Channel
from linerate.lab.user.counters import each_link_counters, link_counters, queue_lengths
from linerate.lab.user.mapping import (
    fabric_spec,
    link_change,
    link_of,
    nic_of,
    nic_values,
    ports_of,
    schedule_of,
    settings_of,
    switch_of,
    wire_of,
)
from linerate.lab.user.threads import TapThread, tap_threads
from linerate.san import Link, Nic, Switch, Topology

_QUEUE_PACKETS = 10_000
"""Packets that a host may queue above its adapter's ring: more than its sockets ever put there."""


class UserFabric:
    """The fabric process as the supervisor sees it. If it dies, its interfaces vanish and the lab is of no more use."""

    name: Literal["user"] = "user"

    def __init__(self, topology: Topology, nodes: dict[str, NodeNamespace]) -> None:
        self._topology = topology
        self._nodes = nodes
        self._links = topology.links
        self._impairments: dict[str, Impairment] = {}
        self._ports = {
            f"{member.name}.{port.name}": port for member in topology.nodes for port in member.ports
        }
        self._trunks = {trunk.name: trunk for trunk in topology.trunks}
        self._receivers: dict[str, list[TapThread]] = {}
        self.receives_in_threads = False
        self._channel: Channel | None = None
        self._lag_ns_max = 0

    @property
    def processes(self) -> dict[str, int]:
        """The fabric."""
        return {} if self._channel is None else {"the fabric": self._channel.pid}

    def build(self) -> None:
        """Starts the fabric and waits until all interfaces are there. Raises what the fabric answers."""
        self._channel = Channel(fabric_spec(self._topology, self._nodes))
        for member in self._topology.nodes:
            node = self._nodes[member.name]
            for interface in member.interfaces:
                node.route.link("set", index=node.index(interface.name), txqlen=_QUEUE_PACKETS)

    def settle(self) -> None:
        """Receiving is charged to the node that receives."""
        for member in self._topology.nodes:
            interfaces = [interface.name for interface in member.interfaces]
            self._receivers[member.name] = tap_threads(self._nodes[member.name], interfaces)
        self.receives_in_threads = all(self._receivers.values())

    def links(self) -> dict[str, Link]:
        """Every link as the fabric has it; its MTU as the node has it now."""
        stats = self._stats()
        return {name: self._read(name, stats) for name in self._links}

    def _read(self, name: str, stats: Mapping[str, Any]) -> Link:
        part = "ports" if name in self._ports else "trunks"
        wire = stats[part][name]["settings"]["wire"]
        link = link_of(wire, self._links[name])
        if self._impairment(name).down:  # then the wire is down in any state of the link
            link = link.model_copy(update={"up": self._links[name].up})
        if part == "trunks":
            return link
        node = self._nodes[name.split(".")[0]]
        (state,) = node.route.get_links(node.index(self._ports[name].interfaces[0].name))
        return link.model_copy(update={"mtu": state.get_attr("IFLA_MTU")})

    @property
    def nics(self) -> dict[str, Nic]:
        """Adapters as the fabric has them, by port."""
        ports = self._stats()["ports"]
        return {name: nic_of(ports[name]["settings"]["nic"]) for name in self._ports}

    @property
    def switches(self) -> dict[str, Switch]:
        """Switches as the fabric has them."""
        switches = self._stats()["switches"]
        return {name: switch_of(name, found["settings"]) for name, found in switches.items()}

    def _impairment(self, name: str) -> Impairment:
        return self._impairments.get(name, NO_IMPAIRMENT)

    def change_link(self, name: str, link: Link) -> Link:
        """Gives a link new values. Raises HostError when the fabric refuses them; it is then as it was."""
        wire = self._wire(link, self._impairment(name))
        if name in self._ports:
            mtu = {interface.name: link.mtu for interface in self._ports[name].interfaces}
            self._change(change.ChangeSpec(ports={name: change.PortChange(wire=wire, mtu=mtu)}))
        else:
            self._change(change.ChangeSpec(trunks={name: change.TrunkChange(wire=wire)}))
        self._links[name] = link
        return self._read(name, self._stats())

    @staticmethod
    def _wire(link: Link, impairment: Impairment) -> change.WireChange:
        values = wire_of(link).model_dump()
        return change.WireChange(**values | {"up": link.up and not impairment.down})

    def impairment(self, links: Mapping[str, Impairment]) -> int:
        """Gives links their impairments, all at one instant of the fabric, which is the time returned."""
        ports: dict[str, change.PortChange] = {}
        trunks: dict[str, change.TrunkChange] = {}
        for name, impairment in links.items():
            up = change.WireChange(up=self._links[name].up and not impairment.down)
            if name in self._ports:
                each = link_change(impairment, self._ports[name].links)
                ports[name] = change.PortChange(wire=up, links=each)
            else:
                each = link_change(impairment, self._trunks[name].links)
                trunks[name] = change.TrunkChange(wire=up, links=each)
        at_ns = self._change(change.ChangeSpec(ports=ports, trunks=trunks))
        self._impairments.update(links)
        return at_ns

    def change_nic(self, name: str, nic: Nic) -> Nic:
        """Gives an adapter new values; errors as in `change_link`."""
        values = change.NicChange(**nic_values(nic))
        self._change(change.ChangeSpec(ports={name: change.PortChange(nic=values)}))
        return self.nics[name]

    def change_switch(self, name: str, switch: Switch) -> Switch:
        """Gives a switch new values, and its adapters the same schedule; errors as in `change_link`."""
        settings = change.SwitchChange(**settings_of(switch, ports_of(self._topology, name)).model_dump())
        nic = change.NicChange(schedule=schedule_of(switch))
        ports = {port: change.PortChange(nic=nic) for port, at in self._ports.items() if at.switch == name}
        self._change(change.ChangeSpec(switches={name: settings}, ports=ports))
        return self.switches[name]

    def counters(self) -> dict[str, float]:
        """Traffic of every link as it was on the wire, drops by cause, pauses, and how late it was since last asked."""
        stats = self._stats()
        lag_ns_max, self._lag_ns_max = self._lag_ns_max, 0
        counted = {
            "fabric.cpu_s": sum(map(system.process_cpu_s, self.processes.values())),
            "fabric.lag_ns_max": lag_ns_max,
            "fabric.late_turns": stats["lag"]["late_turns"],
            "fabric.late_ns": stats["lag"]["late_ns"],
            "fabric.given_up_ns": stats["lag"]["given_up_ns"],
        }
        for name, (sent, received, links) in _lanes(stats).items():
            counted |= link_counters(name, sent, received)
            counted |= each_link_counters(name, links)
        for name, port in stats["ports"].items():
            counted[f"port.{name}.pauses_asked"] = port["pauses_asked"]
            counted[f"port.{name}.interrupts"] = port["nic"]["interrupts"]
        return counted

    def traffic(self) -> dict[str, float]:
        """Traffic and drops of every link, and the bytes that wait at its ends. The next `counters` misses nothing."""
        counted: dict[str, float] = {}
        for name, (sent, received, _) in _lanes(self._stats()).items():
            counted |= link_counters(name, sent, received)
            counted |= queue_lengths(name, sent, received)
        return counted

    @property
    def receivers(self) -> list[int]:
        """Threads that stand in for interrupts, by their numbers in /proc; none that would go before the fabric."""
        first = self._stats().get("scheduling") == "real_time"
        return [thread.pid for thread in self._threads] if first else []

    @property
    def _threads(self) -> list[TapThread]:
        return [thread for threads in self._receivers.values() for thread in threads]

    def receive_cpu_s(self, node: str) -> float:
        """Of the threads that receive for the TAPs: the kernel lists them nowhere."""
        return sum(thread.cpu_s() for thread in self._receivers.get(node, ()))

    def facts(self) -> dict[str, str | int | float | bool | None]:
        """How the fabric carries frames."""
        return {
            "receive_threads": self.receives_in_threads,
            "receive_real_time": self.receives_in_threads
            and all(thread.is_real_time for thread in self._threads),
            "scheduling": self._stats().get("scheduling"),
        }

    def _stats(self) -> dict[str, Any]:
        assert self._channel is not None
        stats: dict[str, Any] = self._channel.ask("stats")
        # Each answer begins the fabric's largest lag anew: it is kept here for the next reading of the counters.
        self._lag_ns_max = max(self._lag_ns_max, stats["lag"]["recent_max_ns"])
        return stats

    def _change(self, changes: change.ChangeSpec) -> int:
        """When it took effect, in monotonic ns."""
        assert self._channel is not None
        body = changes.model_dump(mode="json", exclude_unset=True)
        return int(self._channel.ask("change", body))


def _lanes(stats: dict[str, Any]) -> dict[str, tuple[Any, Any, Any]]:
    """Link -> its two directions, first that from the node (of a trunk: from the switch `a`), and its single links."""
    ports = {name: (one["sent"], one["received"], one["links"]) for name, one in stats["ports"].items()}
    trunks = {name: (one["a_to_b"], one["b_to_a"], one["links"]) for name, one in stats["trunks"].items()}
    return ports | trunks
