"""The largest frame that arrives: echoes with "do not fragment" set, from small to large.

A router whose next link is too narrow should answer "fragmentation needed" (RFC 1191, RFC 8201). Where that answer is
missing, large frames vanish and connections that send them stall: a black hole (RFC 4821).
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import time
from dataclasses import dataclass
from typing import Any, Literal

from linerate.results.environment import route_to

SIZES_BYTES = (576, 1280, 1400, 1450, 1492, 1500, 2000, 4000, 8000, 9000)
"""IP packet sizes that are tried below the MTU of the port: usual MTUs, and those of tunnels."""
ANSWER_S = 0.5
TRIES = 3
_IP_BYTES = {socket.AF_INET: 20, socket.AF_INET6: 40}
_ECHO = struct.Struct("!BBHHH")
_ECHO_REQUEST = {socket.AF_INET: 8, socket.AF_INET6: 128}
_IP_MTU_DISCOVER = 10  # linux/in.h; the socket module has no name for it
_IPV6_MTU_DISCOVER = 23  # linux/in6.h
_PMTUDISC_PROBE = 3  # "do not fragment" always, also if the kernel has learnt otherwise of the path

Fate = Literal["arrived", "too large", "lost"]


@dataclass(frozen=True, slots=True)
class FrameSizes:
    """What became of IP packets of several sizes. Sizes in bytes with the IP header, ascending; rtt in ms."""

    port_mtu_bytes: int | None = None
    arrived: tuple[int, ...] = ()
    refused: tuple[int, ...] = ()
    """A router, or this host, said that they are too large: TCP learns the right size from that."""
    lost: tuple[int, ...] = ()
    """No answer of any kind, while smaller ones were answered."""
    rtt_ms: float | None = None
    why_not: str = ""
    """Why nothing was tried."""

    @property
    def largest_bytes(self) -> int | None:
        """Largest that arrived."""
        return max(self.arrived, default=None)

    @property
    def has_black_hole(self) -> bool:
        """Whether all sizes above one that arrives got no answer at all."""
        return bool(self.lost) and bool(self.arrived) and min(self.lost) > max(self.arrived)


def frame_sizes(host: str, port_mtu_bytes: int | None) -> FrameSizes:
    """Tries all sizes up to the port's MTU. Never raises: `why_not` says why nothing was found."""
    try:
        with _Echo(host) as echo:
            return _ladder(echo, port_mtu_bytes)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        return FrameSizes(port_mtu_bytes, why_not=f"no echo could be sent: {reason}")


def _ladder(echo: _Echo, port_mtu_bytes: int | None) -> FrameSizes:
    most = port_mtu_bytes or max(SIZES_BYTES)
    sizes = sorted({size for size in SIZES_BYTES if size < most} | {min(most, 65_535)})
    fates: dict[int, Fate] = {}
    for size in sizes:
        fates[size] = echo.fate(size)
        if size == sizes[0] and fates[size] == "lost":
            return FrameSizes(port_mtu_bytes, why_not="the array answers no echo (ping)")
    by_fate = {fate: tuple(size for size in sizes if fates[size] == fate) for fate in fates.values()}
    return FrameSizes(
        port_mtu_bytes,
        by_fate.get("arrived", ()),
        by_fate.get("too large", ()),
        by_fate.get("lost", ()),
        echo.rtt_ms,
    )


class _Echo:
    """ICMP echoes to one host, over a ping socket (`net.ipv4.ping_group_range`), or a raw one for root."""

    def __init__(self, host: str) -> None:
        route = route_to(host)
        self._family = route.family
        self._address: tuple[Any, ...] = (route.address[0], 0, *route.address[2:])  # an echo has no port
        is_v4 = self._family == socket.AF_INET
        protocol = socket.IPPROTO_ICMP if is_v4 else socket.getprotobyname("ipv6-icmp")
        try:
            self._socket = socket.socket(self._family, socket.SOCK_DGRAM, protocol)
            self._is_raw = False
        except OSError:
            self._socket = socket.socket(self._family, socket.SOCK_RAW, protocol)
            self._is_raw = True
        level, option = (
            (socket.IPPROTO_IP, _IP_MTU_DISCOVER) if is_v4 else (socket.IPPROTO_IPV6, _IPV6_MTU_DISCOVER)
        )
        self._socket.setsockopt(level, option, _PMTUDISC_PROBE)
        self._sequence = 0
        self.rtt_ms: float | None = None

    def __enter__(self) -> _Echo:
        self._socket.connect(self._address)
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def fate(self, size_bytes: int) -> Fate:
        """What becomes of a packet of this size; lost only after several tries."""
        for _ in range(TRIES):
            fate = self._once(size_bytes)
            if fate != "lost":
                return fate
        return "lost"

    def _once(self, size_bytes: int) -> Fate:
        self._sequence += 1
        began = time.monotonic()
        try:
            self._socket.send(self._packet(size_bytes))
            while (left_s := began + ANSWER_S - time.monotonic()) > 0:
                self._socket.settimeout(left_s)
                if self._is_answer(self._socket.recv(65_535)):
                    self._keep(1000 * (time.monotonic() - began))
                    return "arrived"
        except TimeoutError:
            pass
        except OSError as error:
            if error.errno == errno.EMSGSIZE:
                return "too large"
            raise
        return "lost"

    def _packet(self, size_bytes: int) -> bytes:
        payload = bytes(max(0, size_bytes - _IP_BYTES[self._family] - _ECHO.size))
        identifier = os.getpid() & 0xFFFF
        kind = _ECHO_REQUEST[self._family]
        packet = _ECHO.pack(kind, 0, 0, identifier, self._sequence) + payload
        if self._family == socket.AF_INET:
            packet = _ECHO.pack(kind, 0, _checksum(packet), identifier, self._sequence) + payload
        return packet  # of ICMPv6, and of ping sockets, the kernel makes the checksum

    def _is_answer(self, packet: bytes) -> bool:
        if self._is_raw and self._family == socket.AF_INET:
            packet = packet[4 * (packet[0] & 0xF) :]
        if len(packet) < _ECHO.size:
            return False
        kind, _, _, identifier, sequence = _ECHO.unpack_from(packet)
        is_mine = not self._is_raw or identifier == os.getpid() & 0xFFFF
        return kind in (0, 129) and sequence == self._sequence & 0xFFFF and is_mine

    def _keep(self, took_ms: float) -> None:
        self.rtt_ms = took_ms if self.rtt_ms is None else min(self.rtt_ms, took_ms)


def _checksum(packet: bytes) -> int:
    """RFC 1071."""
    words = struct.unpack(f"!{len(packet) // 2}H", packet[: len(packet) & ~1])
    total: int = sum(words) + (packet[-1] << 8 if len(packet) % 2 else 0)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
