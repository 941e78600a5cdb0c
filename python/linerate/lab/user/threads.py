"""The kernel threads that receive for TAPs.

The kernel names such a thread after its interface only, and lists it nowhere: it is known by having appeared when the
interface was told to receive in a thread.

They model interrupts, which do not wait, so the lab lets them run in real time where that
is permitted. Otherwise a busy machine keeps a host from acknowledging what has reached it for longer than a sender
waits, who sends it again.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from linerate.lab.kernel import receive
from linerate.lab.supervisor.nodes import NodeNamespace

_NS = 1e-9
_TRIES = 5
_POLICY = 38
"""Of the fields of proc_pid_stat(5) behind the name."""


@dataclass(frozen=True, slots=True)
class TapThread:
    """A receive thread."""

    pid: int

    def cpu_s(self) -> float:
        """CPU seconds so far."""
        try:
            return int(Path(f"/proc/{self.pid}/schedstat").read_bytes().split()[0]) * _NS
        except OSError:
            return 0.0

    @property
    def is_real_time(self) -> bool:
        """Whether it runs before all ordinary threads."""
        try:
            after_name = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return False
        return int(after_name[_POLICY]) == os.SCHED_FIFO


def tap_threads(node: NodeNamespace, interfaces: Sequence[str]) -> list[TapThread]:
    """Has a thread receive for each TAP of a node; empty where the kernel refuses or does not show the threads."""
    found = [_thread(node, interface) for interface in interfaces]
    return [thread for thread in found if thread is not None] if all(found) else []


def _thread(node: NodeNamespace, interface: str) -> TapThread | None:
    """Another lab may do the same to an interface of that name at the same time: then both try again."""
    for _ in range(_TRIES):
        receive.receive_in_stack(node, interface)
        before = _pids(interface)
        if not receive.receive_in_threads(node, [interface]):
            return None
        new = _pids(interface) - before
        if len(new) == 1:
            return TapThread(new.pop())
    return None


def _pids(interface: str) -> set[int]:
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            name = Path(f"/proc/{pid}/comm").read_text()
        except OSError:
            continue  # ended meanwhile
        if name.startswith(f"napi/{interface}-"):
            found.add(int(pid))
    return found
