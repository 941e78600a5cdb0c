"""A line: HTB at its rate, and a buffer of bytes in front of it."""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.rtnl.tcmsg import plugins, sched_pfifo

# The library lacks bfifo, which differs from pfifo only in that its limit counts bytes.
plugins.setdefault("bfifo", sched_pfifo)

_ROOT = 0x1_0000
_LINE = 0x1_0001
_BUFFER = 0x10_0000
_FIRST_CLASS = 0x10
ARRIVING, LEAVING = 0xFFFF_FFF2, 0xFFFF_FFF3
"""Where filters look at what an interface receives, and at what it sends."""
_LOSE_PRIORITY, _REDIRECT_PRIORITY = 1, 2
_NOTHING_FITS_BYTES = 1
_ETH_P_ALL = 0x0003
_ETH_P_IP = 0x0800
_DESTINATION_OFFSET = 16
"""Of the destination's address in an IPv4 header."""

WIRE_OVERHEAD_BYTES = 24
"""Preamble, start of frame, checksum and gap: on the wire, but not in the packet that HTB measures."""
ETHERNET_HEADER_BYTES = 14
_LONGEST_FRAME_BYTES = 9216 + ETHERNET_HEADER_BYTES
_LEAST_BURST_BYTES = 15_000
"""More than the longest frame, and little enough that a line stays a line."""
_QUANTA_BYTES = 60_000
"""Shared out among classes that borrow what others leave."""
_BURST_S = 20e-6
"""At high rates the burst covers the shaper's timer."""


@dataclass(frozen=True, slots=True)
class TrafficClass:
    """What has a buffer of its own on a line that several networks share."""

    subnet: str
    """Frames to these addresses belong to it; frames of no class go with the last one."""
    share: float
    """Of the line, 0 to 1, when all classes have something to send. What one leaves, the others may use."""
    rank: int = 0
    """Among classes that want more than their share, the lowest comes first."""


def shape(
    route: IPRoute,
    index: int,
    rate_bits_per_s: float,
    buffer_bytes: int,
    classes: Sequence[TrafficClass] = (),
) -> None:
    """Makes an interface a line of this rate with a drop-tail buffer, one for each class. Raises NetlinkError."""
    default = _FIRST_CLASS + len(classes) - 1 if classes else _LINE & 0xFFFF
    route.tc("add", "htb", index, _ROOT, default=default)
    change_rate(route, index, rate_bits_per_s, classes, command="add-class")
    for handle, parent in _buffers(classes):
        route.tc("add", "bfifo", index, handle, parent=parent, limit=buffer_bytes)
    for number, traffic in enumerate(classes):
        network = ipaddress.ip_network(traffic.subnet)
        key = f"{int(network.network_address):#010x}/{int(network.netmask):#010x}+{_DESTINATION_OFFSET}"
        target = _ROOT + _FIRST_CLASS + number
        route.tc(
            "add-filter", "u32", index, parent=_ROOT, prio=1, protocol=_ETH_P_IP, target=target, keys=[key]
        )


def change_rate(
    route: IPRoute,
    index: int,
    rate_bits_per_s: float,
    classes: Sequence[TrafficClass] = (),
    *,
    command: str = "change-class",
) -> None:
    """Changes the rate and the classes' shares; what waits in the buffers stays. Raises NetlinkError."""
    line = _line(rate_bits_per_s, rate_bits_per_s)
    route.tc(command, "htb", index, _LINE, parent=_ROOT, **line)
    for number, traffic in enumerate(classes):
        part = _line(traffic.share * rate_bits_per_s, rate_bits_per_s)
        part["quantum"] = max(_LONGEST_FRAME_BYTES, int(traffic.share * _QUANTA_BYTES))
        handle = _ROOT + _FIRST_CLASS + number
        route.tc(command, "htb", index, handle, parent=_LINE, prio=traffic.rank, **part)


def change_buffer(
    route: IPRoute, index: int, buffer_bytes: int, classes: Sequence[TrafficClass] = ()
) -> None:
    """Changes the size of the buffers. Raises NetlinkError."""
    for handle, parent in _buffers(classes):
        route.tc("change", "bfifo", index, handle, parent=parent, limit=buffer_bytes)


