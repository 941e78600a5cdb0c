"""What is worth trying for each limit: a setting, and the study that shows what it brings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Limit = Literal[
    "mtu black hole",
    "loss",
    "delayed acknowledgement",
    "line",
    "window",
    "this host's CPU",
    "disks",
    "array",
    "round trip",
    "unknown",
]


@dataclass(frozen=True, slots=True)
class Hint:
    """A setting that is worth trying; without a study, a second probe shows what it brings."""

    setting: str
    study: str
    why: str


OWN_WINDOW_FIXED = Hint(
    "recv_buffer_bytes=auto-tuned", "dsn-sessions", "a fixed buffer turns the kernel's tuning off"
)
OWN_WINDOW_MOST = Hint(
    "receive_buffer_max_bytes",
    "nic-tuning",
    "the largest receive buffer of this host (net.ipv4.tcp_rmem here, third value)",
)
SEVERAL_SESSIONS = Hint("sessions_per_volume", "dsn-sessions", "each session has windows of its own")

JUMBO = "mtu=9000"
JUMBO_BYTES = 9000

HINTS: dict[Limit, tuple[Hint, ...]] = {
    "mtu black hole": (
        Hint("mtu", "mtu-offload", "the same MTU on host, every switch port and array; 1500 until then"),
        Hint("mtu=1500", "mtu-offload", "a frame that every device carries"),
    ),
    "loss": (
        Hint("flow_control", "flow-control", "frames wait in the sender instead of being dropped"),
        Hint("rx_ring_frames", "nic-tuning", "more receive buffers where the adapter drops"),
    ),
    "delayed acknowledgement": (
        Hint("nagle=off", "nagle", "small segments leave at once"),
        Hint("delayed_ack=off", "nic-tuning", "each segment is acknowledged at once"),
    ),
    "line": (
        Hint("multipath.paths", "mpio-layouts", "a second path adds a second line"),
        Hint(JUMBO, "mtu-offload", "up to 5 % less of the line for headers"),
        Hint("multipath.policy", "mpio-layouts", "I/Os in turn on all paths fill all lines"),
    ),
    "window": (OWN_WINDOW_FIXED, OWN_WINDOW_MOST),
    "this host's CPU": (
        Hint("rss", "nic-tuning", "interrupts of the adapter on several CPUs, and other programs elsewhere"),
        Hint(JUMBO, "mtu-offload", "fewer frames per byte"),
        Hint(
            "outstanding",
            "nic-tuning",
            "fewer I/Os in flight, if the response time counts more than the rate",
        ),
    ),
    "disks": (
        Hint("array.raid_level", "raid-levels", "fewer disk I/Os per host I/O"),
        Hint("array.disks", "raid-levels", "more disks, or faster ones"),
    ),
    "array": (
        Hint("sessions_per_volume", "dsn-sessions", "more of the array's threads per volume"),
        Hint("interrupt_moderation_us", "nic-tuning", "adapters that wait before they tell of a frame"),
    ),
    "round trip": (
        Hint("outstanding", "nic-tuning", "more I/Os in flight hide the round trip"),
        Hint("interrupt_moderation_us", "nic-tuning", "adapters that wait before they tell of a frame"),
    ),
    "unknown": (
        Hint("outstanding", "nic-tuning", "more I/Os in flight"),
        Hint("sessions_per_volume", "dsn-sessions", "more sessions per volume"),
    ),
}


def hints_for(limit: Limit, mtu_bytes: int) -> tuple[Hint, ...]:
    """Two settings to try on a path whose frames have up to so many bytes: larger ones are no news to it."""
    useful = [hint for hint in HINTS[limit] if hint.setting != JUMBO or mtu_bytes < JUMBO_BYTES]
    return tuple(useful[:2])
