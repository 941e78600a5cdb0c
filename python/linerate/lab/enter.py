"""How a command gets the right to build a network: as root it has it, otherwise from a user namespace.

In a user namespace the caller is user 0 with every capability over what is made inside it, and nothing more over the
rest of the machine; files that it writes keep their owner. The kernel lets only a process with one thread enter such
a namespace, so a command calls `enter` first, before libraries that start threads are imported.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from linerate.errors import HostError
from linerate.lab import system

_NEEDED = frozenset({"CAP_SYS_ADMIN", "CAP_NET_ADMIN"})
_LIMIT = Path("/proc/sys/user/max_user_namespaces")
_SWITCHES = (
    ("/proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"),
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    ),
)


def may_build() -> bool:
    """This process may make network namespaces as it is."""
    return system.capabilities() >= _NEEDED


def enter() -> bool:
    """Makes sure that this process may build a lab; True if a user namespace was needed for it.

    Raises HostError where neither the rights are there nor a user namespace can be had, or where the process has
    started threads before.
    """
    if may_build():
        return False
    if (threads := system.thread_count()) > 1:
        raise HostError(
            f"a lab needs a user namespace, which a process with {threads} threads cannot enter",
            "call linerate.lab.enter() before anything else, or run as root",
        )
    uid, gid = os.geteuid(), os.getegid()
    try:
        system.unshare(system.CLONE_NEWUSER)
        # Without this the kernel refuses a group map: a group could otherwise be dropped to gain access.
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
        Path("/proc/self/gid_map").write_text(f"0 {gid} 1")
    except OSError as error:
        raise HostError(f"this user may not have a user namespace: {error}", _way_out(error)) from error
    return True


def join(supervisor_pid: int) -> None:
    """Enters the user namespace of a running lab, unless this process is in it already.

    Raises HostError as `enter` does.
    """
    theirs = f"/proc/{supervisor_pid}/ns/user"
    try:
        if system.namespace_of(theirs) == system.namespace_of("/proc/self/ns/user"):
            return
        fd = system.open_namespace(theirs)
        try:
            system.setns(fd, system.CLONE_NEWUSER)
        finally:
            os.close(fd)
    except OSError as error:
        raise HostError(
            f"cannot enter the lab of process {supervisor_pid}: {error}",
            "use the same user as `linerate lab up` did",
        ) from error


def _way_out(error: OSError) -> str:
    for path, closed, command in _SWITCHES:
        switch = Path(path)
        if switch.exists() and switch.read_text().strip() == closed:
            return f"run as root, or allow it: {command}"
    if error.errno == errno.ENOSPC or (_LIMIT.exists() and _LIMIT.read_text().strip() == "0"):
        return "run as root, or allow it: sysctl user.max_user_namespaces=10000"
    return "run as root; containers often forbid user namespaces (docker: --privileged)"
