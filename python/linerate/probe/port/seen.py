"""The adapters and bonds below a port, and what they counted during the trials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class AdapterSeen:
    """An adapter. None where its driver does not say; counts are of the time of the trials."""

    device: str
    rx_ring_frames: int | None = None
    rx_ring_frames_most: int | None = None
    rx_queues: int | None = None
    rx_queues_most: int | None = None
    unbuffered_frames: int = 0
    """Received frames that found no free buffer, in all trials."""
    queue_frames: tuple[int, ...] = ()
    """Received frames of each queue, in the trials of several connections; empty if the driver does not count."""


@dataclass(frozen=True, slots=True)
class BondSeen:
    """A bond of several ports, by the names of the kernel's bonding driver."""

    device: str
    mode: str
    hash_policy: str
    active_slave: str
    """Of the mode active-backup and its like, else empty."""
    slaves: tuple[str, ...]
    received_bytes: Mapping[str, int] = field(default_factory=dict)
    """By slave, while one session read."""
    sent_bytes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PortSeen:
    """All below one port."""

    cpus: int
    """Of this host."""
    connections: int
    """TCP connections of the trials that `queue_frames` counts."""
    adapters: tuple[AdapterSeen, ...] = ()
    bonds: tuple[BondSeen, ...] = ()
