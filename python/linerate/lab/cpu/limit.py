"""A limit of the CPU time of processes, by cgroup v2 (the kernel's Documentation/admin-guide/cgroup-v2.rst).

The group is made in the nearest group above this process that passes the CPU controller on. No setting of a group that
exists is changed. The processes are put back and the group is removed at the end.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator
from pathlib import Path

from linerate.errors import HostError
from linerate.lab.system import namespace_of

TREE = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")
PERIOD_US = 100_000
"""The kernel's own default: a process that has used its time waits for the next period."""


class CpuLimit:
    """Some processes, and those that they start, get so much CPU time until `close`."""

    def __init__(
        self, percent: int, pids: Collection[int], tree: Path = TREE, membership: Path = MEMBERSHIP
    ) -> None:
        """`percent` of one CPU for all together. Raises HostError with what this machine lacks."""
        home = _own_group(tree, membership)
        self._home = home
        self._group = _new_group(home, tree)
        wanted = f"{percent * PERIOD_US // 100} {PERIOD_US}"
        try:
            limit = self._group / "cpu.max"
            limit.write_text(wanted)
            if (found := limit.read_text().strip()) != wanted:
                raise HostError(f"{limit}: {wanted} was written and {found} read back")
            for pid in pids:
                _move(pid, self._group)
        except OSError as error:
            self.close()
            raise HostError(f"{self._group}: {error.strerror}", "run it as root") from error
        except HostError:
            self.close()
            raise

    def close(self) -> None:
        """Ends the limit. Twice is once."""
        with contextlib.suppress(OSError):  # processes that have ended, a group that is gone
            for pid in (self._group / "cgroup.procs").read_text().split():
                with contextlib.suppress(OSError):
                    _move(int(pid), self._home)
            self._group.rmdir()


def processes_in(namespaces: Collection[str]) -> Iterator[int]:
    """The processes whose network namespace is one of these (paths), this process left out."""
    wanted = {namespace_of(path) for path in namespaces}
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        with contextlib.suppress(OSError):  # ended meanwhile, or another user's
            if namespace_of(f"/proc/{entry}/ns/net") in wanted:
                yield int(entry)


def _own_group(tree: Path, membership: Path) -> Path:
    if not (tree / "cgroup.controllers").is_file():
        raise HostError(f"there is no cgroup v2 at {tree}", "use a machine that has cgroup v2 alone")
    for line in membership.read_text().splitlines():
        if line.startswith("0::"):
            return tree / line.removeprefix("0::").strip("/")
    raise HostError(f"{membership} names no group of cgroup v2", "use a machine that has cgroup v2 alone")


def _new_group(home: Path, tree: Path) -> Path:
    for above in home.parents if home != tree else (tree,):
        if not above.is_relative_to(tree):
            break
        with contextlib.suppress(OSError):  # the next one above may do
            if "cpu" in (above / "cgroup.subtree_control").read_text().split():
                group = above / f"linerate-{os.getpid()}"
                group.mkdir()
                return group
    raise HostError(
        f"no group above {home} has the CPU controller for its members and lets this user make a group",
        "run it as root",
    )


def _move(pid: int, group: Path) -> None:
    with (group / "cgroup.procs").open("a") as members:
        members.write(f"{pid}\n")
