"""What a lab would leave behind, found in the kernel's own lists: processes, namespaces, sockets."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from linerate.lab import Lab, protocol

GONE_WITHIN_S = 15.0

Process = tuple[int, str]
"""Number and start time: a number alone is given again."""


@dataclass(frozen=True)
class Trace:
    """Everything of one lab by which it could be found again."""

    name: str
    processes: frozenset[Process]
    holders: dict[Process, frozenset[int]]
    """Processes that are in a namespace of the lab or have it open."""

    @classmethod
    def of(cls, lab: Lab) -> Trace:
        """The trace of a lab that is up."""
        own = os.stat(f"/proc/{lab.supervisor_pid}/ns/pid").st_ino
        networks = {os.stat(lab.namespace(node).path).st_ino for node in lab.nodes}
        everyone = _processes()
        inside = {process for process in everyone if _inode(f"/proc/{process[0]}/ns/pid") == own}
        held = {process: _namespaces(process) & (networks | {own}) for process in everyone}
        holders = {process: found for process, found in held.items() if found}
        assert len(inside) >= 2  # the supervisor and an array: else nothing would be proven
        assert inside <= holders.keys()
        return cls(lab.name, frozenset(inside), holders)

    def remains(self) -> list[str]:
        """What is still there."""
        alive = _processes()
        found = [f"process {pid}" for pid, _ in self.processes & alive]
        found += [f"socket {name}" for name in protocol.names() if name == self.name]
        found += [
            f"namespace held by {process[0]}"
            for process, inodes in self.holders.items()
            if process in alive and inodes & _namespaces(process)
        ]
        return found

    def assert_gone(self) -> None:
        """Fails unless everything is gone in time."""
        deadline = time.monotonic() + GONE_WITHIN_S
        while (left := self.remains()) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not left


def _processes() -> set[Process]:
    found = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = Path(f"/proc/{name}/stat").read_text()
        except OSError:
            continue
        after_name = stat.rpartition(")")[2].split()
        if after_name[0] != "Z":
            found.add((int(name), after_name[19]))
    return found


def _namespaces(process: Process) -> frozenset[int]:
    """Namespaces and other inodes that a process has open or is in."""
    folder = f"/proc/{process[0]}"
    paths = [f"{folder}/ns/net", f"{folder}/ns/pid", *(f"{folder}/fd/{fd}" for fd in _listed(f"{folder}/fd"))]
    inodes = map(_inode, paths)
    return frozenset(inode for inode in inodes if inode is not None)


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _inode(path: str) -> int | None:
    """Of a namespace; other files have numbers that mean something else."""
    try:
        return os.stat(path).st_ino if "[" in os.readlink(path) else None
    except OSError:
        return None


def outer_interfaces() -> set[str]:
    """Interfaces of the network that the tests run in: a lab must not add one."""
    return {line.split(":")[0].strip() for line in Path("/proc/net/dev").read_text().splitlines()[2:]}
