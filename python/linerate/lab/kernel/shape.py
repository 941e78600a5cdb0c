"""A line: HTB at its rate, and a buffer of bytes in front of it."""

from __future__ import annotations

import itertools
from typing import Any

from pyroute2 import IPRoute
from pyroute2.netlink.rtnl.tcmsg import plugins, sched_pfifo

# The library lacks bfifo, which differs from pfifo only in that its limit counts bytes.
plugins.setdefault("bfifo", sched_pfifo)

_ROOT = 0x1_0000
_LINE = 0x1_0001
_BUFFER = 0x10_0000

WIRE_OVERHEAD_BYTES = 24
"""Preamble, start of frame, checksum and gap: on the wire, but not in the packet that HTB measures."""
ETHERNET_HEADER_BYTES = 14
_LONGEST_FRAME_BYTES = 9216 + ETHERNET_HEADER_BYTES
_LEAST_BURST_BYTES = 15_000
"""More than the longest frame, and little enough that a line stays a line."""
_BURST_S = 20e-6
"""At high rates the burst covers the shaper's timer."""


def shape(route: IPRoute, index: int, rate_bits_per_s: float, buffer_bytes: int) -> None:
    """Makes an interface a line of this rate with a drop-tail buffer. Raises NetlinkError."""
    route.tc("add", "htb", index, _ROOT, default=_LINE & 0xFFFF)
    route.tc("add-class", "htb", index, _LINE, **_line(rate_bits_per_s))
    route.tc("add", "bfifo", index, _BUFFER, parent=_LINE, limit=buffer_bytes)


def change_rate(route: IPRoute, index: int, rate_bits_per_s: float) -> None:
    """Changes the line's rate; what waits in its buffer stays. Raises NetlinkError."""
    route.tc("change-class", "htb", index, _LINE, **_line(rate_bits_per_s))


def change_buffer(route: IPRoute, index: int, buffer_bytes: int) -> None:
    """Changes the buffer's size. Raises NetlinkError."""
    route.tc("change", "bfifo", index, _BUFFER, parent=_LINE, limit=buffer_bytes)


def _line(rate_bits_per_s: float) -> dict[str, Any]:
    rate_bytes_per_s = int(rate_bits_per_s / 8)
    burst_bytes = max(_LEAST_BURST_BYTES, int(rate_bytes_per_s * _BURST_S))
    return {
        "parent": _ROOT,
        "rate": rate_bytes_per_s,
        "ceil": rate_bytes_per_s,
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


def drops(route: IPRoute) -> dict[int, int]:
    """Packets that did not fit into a line's buffer so far, by interface."""
    buffers = (queue for queue in route.get_qdiscs() if queue.get_attr("TCA_KIND") == "bfifo")
    by_index = itertools.groupby(
        sorted(buffers, key=lambda queue: queue["index"]), lambda queue: queue["index"]
    )
    return {index: sum(queue.get_attr("TCA_STATS")["drop"] for queue in queues) for index, queues in by_index}
