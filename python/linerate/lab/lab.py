"""Lab: a running virtual SAN as a command sees it. Every call is a question to its supervisor."""

from __future__ import annotations

import contextlib
import dataclasses
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Self

from pydantic import SecretStr

from linerate.errors import HostError, LinerateError, UserError
from linerate.lab import protocol, system
from linerate.lab.cpu.used import NamespaceCpu
from linerate.lab.enter import enter, join
from linerate.lab.start import reap_detached, start_supervisor, stop_supervisor
from linerate.san import Fault, Link, Nic, Node, Path, Storage, Switch, Topology, volume_urls

FabricChoice = Literal["auto", "kernel", "user"]
Change = float | int | bool | str | None

WIRE_OVERHEAD_BYTES = 24
"""Preamble, start of frame, checksum and gap of an Ethernet frame."""
CONTROL = "control"
"""The node that is the machine running the study: `.1` of the control network, no part of the SAN."""


@dataclasses.dataclass(frozen=True, slots=True)
class Namespace:
    """A node's network namespace; `path` can be opened and given to setns(2) while the lab is up."""

    name: str
    path: str


@dataclasses.dataclass(frozen=True, slots=True)
class VolumeUrl:
    """A volume as a host reaches it."""

    volume: str
    """`array.volume`, as in a1.v3."""
    url: str
    """For a VolumeSpec."""
    path: Path
    """From which interface of the host to which one of the array."""


@dataclasses.dataclass(frozen=True, slots=True)
class Running:
    """A lab that is up, as `linerate lab show` lists it."""

    name: str
    topology: str
    fabric: Literal["kernel", "user"]
    supervisor_pid: int
    attached: bool
    """It ends with the command that made it."""


