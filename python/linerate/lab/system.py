"""System calls that Python 3.11 lacks: namespaces, mounts, process attributes. Nothing here decides anything."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import secrets
import select
import signal
import socket
import struct
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Self

CLONE_NEWNS = 0x0002_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWPID = 0x2000_0000
CLONE_NEWNET = 0x4000_0000

_CPUS_MIN = 2
_MS_REC = 0x4000
_MS_PRIVATE = 1 << 18
_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_SO_PEERCRED = struct.Struct("3i")
_SO_PEERPIDFD = 77
_PROCESS_CPU_CLOCK = 2

_CAPABILITY_BITS = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21}

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Moves the calling thread into new namespaces, unshare(2). Raises OSError."""
    _checked(_libc.unshare(flags), "unshare")


def setns(fd: int, kind: int) -> None:
    """Moves the calling thread into the namespace behind `fd`, setns(2). Raises OSError."""
    _checked(_libc.setns(fd, kind), "setns")


def mount(source: str, target: str, kind: str) -> None:
    """Mounts a file system of a kernel kind (sysfs), mount(2). Raises OSError."""
    _checked(_libc.mount(source.encode(), target.encode(), kind.encode(), 0, None), f"mount {target}")


def own_mounts() -> None:
    """Gives the process a mount namespace whose mounts other processes do not see. Raises OSError."""
    unshare(CLONE_NEWNS)
    _checked(_libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None), "mount --make-rprivate /")


def die_with_parent(signal_number: int) -> None:
    """Asks the kernel for a signal when the thread that started this process ends, prctl(2)."""
    _checked(_libc.prctl(_PR_SET_PDEATHSIG, signal_number, 0, 0, 0), "prctl")


def run_in_real_time(threads: Iterable[int]) -> None:
    """Lets threads run before all ordinary ones, where that is permitted and this machine has CPUs to spare.

    Their priority is the lowest of this kind: the fabric's own thread goes before them.
    """
    if len(os.sched_getaffinity(0)) < _CPUS_MIN:
        return
    for thread in threads:
        with contextlib.suppress(OSError):
            os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(1))


def name_process(name: str) -> None:
    """Sets the short name that `ps` and `top` show (15 bytes)."""
    _checked(_libc.prctl(_PR_SET_NAME, name.encode()[:15], 0, 0, 0), "prctl")


def new_network() -> int:
    """Moves the calling thread into a new network namespace; a descriptor that keeps it. Raises OSError."""
    unshare(CLONE_NEWNET)
    return open_namespace("/proc/thread-self/ns/net")


def open_namespace(path: str) -> int:
    """A descriptor of the namespace that `path` names."""
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def namespace_of(fd_or_path: int | str) -> tuple[int, int]:
    """What tells one namespace from another: device and inode."""
    found = os.stat(fd_or_path)
    return found.st_dev, found.st_ino


def capabilities() -> frozenset[str]:
    """Those of CAP_SYS_ADMIN and CAP_NET_ADMIN that the calling thread has in its user namespace."""
    status = Path("/proc/thread-self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("CapEff:"))
    mask = int(line.split()[1], 16)
    return frozenset(name for name, bit in _CAPABILITY_BITS.items() if mask >> bit & 1)


def thread_count() -> int:
    """Threads of this process."""
    return len(os.listdir("/proc/self/task"))


def outer_uid() -> int:
    """The user outside the user namespace that this process may have entered."""
    inner = os.geteuid()
    for line in Path("/proc/self/uid_map").read_text().splitlines():
        first, outside, count = map(int, line.split())
        if first <= inner < first + count:
            return outside + inner - first
    return inner


def peer_of(connection: socket.socket) -> tuple[int, int]:
    """Process and user at the other end of a Unix socket, as this process sees them."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _SO_PEERCRED.size)
    pid, uid, _ = _SO_PEERCRED.unpack(raw)
    return pid, uid


def process_cpu_s(pid: int) -> float:
    """CPU time of a process so far, ended threads included. Raises OSError when it has gone."""
    return time.clock_gettime(~pid << 3 | _PROCESS_CPU_CLOCK)


def short_id() -> str:
    """Eight characters that no other lab of this machine has."""
    return secrets.token_hex(4)


class ProcessEnd:
    """Waits for the end of any process, not only of a child, by its pidfd(2)."""

    def __init__(self, fd: int | None) -> None:
        """Takes the descriptor over; without one the process has ended."""
        self._fd = fd

    @classmethod
    def of_peer(cls, connection: socket.socket) -> Self:
        """The process at the other end of a Unix socket: the one that listened, also if its number changed."""
        try:
            return cls(connection.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD))
        except OSError as error:
            if error.errno != errno.ENOPROTOOPT:
                return cls(None)
        try:  # before Linux 6.5
            return cls(os.pidfd_open(peer_of(connection)[0]))
        except ProcessLookupError:
            return cls(None)

    def close(self) -> None:
        """Waits no more. Twice is once."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def wait(self, timeout_s: float) -> bool:
        """True once the process has ended."""
        return self._fd is None or bool(select.select([self._fd], [], [], timeout_s)[0])

    def kill(self) -> None:
        """Ends the process at once."""
        if self._fd is not None:
            signal.pidfd_send_signal(self._fd, signal.SIGKILL)


def unmount(target: str) -> None:
    """Takes the topmost mount of a place away, umount(2). Raises OSError."""
    _checked(_libc.umount(target.encode()), f"umount {target}")
