"""Builds a lab from an order. Nothing is undone when a step fails: the process ends, and with it all that was made."""

from __future__ import annotations

import errno
import os
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from linerate.errors import HostError, UserError
from linerate.lab import protocol, system
from linerate.lab.kernel import KernelFabric
from linerate.lab.supervisor.addresses import address_node
from linerate.lab.supervisor.arrays import Arrays
from linerate.lab.supervisor.control import build_control
from linerate.lab.supervisor.faults import Impairment
from linerate.lab.supervisor.nas import NasServers
from linerate.lab.supervisor.nodes import NodeNamespace
from linerate.san import Link, Nic, Switch, Topology, beyond_kernel

CONTROL = "control"

_LINKS_UP_S = 10.0
_LOOK_S = 0.005

FabricName = Literal["kernel", "user"]


class LabFabric(Protocol):
    """What carries frames between nodes."""

    @property
    def name(self) -> FabricName:
        """As results call it."""

    @property
    def nics(self) -> dict[str, Nic]:
        """Adapters as they are, by port (`host.port`)."""

    @property
    def switches(self) -> dict[str, Switch]:
        """Switches as they are, by name."""

    @property
    def processes(self) -> dict[str, int]:
        """Processes without which the lab is of no use: what they are, and their ids."""

    def build(self) -> None:
        """Makes the interfaces of all hosts and arrays, without addresses. Raises LinerateError."""

    def settle(self) -> None:
        """Called once all interfaces are up."""

    def links(self) -> dict[str, Link]:
        """Links as they are, by name; `up` is whether one would be, without any impairment."""

    def impairment(self, links: Mapping[str, Impairment]) -> int:
        """Gives links the impairments that they have from now on, and says when that was (monotonic ns).

        Raises HostError for what this fabric cannot do; the links are then as they were.
        """

    def change_link(self, name: str, link: Link) -> Link:
        """Gives a link new values, or raises HostError and leaves it as it was."""

    def change_nic(self, name: str, nic: Nic) -> Nic:
        """Gives an adapter new values, or raises HostError and leaves it as it was."""

    def change_switch(self, name: str, switch: Switch) -> Switch:
        """Gives a switch new values, or raises HostError and leaves it as it was."""

    def counters(self) -> dict[str, float]:
        """Cumulative counters of links and of the fabric itself."""

    @property
    def receivers(self) -> list[int]:
        """Threads that stand in for interrupts, by the numbers that /proc shows."""

    def traffic(self) -> dict[str, float]:
        """`port.LINK.*` of `counters`, with what waits at both ends of each link now. It changes no counter."""

    def receive_cpu_s(self, node: str) -> float:
        """CPU of receiving at a node, as far as only the fabric knows of it."""

    def facts(self) -> dict[str, str | int | float | bool | None]:
        """What a result should say about the fabric."""


@dataclass(frozen=True, slots=True)
class Built:
    """A lab that is up."""

    name: str
    attached: bool
    topology: Topology
    listener: socket.socket
    nodes: dict[str, NodeNamespace]
    fabric: LabFabric
    fabric_reasons: tuple[str, ...]
    arrays: Arrays
    nas: NasServers


def build(order: dict[str, Any]) -> Built:
    """Builds what a command ordered. Raises LinerateError."""
    topology = Topology.model_validate_json(order["topology"])
    chosen, reasons = choose_fabric(topology, order["fabric"], order["needs"])
    # The socket belongs to the network that commands come from; everything after it to the lab's own.
    listener = _listen(order["name"])
    system.own_mounts()
    nodes = _nodes(topology, chosen)
    fabric = _fabric(chosen, topology, nodes)
    fabric.build()
    for member in topology.nodes:
        address_node(nodes[member.name], member, topology)
    fabric.settle()
    build_control(nodes[CONTROL], nodes, topology)
    arrays = Arrays(topology.arrays, nodes)
    arrays.start()
    nas = NasServers(topology.arrays, nodes)
    nas.start()
    _await_links(topology, nodes)
    arrays.await_memory()
    return Built(order["name"], order["attached"], topology, listener, nodes, fabric, reasons, arrays, nas)


def _await_links(topology: Topology, nodes: dict[str, NodeNamespace]) -> None:
    """The kernel notes in its own time that a cable is plugged in; until then frames would be lost."""
    waiting = [
        (nodes[member.name], nodes[member.name].index(interface.name))
        for member in topology.nodes
        for port in member.ports
        if port.link.up
        for interface in port.interfaces
    ]
    pause = threading.Event()
    for _ in range(round(_LINKS_UP_S / _LOOK_S)):
        waiting = [(node, index) for node, index in waiting if not node.carries(index)]
        if not waiting:
            return
        pause.wait(_LOOK_S)
    raise HostError(f"links of {waiting[0][0].name} did not come up in {_LINKS_UP_S:.0f} s", "try again")


def choose_fabric(topology: Topology, asked: str, needs: list[str]) -> tuple[FabricName, tuple[str, ...]]:
    """The fabric for a topology, and why it is the user fabric; the command's word counts before the file's.

    Raises UserError where the kernel fabric is demanded and cannot do what is needed.
    """
    asked = topology.fabric if asked == "auto" else asked
    reasons = (*beyond_kernel(topology), *needs)
    if asked == "kernel" and reasons:
        raise UserError(
            f"the kernel fabric cannot carry {topology.name}: {'; '.join(reasons)}",
            'use fabric = "user" or "auto"',
        )
    if asked == "kernel" or (asked == "auto" and not reasons):
        return "kernel", ()
    return "user", reasons or ("asked for",)


def _listen(name: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(protocol.address(name))
        listener.listen()
    except OSError as error:
        listener.close()
        if error.errno != errno.EADDRINUSE:
            raise HostError(f"cannot listen for commands to the lab {name}: {error}", "try again") from error
        uid = protocol.holder(name)
        if uid == os.geteuid():
            what = f"a lab named {name} is up already"
            raise UserError(what, "linerate lab down, or choose another name") from error
        whose = f"a process of user {uid}" if uid is not None else "another process, which does not answer,"
        raise UserError(f"{whose} holds the lab name {name}", "choose another name: --name") from error
    return listener


def _nodes(topology: Topology, fabric: FabricName) -> dict[str, NodeNamespace]:
    home = NodeNamespace(CONTROL, "control", None)
    nodes = {CONTROL: home}
    nodes |= {host.name: NodeNamespace(host.name, "host", home.fd) for host in topology.hosts}
    nodes |= {array.name: NodeNamespace(array.name, "array", home.fd) for array in topology.arrays}
    if fabric == "kernel":
        nodes |= {switch.name: NodeNamespace(switch.name, "switch", home.fd) for switch in topology.switches}
    return nodes


def _fabric(chosen: FabricName, topology: Topology, nodes: dict[str, NodeNamespace]) -> LabFabric:
    if chosen == "user":
        from linerate.lab.user import UserFabric

        return UserFabric(topology, nodes)
    return KernelFabric(topology, nodes)
