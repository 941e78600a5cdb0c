"""The requests that a lab answers; each is one method."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from linerate import rpc
from linerate.errors import HostError, UserError, fault_text
from linerate.lab import system
from linerate.lab.supervisor import addresses
from linerate.lab.supervisor.build import CONTROL, Built
from linerate.lab.supervisor.counters import machine_counters, node_counters
from linerate.lab.supervisor.faults import Faults
from linerate.lab.supervisor.napi import ReceiveThreads
from linerate.lab.supervisor.nodes import DEFAULTS
from linerate.san import Fault, Link

_Model = TypeVar("_Model", bound=BaseModel)


class LabService:
    """Answers for one lab."""

    def __init__(self, lab: Built) -> None:
        self._lab = lab
        self._receivers = ReceiveThreads({name: node for name, node in lab.nodes.items() if name != CONTROL})
        # Asked once: a lab whose fabric has ended is still looked at, and taken down.
        self._real_time = lab.fabric.receivers
        self._ended: dict[str, int] = {}
        self.faults = Faults(lab.topology, lab.fabric.impairment, self._readdress)
        self._changes = 0
        """How often a link, an adapter, a switch or an array was changed, faults not counted."""
        self.told_to_end = False
        self.methods: rpc.Methods = {
            "about": self.about,
            "state": self.state,
            "change_link": self.change_link,
            "change_nic": self.change_nic,
            "change_switch": self.change_switch,
            "change_storage": self.change_storage,
            "array_reports": self.array_reports,
            "manage": self.manage,
            "fault": self.fault,
            "heal": self.heal,
            "add_address": self.add_address,
            "remove_address": self.remove_address,
            "counters": self.counters,
            "traffic": self.traffic,
            "facts": self.facts,
            "smb_login": self.smb_login,
            "down": self.down,
        }

    def child_ended(self, pid: int, status: int) -> None:
        """Notes the end of a process that should have lived as long as the lab."""
        arrays = self._lab.arrays.pids | self._lab.nas.pids
        needed = {f"array {name}": pid for name, pid in arrays.items()}
        for name, known in (needed | self._lab.fabric.processes).items():
            if known == pid:
                self._ended[name] = status

    def about(self) -> dict[str, Any]:
        """What the lab is."""
        return {
            "name": self._lab.name,
            "topology": self._lab.topology.model_dump_json(),
            "topology_name": self._lab.topology.name,
            "fabric": self._lab.fabric.name,
            "fabric_reasons": self._lab.fabric_reasons,
            "attached": self._lab.attached,
            "receivers": self._real_time,
            "namespaces": {name: node.fd for name, node in self._lab.nodes.items()},
        }

    def state(self) -> dict[str, Any]:
        """Links, adapters and switches as they are, and the faults in force."""
        fabric = self._lab.fabric
        return {
            "links": {name: self._in_force(name, link).model_dump() for name, link in fabric.links().items()},
            "nics": {name: nic.model_dump() for name, nic in fabric.nics.items()},
            "switches": {name: switch.model_dump() for name, switch in fabric.switches.items()},
            "storage": {name: one.model_dump() for name, one in self._lab.arrays.storages.items()},
            "faults": [fault.model_dump() for fault in self.faults.active],
        }

    def _in_force(self, name: str, link: Link) -> Link:
        """A link with what its impairments make of it."""
        return link.model_copy(update={"up": link.up and not self.faults.impairment(name).down})

    def change_link(self, name: str, changes: dict[str, Any]) -> dict[str, Any]:
        """Changes a link. Plugging a cable in that a fault had pulled heals that fault."""
        self._changes += 1
        known = self._lab.fabric.links()
        wanted = _changed("link", name, known, changes)
        pulled = Fault(kind="cable", target=name)
        if changes.get("up") and pulled in self.faults.active:
            self.faults.end(pulled)
        return self._in_force(name, self._lab.fabric.change_link(name, wanted)).model_dump()

    def fault(self, fault: dict[str, Any]) -> int:
        """Lets a fault happen now; its own times are the caller's affair. When it was, in monotonic ns."""
        return self.faults.begin(Fault.model_validate(fault))

    def heal(self, fault: dict[str, Any]) -> int:
        """Ends a fault that is in force; when, in monotonic ns."""
        return self.faults.end(Fault.model_validate(fault))

    def change_nic(self, name: str, changes: dict[str, Any]) -> dict[str, Any]:
        """Changes an adapter."""
        self._changes += 1
        known = self._lab.fabric.nics
        return self._lab.fabric.change_nic(name, _changed("port", name, known, changes)).model_dump()

    def change_switch(self, name: str, changes: dict[str, Any]) -> dict[str, Any]:
        """Changes a switch."""
        self._changes += 1
        known = self._lab.fabric.switches
        return self._lab.fabric.change_switch(name, _changed("switch", name, known, changes)).model_dump()

    def change_storage(self, name: str, changes: dict[str, Any]) -> dict[str, Any]:
        """Lets an array serve other disks."""
        self._changes += 1
        wanted = _changed("array with disks", name, self._lab.arrays.storages, changes)
        return self._lab.arrays.restart(name, wanted).model_dump()

    def array_reports(self) -> dict[str, Any]:
        """Counters of the disks, RAID sets and pools of every array that has any."""
        self._check_alive()
        return self._lab.arrays.reports()

    def manage(self, name: str, command: str, fields: dict[str, Any]) -> dict[str, Any]:
        """Has an array carry out a management command."""
        if name not in self._lab.arrays.storages:
            there = ", ".join(self._lab.arrays.storages) or "none"
            raise UserError(f"there is no array with disks {name}", f"there is {there}")
        self._check_alive()
        return self._lab.arrays.manage(name, command, fields)

    def add_address(self, node: str, interface: str, address: str) -> list[str]:
        """Gives an interface one more address; all that it has then."""
        return addresses.add(self._lab.topology, self._lab.nodes, node, interface, address)

    def remove_address(self, node: str, interface: str, address: str) -> list[str]:
        """Takes an address away; those that are left."""
        return addresses.remove(self._lab.topology, self._lab.nodes, node, interface, address)

    def _readdress(self, target: str, present: bool) -> None:
        """Gives an interface the topology's own address back, or takes it away."""
        name, _, interface = target.partition(".")
        known = {one.name: one.address for one in self._lab.topology.node(name).interfaces}
        change = self.add_address if present else self.remove_address
        change(name, interface, known[interface])

    def counters(self) -> dict[str, float]:
        """All counters; those of hosts lack the CPU of what a command runs there."""
        self._check_alive()
        lab = self._lab
        counted = machine_counters() | node_counters(lab.topology, lab.nodes) | lab.fabric.counters()
        counted["supervisor.cpu_s"] = system.process_cpu_s(os.getpid())
        received = {
            name: used + lab.fabric.receive_cpu_s(name) for name, used in self._receivers.cpu_s().items()
        }
        for host in lab.topology.hosts:
            counted[f"host.{host.name}.cpu_s"] = received[host.name]
        for name, pid in lab.arrays.pids.items():
            counted[f"array.{name}.cpu_s"] = received[name] + system.process_cpu_s(pid)
        for name, used_s in lab.nas.cpu_s().items():
            counted[f"array.{name}.cpu_s"] = received[name] + used_s
        for name, pages in lab.arrays.page_faults().items():
            counted[f"array.{name}.page_faults"] = pages
        switches = sum(received[name] for name in received if lab.nodes[name].kind == "switch")
        counted["fabric.cpu_s"] = counted.get("fabric.cpu_s", 0.0) + switches
        return counted

    def traffic(self) -> dict[str, float]:
        """What passed the links so far and what waits at them, for readers beside a measurement."""
        self._check_alive()
        changes = self._changes + self.faults.changes
        return {
            "machine.clock_s": time.monotonic(),
            "lab.changes": changes,
            **self._lab.fabric.traffic(),
        }

    def facts(self) -> dict[str, str | int | float | bool | None]:
        """The lab as a result's manifest names it; defaults are those of the first host, read back."""
        first = self._lab.nodes[self._lab.topology.hosts[0].name]
        read = {f"default.{key}": first.sysctl(key) for key in DEFAULTS}
        return {
            "lab": self._lab.name,
            "topology": self._lab.topology.name,
            "fabric": self._lab.fabric.name,
            "fabric_reasons": "; ".join(self._lab.fabric_reasons),
            "kernel": os.uname().release,
            "user_namespace": system.outer_uid() != os.geteuid(),
            **self._lab.fabric.facts(),
            **{key: value for key, value in read.items() if value is not None},
        }

    def smb_login(self) -> dict[str, str] | None:
        """User and secret of its NAS; None if it has none."""
        return self._lab.nas.login()

    def down(self) -> None:
        """The lab ends once this is answered."""
        self.told_to_end = True

    def _check_alive(self) -> None:
        for what, status in self._ended.items():
            how = (
                f"was ended by {signal.Signals(os.WTERMSIG(status)).name}"
                if os.WIFSIGNALED(status)
                else f"ended with status {os.waitstatus_to_exitcode(status)}"
            )
            raise HostError(
                f"{what} of the lab {self._lab.name} {how}", "take the lab down and bring it up again"
            )


def _changed(kind: str, name: str, known: Mapping[str, _Model], changes: dict[str, Any]) -> _Model:
    """What `name` would be with the changes. Raises UserError for a name, a field or a value that does not exist."""
    if name not in known:
        raise UserError(f"there is no {kind} {name}", f"there are {', '.join(known)}")
    if "name" in changes:
        raise UserError(f"{kind} {name}: its name cannot change", "bring up another topology")
    try:
        return type(known[name]).model_validate(known[name].model_dump() | changes)
    except ValidationError as error:
        first = error.errors()[0]
        key = "".join(f"{part}: " for part in first["loc"])
        message = fault_text(first["msg"])
        fields = ", ".join(field for field in type(known[name]).model_fields if field != "name")
        raise UserError(f"{kind} {name}: {key}{message}", f"its values are {fields}") from error
