"""CPU time of the kernel threads that receive for a namespace's interfaces.

The kernel numbers what polls an interface (generic netlink family `netdev`), and names the thread that does it
`napi/INTERFACE-NUMBER`. Where it does neither, or hides its threads from a container, nothing is told here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pyroute2.netlink import NLM_F_DUMP, NLM_F_REQUEST, genlmsg
from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.generic import GenericNetlinkSocket

from linerate.lab.supervisor.nodes import NodeNamespace

_FAMILY = "netdev"
_NAPI_GET = 11
_VERSION = 1
_NS = 1e-9


class _Napi(genlmsg):  # type: ignore[misc]  # the library is untyped
    nla_map = (
        ("NETDEV_A_NAPI_UNSPEC", "none"),
        ("NETDEV_A_NAPI_IFINDEX", "uint32"),
        ("NETDEV_A_NAPI_ID", "uint32"),
    )


class ReceiveThreads:
    """The receive threads of all nodes."""

    def __init__(self, nodes: Mapping[str, NodeNamespace]) -> None:
        self._sockets = {name: _socket(node) for name, node in nodes.items()}
        self._threads: dict[int, int] = {}
        """Process id by number."""

    def cpu_s(self) -> dict[str, float]:
        """CPU seconds of the receive threads of each node so far."""
        numbers = {name: _numbers(channel) if channel else [] for name, channel in self._sockets.items()}
        if any(number not in self._threads for node in numbers.values() for number in node):
            self._threads = _threads()
        return {name: sum(self._used_ns(number) for number in node) * _NS for name, node in numbers.items()}

    def _used_ns(self, number: int) -> int:
        if (pid := self._threads.get(number)) is None:
            return 0
        try:
            return int(Path(f"/proc/{pid}/schedstat").read_bytes().split()[0])
        except OSError:
            return 0


def _socket(node: NodeNamespace) -> GenericNetlinkSocket | None:
    with node.visit():
        try:
            channel = GenericNetlinkSocket()
            channel.bind(_FAMILY, _Napi)
        except NetlinkError:
            return None
        return channel


def _numbers(channel: GenericNetlinkSocket) -> list[int]:
    request = _Napi()
    request["cmd"], request["version"] = _NAPI_GET, _VERSION
    answers = channel.nlm_request(request, msg_type=channel.prid, msg_flags=NLM_F_REQUEST | NLM_F_DUMP)
    return [answer.get_attr("NETDEV_A_NAPI_ID") for answer in answers]


def _threads() -> dict[int, int]:
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            name = Path(f"/proc/{pid}/comm").read_text().strip()
        except OSError:
            continue  # ended meanwhile
        if name.startswith("napi/"):
            found[int(name.rpartition("-")[2])] = int(pid)
    return found
