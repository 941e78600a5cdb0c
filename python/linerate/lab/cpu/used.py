"""CPU time by network namespace: threads in a node's namespace are charged to that node.

The load runs threads of one process in the namespaces of several hosts, so the process as a whole says nothing. Times
are the scheduler's own, in nanoseconds. A thread that ends between two samples keeps what the last sample saw of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

_NS = 1e-9


class NamespaceCpu:
    """Cumulative CPU time of the threads in some namespaces, from the first sample on."""

    def __init__(self, paths: Mapping[str, str]) -> None:
        self._names = {os.stat(path).st_ino: name for name, path in paths.items()}
        self._seen_ns: dict[tuple[str, int, int], int] = {}
        self._total_ns = dict.fromkeys(paths, 0)

    def sample(self) -> dict[str, float]:
        """CPU seconds so far by name."""
        for inode, thread, used_ns in _threads():
            if (name := self._names.get(inode)) is None:
                continue
            key = (name, inode, thread)
            # A thread's number may be given again: then its time starts anew.
            before = self._seen_ns.get(key, 0)
            self._total_ns[name] += used_ns - before if used_ns >= before else used_ns
            self._seen_ns[key] = used_ns
        return {name: total * _NS for name, total in self._total_ns.items()}


def _threads() -> Iterator[tuple[int, int, int]]:
    """Every thread that this user may look at: inode of its network namespace, number, CPU time in ns."""
    for process in os.listdir("/proc"):
        if not process.isdigit():
            continue
        try:
            for thread in os.listdir(f"/proc/{process}/task"):
                task = f"/proc/{process}/task/{thread}"
                inode = os.stat(f"{task}/ns/net").st_ino
                yield inode, int(thread), int(Path(f"{task}/schedstat").read_bytes().split()[0])
        except OSError:
            continue  # ended meanwhile, or another user's
