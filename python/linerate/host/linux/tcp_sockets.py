"""What the kernel knows of the TCP connections of a network namespace: TCP_INFO by sock_diag.

Source: include/uapi/linux/inet_diag.h and tcp.h; every user may ask.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from pyroute2 import DiagSocket

# include/net/tcp_states.h: TCP_ESTABLISHED and TCP_LISTEN as bits.
ESTABLISHED, LISTEN = 1 << 1, 1 << 10
_EXTENSIONS = 1 << 1 | 1 << 6  # INET_DIAG_INFO is 2, INET_DIAG_SKMEMINFO is 7
_SNDBUF = 3  # SK_MEMINFO_SNDBUF of include/uapi/linux/sock_diag.h, an array of 32-bit numbers


@dataclass(frozen=True, slots=True)
class TcpSocket:
    """A TCP socket. The kernel never gives a cookie twice; `info` has the names of struct tcp_info (tcpi_rtt)."""

    cookie: int
    inode: int
    info: Any
    send_buffer_bytes: int
    """As auto-tuning has it now; the kernel's own memory for the data counts too."""


def tcp_sockets(
    states: int,
    which: Literal["idiag_sport", "idiag_dport"],
    port: int,
    family: socket.AddressFamily = socket.AF_INET,
) -> Iterator[TcpSocket]:
    """The sockets in those states with that port, in the namespace of the calling thread."""
    wanted = {which.removeprefix("idiag_"): port}  # the kernel leaves others out
    with contextlib.closing(DiagSocket()) as diag:
        for one in diag.get_sock_stats(family=family, states=states, extensions=_EXTENSIONS, **wanted):
            if one[which] == port and (info := one.get_attr("INET_DIAG_INFO")) is not None:
                yield TcpSocket(one["idiag_cookie"], one["idiag_inode"], info, _send_buffer_bytes(one))


def _send_buffer_bytes(one: Any) -> int:
    memory = bytes.fromhex((one.get_attr("INET_DIAG_SKMEMINFO") or "").replace(":", ""))
    numbers = memoryview(memory).cast("I")
    return numbers[_SNDBUF] if len(numbers) > _SNDBUF else 0
