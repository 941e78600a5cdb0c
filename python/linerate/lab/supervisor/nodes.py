"""Nodes: the network namespaces of a lab. They have no names; they live as long as the supervisor's descriptors do."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, Self

from pyroute2 import IPRoute

from linerate.errors import HostError
from linerate.lab import system

Kind = Literal["control", "host", "array", "switch"]

DEFAULTS: Mapping[str, str] = {
    # The kernel's own default differs from machine to machine, and bbr floods shallow buffers.
    "net.ipv4.tcp_congestion_control": "reno",
    # A run must not start with what the one before it learned about the path.
    "net.ipv4.tcp_no_metrics_save": "1",
    # Each port answers for its own address only, and several may be in one network.
    "net.ipv4.conf.all.arp_ignore": "1",
    "net.ipv4.conf.all.arp_announce": "2",
    "net.ipv4.conf.all.rp_filter": "0",
    "net.ipv4.conf.default.rp_filter": "0",
    # No address detection, no multicast: nothing is on the wire but what is measured.
    "net.ipv6.conf.all.disable_ipv6": "1",
    "net.ipv6.conf.default.disable_ipv6": "1",
}
"""Set in every namespace; keys that a kernel lacks are left out and so are missing from the facts."""


class NodeNamespace:
    """A network namespace that this process has made, and a netlink socket inside it."""

    def __init__(self, name: str, kind: Kind, home_fd: int | None) -> None:
        """Makes the namespace; the thread stays in it unless it has a home to return to."""
        self.name = name
        self.kind = kind
        try:
            self.fd = system.new_network()
        except OSError as error:
            raise HostError(
                f"cannot make a network namespace for {name}: {error}", "see `linerate lab probe`"
            ) from error
        self.home_fd = self.fd if home_fd is None else home_fd
        self.route = IPRoute()
        self.route.link("set", index=1, state="up")
        for key, value in DEFAULTS.items():
            write_sysctl(key, value)
        self._return()

    @contextmanager
    def visit(self) -> Iterator[None]:
        """The calling thread is inside the node meanwhile."""
        system.setns(self.fd, system.CLONE_NEWNET)
        try:
            yield
        finally:
            self._return()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Gives the namespace up; with its last descriptor the kernel removes it and everything in it."""
        self.route.close()
        os.close(self.fd)

    def _return(self) -> None:
        system.setns(self.home_fd, system.CLONE_NEWNET)

    def index(self, interface: str) -> int:
        """The number of an interface. Raises OSError when there is none of that name."""
        with self.visit():
            return socket.if_nametoindex(interface)

    def carries(self, index: int) -> bool:
        """An interface is up at both ends, and the kernel has taken note of it."""
        (state,) = self.route.get_links(index)
        return state.get_attr("IFLA_OPERSTATE") in ("UP", "UNKNOWN")  # TAPs have no other state

    def sysctl(self, key: str) -> str | None:
        """A kernel setting as it is in this namespace; None where it does not exist."""
        with self.visit():
            path = _sysctl_path(key)
            return path.read_text().strip() if path.exists() else None


def write_sysctl(key: str, value: str) -> bool:
    """Sets a kernel setting of the namespace that the thread is in; False where the kernel lacks or refuses it."""
    try:
        _sysctl_path(key).write_text(value)
    except OSError:
        return False
    return True


def _sysctl_path(key: str) -> Path:
    return Path("/proc/sys") / key.replace(".", "/")
