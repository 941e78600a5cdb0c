"""Whose settings are read and changed: this host, or a network namespace on it; and how to step inside.

A thread steps into the namespace and ends there: sockets that it opens and sysctl files that it reads belong
to that namespace, while the rest of the process stays where it was.
"""

from __future__ import annotations

import ctypes
import errno
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from linerate.errors import HostError

_CLONE_NEWNET = 0x40000000
_OWN_NAMESPACE = "/proc/thread-self/ns/net"
_libc = ctypes.CDLL(None, use_errno=True)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class HostTarget:
    """A host whose settings are read or changed.

    `name` is its name in messages and journals, `devices` are its ports to the SAN (p0, eth2), and
    `namespace` is a path that leads to its network namespace (/proc/123/fd/5, /run/netns/h1); None is the
    namespace of this process.
    """

    name: str
    devices: tuple[str, ...] = ()
    namespace: str | None = None

    def identity(self) -> tuple[int, int]:
        """Device and inode of the network namespace: the same while it exists, over every path to it.

        Raises HostError when the host has vanished.
        """
        try:
            found = os.stat(self.namespace or _OWN_NAMESPACE)
        except OSError as error:
            raise vanished(self) from error
        return found.st_dev, found.st_ino


def vanished(target: HostTarget) -> HostError:
    """The error of a namespace that is no longer there."""
    return HostError(
        f"host {target.name} has vanished: {target.namespace} is not a network namespace any more",
        "its settings went with it; bring the lab up again",
    )


def open_namespace(target: HostTarget) -> int:
    """A descriptor of the target's network namespace, to be closed by the caller. Raises HostError when it
    vanished."""
    try:
        return os.open(target.namespace or _OWN_NAMESPACE, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise vanished(target) from error


def inside(target: HostTarget, work: Callable[[], T]) -> T:
    """What `work` returns or raises when a thread of its own runs it inside the target's network namespace.

    An interrupt waits for `work` to end, so that nothing is changed behind the caller's back. Raises
    HostError when the namespace has vanished or may not be entered.
    """
    outcome: list[T] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            _enter(target)
            outcome.append(work())
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=run, name=f"inside {target.name}")
    thread.start()
    try:
        thread.join()
    except KeyboardInterrupt:
        thread.join()
        raise
    if failure:
        raise failure[0]
    return outcome[0]


def _enter(target: HostTarget) -> None:
    if target.namespace is None:
        return
    namespace = open_namespace(target)
    try:
        if _libc.setns(namespace, _CLONE_NEWNET) == 0:
            return
        number = ctypes.get_errno()
    finally:
        os.close(namespace)
    if number == errno.EPERM:
        raise HostError(
            f"host {target.name}: not allowed to enter {target.namespace}",
            "be root, or the user who made the lab inside its user namespace",
        )
    raise vanished(target)
