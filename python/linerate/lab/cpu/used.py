"""CPU time by network namespace: threads in a node's namespace are charged to that node.

The load runs threads of one process in the namespaces of several hosts, so the process as a whole says nothing. Times
of threads are the scheduler's own, in nanoseconds. A thread that ends between two samples keeps what the last sample
saw of it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_NS = 1e-9
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_LOOKS_MAX = 5


class NamespaceCpu:
    """Cumulative CPU time of the threads in some namespaces, from the first sample on."""

    def __init__(self, paths: Mapping[str, str]) -> None:
        self._names = {os.stat(path).st_ino: name for name, path in paths.items()}
        self._seen_ns: dict[tuple[str, int, int], int] = {}
        self._total_ns = dict.fromkeys(paths, 0)
        self._of_this_process_ns = 0

    def sample(self) -> dict[str, float]:
        """CPU seconds so far by name."""
        this_process = os.readlink("/proc/self")
        for process, inode, thread, used_ns in _threads():
            if (name := self._names.get(inode)) is None:
                continue
            key = (name, inode, thread)
            # A thread's number may be given again: then its time starts anew.
            before = self._seen_ns.get(key, 0)
            new_ns = used_ns - before if used_ns >= before else used_ns
            self._total_ns[name] += new_ns
            self._of_this_process_ns += new_ns if process == this_process else 0
            self._seen_ns[key] = used_ns
        return {name: total * _NS for name, total in self._total_ns.items()}

    def rest_of_process_s(self) -> float:
        """CPU seconds of this process so far that no sample has charged to a namespace; ended threads included."""
        return time.process_time() - self._of_this_process_ns * _NS


def processes_used_s(inode: int) -> float:
    """CPU time of the processes in a network namespace and of those of their children that have ended, to 10 ms.

    A process that ends leaves its namespace at once. Its time becomes that of its parent when the parent waits for it;
    until then its parent tells where it belongs (proc_pid_stat(5)).
    """
    times: dict[int, _Times] = {}
    for _ in range(_LOOKS_MAX):
        found = _processes(inode)
        times = _read(found)
        # If a parent has waited in between, the time of the child was missed or found twice.
        if {pid: one.waited_for for pid, one in times.items()} == found:
            break
    return sum(one.own + one.waited_for for one in times.values()) / _TICKS_PER_S


@dataclass(frozen=True, slots=True)
class _Times:
    """CPU time in ticks: of a process, and of its children that it has waited for."""

    parent: int
    own: int
    waited_for: int


def _processes(inode: int) -> dict[int, int]:
    """The processes of a namespace, each with the ticks of children that it has waited for."""
    inside: set[int] = set()
    without: list[int] = []
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            if os.stat(f"/proc/{pid}/ns/net").st_ino == inode:
                inside.add(pid)
        except FileNotFoundError:
            without.append(pid)
        except OSError:
            continue  # another user's
    ending = {pid: one for pid, one in _read(without).items() if one.parent in inside}
    return {pid: one.waited_for for pid, one in (_read(inside) | ending).items()}


def _read(pids: Iterable[int]) -> dict[int, _Times]:
    """Those that have not ended, or whose end nothing has waited for."""
    times = {}
    for pid in pids:
        try:
            # After the name: state is field 3, the parent field 4, the times are fields 14 to 17.
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        user, system, waited_user, waited_system = map(int, fields[11:15])
        times[pid] = _Times(int(fields[1]), user + system, waited_user + waited_system)
    return times


def _threads() -> Iterator[tuple[str, int, int, int]]:
    """Every thread that this user may look at: process, inode of its network namespace, number, CPU time in ns."""
    for process in os.listdir("/proc"):
        if not process.isdigit():
            continue
        try:
            for thread in os.listdir(f"/proc/{process}/task"):
                task = f"/proc/{process}/task/{thread}"
                inode = os.stat(f"{task}/ns/net").st_ino
                used_ns = int(Path(f"{task}/schedstat").read_bytes().split()[0])
                yield process, inode, int(thread), used_ns
        except OSError:
            continue  # ended meanwhile, or another user's
