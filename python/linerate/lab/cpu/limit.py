"""A limit of the CPU time of processes, by a control group.

The CPU controller belongs to cgroup v2 or to a hierarchy of cgroup v1 (in the kernel's Documentation:
admin-guide/cgroup-v2.rst and scheduler/sched-bwc.rst). In v2 the group is made in the nearest group above this process
that passes the controller on, in v1 in the group of this process. No setting of a group that exists is changed. The
processes are put back and the group is removed at the end.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
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
        controller = _controller(tree, membership)
        self._home = controller.home
        self._group = controller.new_group()
        try:
            for name, wanted in controller.limit(percent * PERIOD_US // 100).items():
                file = self._group / name
                file.write_text(wanted)
                if (found := file.read_text().strip()) != wanted:
                    raise HostError(f"{file}: {wanted} was written and {found} read back")
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):  # it has ended since it was listed
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


def _controller(tree: Path, membership: Path) -> _Version1 | _Version2:
    """The one that has the CPU controller. A line of `membership` is ID:CONTROLLERS:GROUP (cgroups(7))."""
    lines = membership.read_text().splitlines() if membership.is_file() else []
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if "cpu" in controllers.split(",") and (mounted := tree / controllers).is_dir():
            home = mounted / group.strip("/")
            # In a container the mount may begin at the container's own group.
            return _Version1(home if home.is_dir() else mounted)
        if not controllers and (tree / "cgroup.controllers").is_file():
            return _Version2(tree / group.strip("/"), tree)
    raise HostError(f"{tree} has no control groups with the CPU controller", "use a machine that has them")


@dataclass(frozen=True, slots=True)
class _Version1:
    home: Path

    def new_group(self) -> Path:
        group = self.home / f"linerate-{os.getpid()}"
        try:
            group.mkdir()
        except OSError as error:
            raise HostError(f"{group}: {error.strerror}", "run it as root") from error
        return group

    def limit(self, quota_us: int) -> dict[str, str]:
        """Text of each file of a group."""
        return {"cpu.cfs_period_us": f"{PERIOD_US}", "cpu.cfs_quota_us": f"{quota_us}"}


@dataclass(frozen=True, slots=True)
class _Version2:
    home: Path
    tree: Path

    def new_group(self) -> Path:
        for above in self.home.parents if self.home != self.tree else (self.tree,):
            if not above.is_relative_to(self.tree):
                break
            with contextlib.suppress(OSError):  # the next one above may do
                if "cpu" in (above / "cgroup.subtree_control").read_text().split():
                    group = above / f"linerate-{os.getpid()}"
                    group.mkdir()
                    return group
        raise HostError(
            f"no group above {self.home} has the CPU controller for its members and lets this user make a group",
            "run it as root",
        )

    def limit(self, quota_us: int) -> dict[str, str]:
        """Text of each file of a group."""
        return {"cpu.max": f"{quota_us} {PERIOD_US}"}


def _move(pid: int, group: Path) -> None:
    with (group / "cgroup.procs").open("a") as members:
        members.write(f"{pid}\n")
