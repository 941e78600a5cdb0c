"""A topology in the fabric's words. The same functions serve a new fabric and one that changes while it runs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pydantic import ValidationError

from linerate.errors import UserError
from linerate.lab.fabric import change, spec
from linerate.lab.supervisor.faults import Impairment
from linerate.lab.supervisor.nodes import NodeNamespace
from linerate.san import Link, Nic, Port, Schedule, Switch, Topology
from linerate.san import Node as Member

_NS_PER_US = 1000
_PRIORITIES = 8


def fabric_spec(topology: Topology, nodes: Mapping[str, NodeNamespace]) -> spec.FabricSpec:
    """The whole network; namespaces are named by the descriptors of the calling process."""
    supervisor = os.readlink("/proc/self")  # as seen in the mounted /proc, which the fabric process uses, too
    paths = {name: f"/proc/{supervisor}/fd/{node.fd}" for name, node in nodes.items()}
    return spec.FabricSpec(
        switches=tuple(
            spec.SwitchSpec(name=switch.name, settings=settings_of(switch, ports_of(topology, switch.name)))
            for switch in topology.switches
        ),
        ports=tuple(
            _port(member, port, topology.switch(port.switch), paths[member.name])
            for member in topology.nodes
            for port in member.ports
        ),
        trunks=tuple(
            spec.TrunkSpec(name=trunk.name, a=trunk.a, b=trunk.b, links=trunk.links, wire=wire_of(trunk.link))
            for trunk in topology.trunks
        ),
    )


def _port(member: Member, port: Port, switch: Switch, netns: str) -> spec.PortSpec:
    return spec.PortSpec(
        name=f"{member.name}.{port.name}",
        switch=port.switch,
        links=port.links,
        wire=wire_of(port.link),
        nic=spec.NicSpec(**nic_values(port.nic), schedule=schedule_of(switch)),
        interfaces=tuple(
            spec.InterfaceSpec(
                netns=netns,
                interface=interface.name,
                mac=interface.mac,
                mtu=port.link.mtu,
                vlan=interface.vlan,
                priority=interface.priority,
                napi=True,
            )
            for interface in port.interfaces
        ),
    )


def wire_of(link: Link) -> spec.WireSpec:
    """A link's cable. Raises UserError for values that no cable of this fabric has."""
    with _told():
        return spec.WireSpec(
            rate_bits_per_s=round(link.rate_bits_per_s),
            delay_ns=round(link.delay_us * _NS_PER_US),
            jitter_ns=round(link.jitter_us * _NS_PER_US),
            loss=link.loss,
            up=link.up,
        )


def link_of(wire: Mapping[str, Any], link: Link) -> Link:
    """The link with what its cable is."""
    return link.model_copy(
        update={
            "rate_bits_per_s": float(wire["rate_bits_per_s"]),
            "delay_us": wire["delay_ns"] / _NS_PER_US,
            "jitter_us": wire["jitter_ns"] / _NS_PER_US,
            "loss": wire["loss"],
            "up": wire["up"],
        }
    )


def link_change(impairment: Impairment, links: int) -> dict[int, change.LinkChange]:
    """What a impairment makes of each link of a cable, beside unplugging all of them."""

    def one_way(*, lost: bool) -> change.DirectionFault:
        return change.DirectionFault(loss=float(lost), mtu=impairment.mtu or 0)

    return {
        number: change.LinkChange(
            up=number not in impairment.pulled,
            outbound=one_way(lost=impairment.lost_from),
            inbound=one_way(lost=impairment.lost_to),
        )
        for number in range(links)
    }


@contextmanager
def _told() -> Iterator[None]:
    """What the fabric's models refuse is told as the user's mistake: the topology allows a little more."""
    try:
        yield
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        what = f"the user fabric cannot have {key} {first['input']}: {first['msg']}"
        raise UserError(what, "choose another value") from error


def nic_values(nic: Nic) -> dict[str, Any]:
    """An adapter's own values; its schedule is the switch's (802.1Qaz: both ends of a link share it)."""
    return {
        "tx_ring_frames": nic.tx_ring_frames,
        "rx_ring_frames": nic.rx_ring_frames,
        "moderation_us": round(nic.moderation_us),
        "rsc": nic.rsc,
    }


def nic_of(values: Mapping[str, Any]) -> Nic:
    """The adapter of these values."""
    return Nic(
        rx_ring_frames=values["rx_ring_frames"],
        tx_ring_frames=values["tx_ring_frames"],
        moderation_us=float(values["moderation_us"]),
        rsc=values["rsc"],
    )


def ports_of(topology: Topology, switch: str) -> int:
    """How many links end at a switch."""
    ports = sum(port.switch == switch for member in topology.nodes for port in member.ports)
    return ports + sum(switch in (trunk.a, trunk.b) for trunk in topology.trunks)


def settings_of(switch: Switch, ports: int) -> spec.SwitchSettings:
    """A switch's settings. Each port and priority has its buffer to itself: the shared memory is never what is full.

    Raises UserError for values that no switch of this fabric has.
    """
    with _told():
        return spec.SwitchSettings(
            queue_bytes=switch.buffer_bytes,
            buffer_bytes=min(switch.buffer_bytes * ports * _PRIORITIES, spec.BUFFER_BYTES_MAX),
            flow_control=switch.flow_control,
            lossless_priorities=switch.lossless_priorities,
            xoff_bytes=switch.xoff_bytes,
            xon_bytes=switch.xon_bytes,
            ecn_threshold_bytes=switch.ecn_threshold_bytes or 0,
            schedule=schedule_of(switch),
        )


def switch_of(name: str, settings: Mapping[str, Any]) -> Switch:
    """The switch of these settings."""
    return Switch(
        name=name,
        buffer_bytes=settings["queue_bytes"],
        flow_control=settings["flow_control"],
        lossless_priorities=tuple(settings["lossless_priorities"]),
        xoff_bytes=settings["xoff_bytes"],
        xon_bytes=settings["xon_bytes"],
        ecn_threshold_bytes=settings["ecn_threshold_bytes"] or None,
        schedule=Schedule(
            kind=settings["schedule"]["kind"],
            shares={int(priority): share for priority, share in settings["schedule"]["shares"].items()},
        ),
    )


def schedule_of(switch: Switch) -> spec.ScheduleSpec:
    """How a switch and the adapters at it choose among priorities. Raises UserError as `settings_of` does."""
    shares = {priority: round(percent) for priority, percent in switch.schedule.shares.items()}
    with _told():
        return spec.ScheduleSpec(kind=switch.schedule.kind, shares=shares)