def _buffers(classes: Sequence[TrafficClass]) -> list[tuple[int, int]]:
    """Handle and parent of each buffer."""
    if not classes:
        return [(_BUFFER, _LINE)]
    return [(_BUFFER + (number << 16), _ROOT + _FIRST_CLASS + number) for number in range(len(classes))]


def redirect(route: IPRoute, index: int, line: int) -> None:
    """Sends the traffic of an interface through another one's line first. Raises NetlinkError."""
    route.tc("add", "clsact", index)
    _send_on(route, index, line, LEAVING, _REDIRECT_PRIORITY)


def swallow(route: IPRoute, index: int) -> None:
    """Makes an interface one that sends nothing of what it is given. Raises NetlinkError."""
    route.tc("add", "bfifo", index, _ROOT, limit=_NOTHING_FITS_BYTES)


def lose(route: IPRoute, index: int, hole: int, way: int) -> None:
    """Drops the traffic that an interface receives (ARRIVING) or sends (LEAVING). Raises NetlinkError."""
    with contextlib.suppress(NetlinkError):  # it has it already
        route.tc("add", "clsact", index)
    _send_on(route, index, hole, way, _LOSE_PRIORITY)


def lose_no_more(route: IPRoute, index: int, way: int) -> None:
    """Takes back what `lose` did. Raises NetlinkError."""
    _filter_all("del-filter", route, index, way, _LOSE_PRIORITY)


def _send_on(route: IPRoute, index: int, to: int, way: int, priority: int) -> None:
    action = {"kind": "mirred", "direction": "egress", "action": "redirect", "ifindex": to}
    _filter_all("add-filter", route, index, way, priority, action=action)


def _filter_all(command: str, route: IPRoute, index: int, way: int, priority: int, **more: Any) -> None:
    """A filter that takes every frame."""
    every = {"protocol": _ETH_P_ALL, "target": _LINE, "keys": ["0x0/0x0+0"]}
    route.tc(command, "u32", index, parent=way, prio=priority, **every, **more)


def _line(rate_bits_per_s: float, ceil_bits_per_s: float) -> dict[str, Any]:
    ceil_bytes_per_s = int(ceil_bits_per_s / 8)
    burst_bytes = max(_LEAST_BURST_BYTES, int(ceil_bytes_per_s * _BURST_S))
    return {
        "rate": max(1, int(rate_bits_per_s / 8)),
        "ceil": ceil_bytes_per_s,
        "burst": burst_bytes,
        "cburst": burst_bytes,
        "overhead": WIRE_OVERHEAD_BYTES,
        "quantum": _LONGEST_FRAME_BYTES,
        "mtu": _LONGEST_FRAME_BYTES,
    }


def read_rate(route: IPRoute, index: int) -> float:
    """The line's rate in bits per second as the kernel has it."""
    for line in route.get_classes(index=index):
        if line["handle"] == _LINE:
            parameters = line.get_attr("TCA_OPTIONS")
            rate = parameters.get_attr("TCA_HTB_RATE64") or parameters.get_attr("TCA_HTB_PARMS")["rate"]
            return float(rate) * 8
    raise LookupError(f"interface {index} has no line")


@dataclass(frozen=True, slots=True)
class Buffer:
    """What a line's buffer has done and holds."""

    drops: int = 0
    """Packets that did not fit, so far."""
    queued_bytes: int = 0
    """Bytes that wait now."""


EMPTY = Buffer()


def buffers(route: IPRoute) -> dict[int, Buffer]:
    """The buffers of a line as one, by interface."""
    found: dict[int, Buffer] = {}
    for queue in route.get_qdiscs():
        if queue.get_attr("TCA_KIND") == "bfifo":
            stats, known = queue.get_attr("TCA_STATS"), found.get(queue["index"], EMPTY)
            found[queue["index"]] = Buffer(known.drops + stats["drop"], known.queued_bytes + stats["backlog"])
    return found