class Lab:
    """A virtual SAN that is up. Use it in a `with` block: an attached lab goes down at its end."""

    def __init__(
        self, connection: protocol.LabConnection, supervisor: subprocess.Popen[bytes] | None = None
    ) -> None:
        self._connection = connection
        self._supervisor = supervisor
        about = connection.ask("about")
        self.name: str = about["name"]
        self.fabric: Literal["kernel", "user"] = about["fabric"]
        self.fabric_reasons: tuple[str, ...] = tuple(about["fabric_reasons"])
        """Why it is the user fabric; empty for the kernel's."""
        self.attached: bool = about["attached"]
        self.topology = Topology.model_validate_json(about["topology"])
        """As it was brought up; `now` tells what has become of it."""
        self._namespaces: dict[str, int] = about["namespaces"]
        self._cpu = NamespaceCpu({host.name: self.namespace(host.name).path for host in self.topology.hosts})

    @classmethod
    def up(
        cls,
        topology: Topology,
        *,
        fabric: FabricChoice = "auto",
        needs: Iterable[str] = (),
        name: str | None = None,
        detached: bool = False,
    ) -> Self:
        """Builds the lab and waits until its arrays serve.

        `fabric` overrides the topology's own choice. `needs` names what the caller will change later that only the user
        fabric has ("flow_control", "loss", ...): with auto it then carries the lab. A detached lab outlives this
        process until `linerate lab down`. Call `linerate.lab.enter` early in a command that is not root's.

        Raises UserError for a topology that cannot be built as asked or a name that is in use, HostError for what this
        machine lacks. Nothing is left behind when it fails.
        """
        enter()
        chosen = protocol.checked_name(name or f"{protocol.name_after(topology.name)}-{system.short_id()}")
        supervisor = start_supervisor(chosen, topology, fabric=fabric, needs=tuple(needs), detached=detached)
        try:
            connection = protocol.LabConnection(chosen)
            # The supervisor has process numbers of its own: these threads have none there.
            system.run_in_real_time(connection.ask("about")["receivers"])
            return cls(connection, supervisor)
        except BaseException:
            supervisor.kill()
            stop_supervisor(supervisor)
            raise

    @classmethod
    def find(cls, name: str | None = None) -> Self:
        """A lab of this user that is up; without a name the only one, or the only one that was left up (`lab up`).

        Raises UserError if there is none, or several. Enters the user namespace of the lab, so it comes before threads
        are started.
        """
        lab = cls.look(name)
        join(lab.supervisor_pid)
        return lab

    @classmethod
    def look(cls, name: str | None = None) -> Self:
        """As `find`, without entering: enough to look at a lab, to change its links and to take it down."""
        return cls(protocol.LabConnection(protocol.checked_name(name or only_lab())))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Takes an attached lab down; of a detached one only the connection is closed. Twice is once."""
        if self._supervisor is not None and self.attached:
            self.down()
        self._connection.close()

    def down(self) -> None:
        """Takes the lab down and waits until its processes have ended and its namespaces are gone."""
        supervisor = self._connection.supervisor
        with contextlib.suppress(HostError):  # it has gone before: what was asked for
            self._connection.ask("down")
        if not supervisor.wait(protocol.ANSWER_TIMEOUT_S):
            supervisor.kill()
            supervisor.wait(protocol.ANSWER_TIMEOUT_S)
        if self._supervisor is not None:
            stop_supervisor(self._supervisor)
            self._supervisor = None
        reap_detached()

    @property
    def supervisor_pid(self) -> int:
        """The supervisor's process id."""
        return self._connection.supervisor_pid

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of hosts, arrays and switches, and `control`."""
        return tuple(self._namespaces)

    def namespace(self, node: str) -> Namespace:
        """The network namespace of a host, an array, a switch (kernel fabric only) or `control`.

        Raises UserError for a node that the lab does not have.
        """
        if node not in self._namespaces:
            raise UserError(f"{self.name} has no node {node}", f"its nodes are {', '.join(self.nodes)}")
        return Namespace(node, f"/proc/{self.supervisor_pid}/fd/{self._namespaces[node]}")

    def inside(self, node: str, command: Sequence[str]) -> tuple[str, ...]:
        """The command line that runs `command` inside a node, for subprocess or any other starter of processes.

        The command sees the node's interfaces under /sys, and is killed when the lab goes down.
        """
        path = self.namespace(node).path
        return (
            sys.executable,
            "-P",
            "-m",
            "linerate.lab.exec",
            str(self.supervisor_pid),
            path,
            "--",
            *command,
        )

    def execute(
        self, node: str, command: Sequence[str], *, text: str = "", timeout_s: float | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command inside a node to its end; `text` is its standard input.

        A status other than 0 is left to the caller. Raises UserError for an unknown node and
        subprocess.TimeoutExpired after `timeout_s`.
        """
        return subprocess.run(
            self.inside(node, command),
            input=text,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def volume_urls(self, host: str) -> tuple[VolumeUrl, ...]:
        """Every volume that `host` can reach with the path that it is given: volumes are spread evenly over the paths.

        Raises UserError for a host that the topology does not have.
        """
        hosts = [known.name for known in self.topology.hosts]
        if host not in hosts:
            raise UserError(f"{self.name} has no host {host}", f"its hosts are {', '.join(hosts)}")
        found = volume_urls(self.topology, host)
        return tuple(VolumeUrl(volume, url, path) for volume, (path, url) in found.items())

    @property
    def links(self) -> dict[str, Link]:
        """Every link as it is now, by name: `host.port`, `array.port`, or the trunk's name."""
        links = self._connection.ask("state")["links"]
        return {name: Link.model_validate(link) for name, link in links.items()}

    def now(self) -> Topology:
        """The topology as it is now, after every change to links, adapters and switches."""
        topology, _ = self.now_with_faults()
        return topology

    def now_with_faults(self) -> tuple[Topology, tuple[Fault, ...]]:
        """The topology as it is now, and the faults in force, the oldest first: both of one instant."""
        state = self._connection.ask("state")
        return self._changed(state), tuple(Fault.model_validate(fault) for fault in state["faults"])

    def _changed(self, state: Mapping[str, Any]) -> Topology:
        links, nics, switches = state["links"], state["nics"], state["switches"]

        def changed(member: Node) -> dict[str, object]:
            names = {port.name: f"{member.name}.{port.name}" for port in member.ports}
            ports = [
                port.model_dump() | {"link": links[names[port.name]], "nic": nics[names[port.name]]}
                for port in member.ports
            ]
            return member.model_dump() | {"ports": ports}

        return Topology.model_validate(
            self.topology.model_dump()
            | {
                "hosts": [changed(host) for host in self.topology.hosts],
                "arrays": [
                    changed(array) | {"storage": state["storage"].get(array.name)}
                    for array in self.topology.arrays
                ],
                "switches": list(switches.values()),
                "trunks": [
                    trunk.model_dump() | {"link": links[trunk.name]} for trunk in self.topology.trunks
                ],
            }
        )

    def change_link(self, name: str, **changes: Change) -> Link:
        """Changes a link while it carries frames, and returns it as it is then.

        `changes` are fields of `linerate.san.Link`: rate_bits_per_s, mtu, delay_us, jitter_us, loss, up. Raises
        UserError for a link or a value that does not exist, HostError for what the fabric in use cannot do; then
        nothing has changed.
        """
        return Link.model_validate(self._connection.ask("change_link", name=name, changes=changes))

    def change_nic(self, port: str, **changes: Change) -> Nic:
        """Changes the adapter of a port (`host.port`): rx_ring_frames, tx_ring_frames, moderation_us, rsc.

        Returns it as it is then; errors as in `change_link`.
        """
        return Nic.model_validate(self._connection.ask("change_nic", name=port, changes=changes))

    def change_switch(self, name: str, **changes: Any) -> Switch:
        """Changes a switch: fields of `linerate.san.Switch` other than its name.

        Returns it as it is then; errors as in `change_link`.
        """
        return Switch.model_validate(self._connection.ask("change_switch", name=name, changes=changes))

    def change_storage(self, array: str, **changes: Any) -> Storage:
        """Gives an array other disks: its process ends, and one that serves the new ones takes its place.

        `changes` are fields of `linerate.san.Storage`. Everything on the volumes is gone, and so are the sessions.
        Returns the disks as they are then. Raises UserError for an array without disks or for disks that form no such
        sets, HostError when an array with them does not start; then one with the old ones serves.
        """
        return Storage.model_validate(self._connection.ask("change_storage", name=array, changes=changes))

    def array_reports(self) -> dict[str, Any]:
        """What the disks, RAID sets, pools and volumes of each array that has disks have counted, by array.

        Each is `_core.Array.stats()["storage"]`. Raises HostError when an array does not answer.
        """
        reports: dict[str, Any] = self._connection.ask("array_reports")
        return reports

    def manage(self, array: str, verb: str, **fields: Any) -> dict[str, Any]:
        """Has an array with disks carry out a management command; see `EmbeddedArray.manage`.

        Raises UserError for an array without disks, and what the array refuses it with.
        """
        reply: dict[str, Any] = self._connection.ask("manage", name=array, command=verb, fields=fields)
        return reply

    def smb_login(self) -> dict[str, Any]:
        """`user` and `secret` (a SecretStr) with which the files of its NAS are opened; empty without a NAS."""
        login = self._connection.ask("smb_login")
        return {"user": login["user"], "secret": SecretStr(login["secret"])} if login else {}

    def fault(self, fault: Fault) -> int:
        """Injects a fault now, without its own times, and returns when the fabric did it, in monotonic ns.

        It lasts until `heal`; `linerate.lab.faults` keeps times. Raises UserError for a target that the lab does not
        have or a fault that is in force already, HostError for what the fabric in use cannot do.
        """
        return int(self._connection.ask("fault", fault=fault.model_dump()))

    def pull(self, link: str) -> int:
        """Pulls the cable of a link; errors and what is returned as in `fault`."""
        return self.fault(Fault(kind="cable", target=link))

    def plug(self, link: str) -> int:
        """Plugs the cable of a link in again; when, in monotonic ns. Errors as in `change_link`.

        Other faults that are in force stay: the link of a switch without power stays down.
        """
        pulled = Fault(kind="cable", target=link)
        if any(known.label == pulled.label for known in self.faults):
            return self.heal(pulled)
        self.change_link(link, up=True)
        return time.monotonic_ns()

    def heal(self, fault: Fault) -> int:
        """Ends a fault of that kind, target and value; when, in monotonic ns. Raises UserError if there is none."""
        return int(self._connection.ask("heal", fault=fault.model_dump()))

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Those in force, the oldest first."""
        _, faults = self.now_with_faults()
        return faults

    def add_address(self, node: str, interface: str, address: str) -> tuple[str, ...]:
        """Gives an interface of a host or an array one more address of its network while everything runs.

        An array serves it at once. Returns all addresses of the interface. Raises UserError for an interface that there
        is not, or an address that is taken or belongs elsewhere.
        """
        return self._addressed("add_address", node, interface, address)

    def remove_address(self, node: str, interface: str, address: str) -> tuple[str, ...]:
        """Takes an address away, also one that the topology gave; connections of it are cut off.

        Returns those that are left. Raises UserError for an address that the interface does not have.
        """
        return self._addressed("remove_address", node, interface, address)

    def _addressed(self, verb: str, node: str, interface: str, address: str) -> tuple[str, ...]:
        return tuple(self._connection.ask(verb, node=node, interface=interface, address=address))

    def counters(self) -> dict[str, float]:
        """Cumulative counters under flat names with units, such as `array.a1.tcp_segments_retransmitted`.

        `host.NAME.cpu_s`, `array.NAME.cpu_s`: CPU of what runs in the node, its receive path included.
        `array.NAME.page_faults`: pages that the kernel had to give to the array, or to fetch.
        `host.NAME.tcp_segments_sent`, `.tcp_segments_retransmitted`, and so for arrays.
        `port.LINK.bytes_sent`, `.bytes_received`, `.frames_sent`, `.frames_received`, as the node's end (of a trunk:
        the switch `a`) sees them; `port.LINK.drops` in the adapter, `.switch_drops` in the switch's buffer towards it.
        `link.LINK.N.bytes_sent`, `.bytes_received` of each link of a team or a trunk of several, N from 1.
        `interface.NODE.INTERFACE.bytes_sent`, `.bytes_received` where several interfaces share a port.
        `fabric.cpu_s`: the switches, and with the user fabric links and adapters, too; that one also counts
        `port.LINK.lost`, `.pauses`, `.switch_pauses`, `.interrupts` and how late it was: `fabric.lag_ns_max` since the
        previous reading, `fabric.late_ns` of its time by more than a millisecond, `fabric.late_turns`,
        `fabric.given_up_ns`.
        `supervisor.cpu_s`; `command.cpu_s`: of this process, what no host has. `machine.busy_s`, `machine.idle_s`: all
        CPUs together. `machine.clock_s`: when, on the monotonic clock.
        Raises HostError when an array or the fabric has died.
        """
        counted: dict[str, float] = self._connection.ask("counters")
        for host, cpu_s in self._cpu.sample().items():
            counted[f"host.{host}.cpu_s"] += cpu_s
        counted["command.cpu_s"] = self._cpu.rest_of_process_s()
        return counted

    def traffic(self) -> dict[str, float]:
        """What the links carry, for a reader beside a measurement: it changes nothing that `counters` gives later.

        `port.LINK.*` as in `counters`, and besides what waits now: `port.LINK.queue_bytes` at the node's end,
        `.switch_queue_bytes` at the switch's. `machine.clock_s`: when, on the monotonic clock. `lab.changes` is another
        number after each change of what `now_with_faults` gives. Raises HostError when an array or the fabric has died.
        """
        counted: dict[str, float] = self._connection.ask("traffic")
        return counted

    def facts(self) -> dict[str, str | int | float | bool | None]:
        """What a result's manifest should say about the lab: fabric and why, defaults in force, read back."""
        facts: Mapping[str, str | int | float | bool | None] = self._connection.ask("facts")
        return dict(facts)


