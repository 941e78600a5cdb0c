"""What the kernel says of a trial's TCP connections (TCP_INFO): windows, round trip, what their sending waited for."""

from __future__ import annotations

import os
import re
import socket
import struct
import time
from dataclasses import dataclass, field
from statistics import mean

from pyroute2.netlink.exceptions import NetlinkError

from linerate.host.linux.tcp_sockets import ESTABLISHED, TcpSocket, tcp_sockets

_SOCKET = re.compile(r"socket:\[(\d+)\]")
_DESCRIPTORS = "/proc/self/fd"
_TIMESTAMPS = 1  # TCPI_OPT_TIMESTAMPS of include/uapi/linux/tcp.h


@dataclass(frozen=True, slots=True)
class TcpState:
    """Connections of a trial: means of one connection, sums where the name says so. MB are 10^6 bytes.

    Windows limit what is on the way without an acknowledgement: data to the array by the congestion window of this
    host and the array's receive window, data to this host by the array's congestion window, which only the array
    knows, and this host's receive window. Shares of waiting are of the time with data to send.
    """

    connections: int
    mss_bytes: int
    rtt_ms: float
    """Smoothed."""
    receive_rtt_ms: float | None
    """From an acknowledgement of this host to the data that it let pass; None without TCP timestamps."""
    congestion_window_bytes: int
    receive_window_bytes: int
    """The most that this host lets the array send (tcpi_rcv_ssthresh)."""
    receive_space_bytes: int
    """What the receiver's auto-tuning counts with per round trip (tcpi_rcv_space)."""
    peer_window_bytes: int
    """The most that the array lets this host send; 0 on kernels that do not tell (before 5.4)."""
    send_buffer_bytes: int
    """Of this host, as auto-tuning had it at the end."""
    delivery_mb_s: float | None
    """Of all connections to the array; None while no connection had more to send than its window."""
    busy_percent: float
    """Time with data to send, of the trial."""
    rwnd_limited_percent: float
    """Of that: time in which the array's receive window was full."""
    sndbuf_limited_percent: float
    """Of that: time in which this host's send buffer was full."""


@dataclass(slots=True)
class _Looks:
    """One connection, over all looks at it."""

    last: TcpSocket
    cwnd_bytes: list[int] = field(default_factory=list)
    peer_window_bytes: int = 0
    delivery_bytes_s: int | None = None

    def add(self, one: TcpSocket) -> None:
        info = one.info
        self.last = one
        self.cwnd_bytes.append(info["tcpi_snd_cwnd"] * info["tcpi_snd_mss"])
        self.peer_window_bytes = max(self.peer_window_bytes, info.get("tcpi_snd_wnd") or 0)
        if not info["tcpi_delivery_rate_app_limited"] and info["tcpi_delivery_rate"]:
            self.delivery_bytes_s = info["tcpi_delivery_rate"]


class TcpWatch:
    """Looks at this process's connections to a portal, whose address decides about IPv4 or IPv6."""

    def __init__(self, address: str, port: int) -> None:
        self._family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._port = port
        self._began_s = time.monotonic()
        self._last_s = self._began_s
        self._seen: dict[int, _Looks] = {}

    def look(self) -> None:
        """Asks the kernel once. Does nothing on a kernel without sock_diag."""
        try:
            mine = _own_inodes()
            found = [
                one
                for one in tcp_sockets(ESTABLISHED, "idiag_dport", self._port, self._family)
                if one.inode in mine
            ]
        except (OSError, NetlinkError, struct.error):
            return
        self._keep(found, time.monotonic())

    def _keep(self, found: list[TcpSocket], now_s: float) -> None:
        for one in found:
            self._seen.setdefault(one.cookie, _Looks(one)).add(one)
            self._last_s = now_s

    @property
    def needless_retransmits(self) -> int:
        """Segments of all connections that this host sent again although the array had got them (DSACK, RFC 2883)."""
        return sum(looks.last.info.get("tcpi_dsack_dups") or 0 for looks in self._seen.values())

    def state(self) -> TcpState | None:
        """What was seen; None without any connection."""
        if not self._seen:
            return None
        all_looks = list(self._seen.values())
        infos = [looks.last.info for looks in all_looks]
        busy_us = sum(info["tcpi_busy_time"] for info in infos)
        watched_us = max(1.0, 1e6 * (self._last_s - self._began_s)) * len(infos)
        sent = [looks.delivery_bytes_s for looks in all_looks if looks.delivery_bytes_s is not None]
        has_timestamps = all(info["tcpi_options"] & _TIMESTAMPS for info in infos)
        return TcpState(
            connections=len(infos),
            mss_bytes=min(info["tcpi_snd_mss"] for info in infos),
            rtt_ms=mean(info["tcpi_rtt"] for info in infos) / 1000,
            receive_rtt_ms=mean(info["tcpi_rcv_rtt"] for info in infos) / 1000 if has_timestamps else None,
            congestion_window_bytes=round(mean(mean(looks.cwnd_bytes) for looks in all_looks)),
            receive_window_bytes=round(mean(info["tcpi_rcv_ssthresh"] for info in infos)),
            receive_space_bytes=round(mean(info["tcpi_rcv_space"] for info in infos)),
            peer_window_bytes=round(mean(looks.peer_window_bytes for looks in all_looks)),
            send_buffer_bytes=round(mean(looks.last.send_buffer_bytes for looks in all_looks)),
            delivery_mb_s=sum(sent) / 1e6 if sent else None,
            busy_percent=min(100.0, 100 * busy_us / watched_us),
            rwnd_limited_percent=100 * sum(info["tcpi_rwnd_limited"] for info in infos) / max(1, busy_us),
            sndbuf_limited_percent=100 * sum(info["tcpi_sndbuf_limited"] for info in infos) / max(1, busy_us),
        )


def _own_inodes() -> set[int]:
    """Inodes of the sockets that this process has open."""
    inodes = set()
    for name in os.listdir(_DESCRIPTORS):
        try:
            found = _SOCKET.fullmatch(os.readlink(f"{_DESCRIPTORS}/{name}"))
        except OSError:
            continue  # closed since it was listed
        if found:
            inodes.add(int(found[1]))
    return inodes
