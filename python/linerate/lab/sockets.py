"""What the arrays of a lab wait for as senders, from TCP_INFO.

An array in a lab sends what hosts read, so it alone knows what that sending waited for. Its connections are gone when
a load ends; `ArrayWaits` therefore looks twice a second while the load runs, and keeps what it saw of each.
"""

from __future__ import annotations

import contextlib
import threading
from functools import partial
from typing import TYPE_CHECKING, Self

from linerate.errors import HostError
from linerate.host import HostTarget, inside
from linerate.host.linux.tcp_sockets import ESTABLISHED, TcpSocket, tcp_sockets

if TYPE_CHECKING:
    from linerate.lab.lab import Lab

_PERIOD_S = 0.5
_WAITS = ("tcpi_busy_time", "tcpi_rwnd_limited", "tcpi_sndbuf_limited")
_COUNTERS = ("tcp_busy_us", "tcp_rwnd_limited_us", "tcp_sndbuf_limited_us")


class ArrayWaits:
    """Watches what the arrays of a lab wait for as senders, from `with` to its end."""

    def __init__(self, lab: Lab, arrays: tuple[str, ...]) -> None:
        self._targets = {name: HostTarget(name, (), lab.namespace(name).path) for name in arrays}
        self._ports = {array.name: array.service_port for array in lab.topology.arrays}
        self._seen: dict[tuple[str, int], tuple[int, ...]] = {}
        self._looking = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="array-waits", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def counters(self) -> dict[str, float]:
        """`array.NAME.tcp_busy_us`, `.tcp_rwnd_limited_us`, `.tcp_sndbuf_limited_us`: cumulative, all connections."""
        self._look()
        counted = dict.fromkeys(
            (f"array.{name}.{counter}" for name in self._targets for counter in _COUNTERS), 0.0
        )
        with self._looking:
            for (name, _), waits in self._seen.items():
                for counter, wait_us in zip(_COUNTERS, waits, strict=True):
                    counted[f"array.{name}.{counter}"] += wait_us
        return counted

    def _watch(self) -> None:
        while not self._over.wait(_PERIOD_S):
            # the lab may be going down: the request for counters reports it, not this thread
            with contextlib.suppress(HostError):
                self._look()

    def _look(self) -> None:
        with self._looking:
            for name, target in self._targets.items():
                found = inside(target, partial(_sending, self._ports[name]))
                for one in found:
                    self._seen[name, one.cookie] = tuple(one.info[field] for field in _WAITS)


def _sending(port: int) -> list[TcpSocket]:
    """The connections to a service of this namespace."""
    return list(tcp_sockets(ESTABLISHED, "idiag_sport", port))