def utilisation(
    line_rates: Mapping[str, float], before: Mapping[str, float], after: Mapping[str, float]
) -> dict[str, float]:
    """How much of each line (bits per second by link name) was used between two readings of the counters, 0 to 1.

    The busier direction counts, with what every frame takes on the wire beyond its bytes.
    """
    elapsed_s = after["machine.clock_s"] - before["machine.clock_s"]

    def bits(link: str, direction: str) -> float:
        counted = {
            unit: after[f"port.{link}.{unit}_{direction}"] - before[f"port.{link}.{unit}_{direction}"]
            for unit in ("bytes", "frames")
        }
        return 8 * (counted["bytes"] + WIRE_OVERHEAD_BYTES * counted["frames"])

    return {
        name: max(bits(name, "sent"), bits(name, "received")) / rate_bits_per_s / elapsed_s
        for name, rate_bits_per_s in line_rates.items()
        if f"port.{name}.bytes_sent" in after
    }


def only_lab() -> str:
    """The lab that is meant where none is named: the only one, or the only one that does not end with its command.

    Raises UserError if there is none, or several.
    """
    labs = protocol.names()
    if not labs:
        raise UserError("no lab is up", "linerate lab up TOPOLOGY makes one")
    if len(labs) == 1:
        return labs[0]
    left_up = [lab.name for lab in running() if not lab.attached]
    if len(left_up) != 1:
        raise UserError(f"several labs are up: {', '.join(labs)}", "say which one")
    return left_up[0]


def running() -> list[Running]:
    """The labs of this user that are up."""
    found = []
    for name in protocol.names():
        with contextlib.suppress(LinerateError):  # it has gone meanwhile
            connection = protocol.LabConnection(name)
            about = connection.ask("about")
            connection.close()
            found.append(
                Running(
                    name,
                    about["topology_name"],
                    about["fabric"],
                    connection.supervisor_pid,
                    about["attached"],
                )
            )
    return found
