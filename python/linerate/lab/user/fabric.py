"""UserFabric: the SAN's switches, links and adapters in one process of Linerate's own, joined to the nodes by TAPs."""

from __future__ import annotations

import json
import select
import subprocess
import sys
from typing import Any, Literal

from linerate.errors import HostError
from linerate.lab import protocol, system
from linerate.lab.fabric import change
from linerate.lab.keeper.nodes import Node
from linerate.lab.user.counters import link_counters
from linerate.lab.user.mapping import fabric_spec, nic_values, ports_of, schedule_of, settings_of, wire_of
from linerate.lab.user.threads import TapThread, tap_threads
from linerate.san import Link, Nic, Switch, Topology

_ANSWER_TIMEOUT_S = 20.0
_QUEUE_PACKETS = 10_000
"""Packets that a host may queue above its adapter's ring: more than its sockets ever put there."""


class UserFabric:
    """The fabric process as the keeper sees it. If it dies, its interfaces vanish and the lab is of no more use."""

    name: Literal["user"] = "user"

    def __init__(self, topology: Topology, nodes: dict[str, Node]) -> None:
        self._topology = topology
        self._nodes = nodes
        self._links = topology.links
        self._ports = {
            f"{member.name}.{port.name}": port for member in topology.nodes for port in member.ports
        }
        self.nics = {name: port.nic for name, port in self._ports.items()}
        self.switches = {switch.name: switch for switch in topology.switches}
        self._receivers: dict[str, list[TapThread]] = {}
        self.receives_in_threads = False
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def processes(self) -> dict[str, int]:
        """The fabric."""
        return {} if self._process is None else {"the fabric": self._process.pid}

    def build(self) -> None:
        """Starts the fabric and waits until all interfaces are there. Raises what the fabric answers."""
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "linerate.lab.fabric"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,  # a detached lab may hold nothing of the terminal
        )
        self._ask(fabric_spec(self._topology, self._nodes).model_dump(mode="json"), "ready")
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
        """Every link as it is; its MTU as the node has it now."""
        return {name: self._read(name, link) for name, link in self._links.items()}

    def _read(self, name: str, link: Link) -> Link:
        if name not in self._ports:
            return link
        node = self._nodes[name.split(".")[0]]
        (state,) = node.route.get_links(node.index(self._ports[name].interfaces[0].name))
        return link.model_copy(update={"mtu": state.get_attr("IFLA_MTU")})

    def change_link(self, name: str, link: Link) -> Link:
        """Gives a link new values. Raises HostError when the fabric refuses them; it is then as it was."""
        wire = change.WireChange(**wire_of(link).model_dump())
        if name in self._ports:
            mtu = {interface.name: link.mtu for interface in self._ports[name].interfaces}
            self._change(change.ChangeSpec(ports={name: change.PortChange(wire=wire, mtu=mtu)}))
        else:
            self._change(change.ChangeSpec(trunks={name: change.TrunkChange(wire=wire)}))
        self._links[name] = link
        return self._read(name, link)

    def change_nic(self, name: str, nic: Nic) -> Nic:
        """Gives an adapter new values; errors as in `change_link`."""
        values = change.NicChange(**nic_values(nic))
        self._change(change.ChangeSpec(ports={name: change.PortChange(nic=values)}))
        self.nics[name] = nic
        return nic

    def change_switch(self, name: str, switch: Switch) -> Switch:
        """Gives a switch new values, and its adapters the same schedule; errors as in `change_link`."""
        settings = change.SwitchChange(**settings_of(switch, ports_of(self._topology, name)).model_dump())
        nic = change.NicChange(schedule=schedule_of(switch))
        ports = {port: change.PortChange(nic=nic) for port, at in self._ports.items() if at.switch == name}
        self._change(change.ChangeSpec(switches={name: settings}, ports=ports))
        self.switches[name] = switch
        return switch

    def counters(self) -> dict[str, float]:
        """Traffic of every link as it was on the wire, drops by cause, pauses, and how late it was since last asked."""
        stats = self._ask({"stats": {}}, "stats")
        counted = {
            "fabric.cpu_s": sum(map(system.process_cpu_s, self.processes.values())),
            "fabric.lag_ns_max": stats["lag"]["recent_max_ns"],
            "fabric.late_turns": stats["lag"]["late_turns"],
            "fabric.given_up_ns": stats["lag"]["given_up_ns"],
        }
        for name, port in stats["ports"].items():
            counted |= link_counters(name, port["sent"], port["received"])
            counted[f"port.{name}.pauses_asked"] = port["pauses_asked"]
            counted[f"port.{name}.interrupts"] = port["nic"]["interrupts"]
        for name, trunk in stats["trunks"].items():
            counted |= link_counters(name, trunk["a_to_b"], trunk["b_to_a"])
        return counted

    def receive_cpu_s(self, node: str) -> float:
        """Of the threads that receive for the TAPs: the kernel lists them nowhere."""
        return sum(thread.cpu_s() for thread in self._receivers.get(node, ()))

    def facts(self) -> dict[str, str | int | float | bool | None]:
        """How the fabric carries frames."""
        return {"receive_threads": self.receives_in_threads}

    def _change(self, changes: change.ChangeSpec) -> None:
        self._ask({"change": changes.model_dump(mode="json", exclude_unset=True)}, "changed")

    def _ask(self, request: dict[str, Any], answer: str) -> Any:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            pass  # the missing answer below tells
        ready, _, _ = select.select([process.stdout], [], [], _ANSWER_TIMEOUT_S)
        line = process.stdout.readline() if ready else b""
        if not line:
            raise HostError(
                f"the fabric process does not answer: {_last_words(process)}", "bring the lab up again"
            )
        said = json.loads(line)
        if "error" in said:
            error = said["error"]
            protocol.value_of({"error": error["message"], "hint": error["hint"], "blame": error["blame"]})
        return said[answer]


def _last_words(process: subprocess.Popen[bytes]) -> str:
    assert process.stderr is not None
    said = process.stderr.read() if process.poll() is not None else b""
    return said.decode(errors="replace").strip() or "no reason given"
