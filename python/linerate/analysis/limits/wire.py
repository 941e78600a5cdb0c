"""Bytes of data and bytes on an Ethernet line, and the rate of a line in words."""

from __future__ import annotations

HEADERS_BYTES = 52  # IP and TCP, with the timestamp option, inside the MTU
FRAME_BYTES = 38  # Ethernet header, check sequence, preamble and gap, outside the MTU
MTU_USUAL_BYTES = 1500
MSS_USUAL_BYTES = MTU_USUAL_BYTES - HEADERS_BYTES


def on_wire(mtu_bytes: int) -> float:
    """Bytes on the line for each byte of TCP data, in full frames."""
    return (mtu_bytes + FRAME_BYTES) / (mtu_bytes - HEADERS_BYTES)


def line_rate_text(mbit_s: float) -> str:
    """The rate of a line, such as 10 Gbit/s."""
    return f"{mbit_s / 1000:g} Gbit/s" if mbit_s >= 1000 else f"{mbit_s:g} Mbit/s"
