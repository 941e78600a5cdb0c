"""The short loads of a probe, as data: each answers one question about the path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Name = Literal["floor", "cached", "write_floor", "small", "large", "sessions", "connections", "write"]

SMALL_BYTES = 4096
LARGE_BYTES = 256 << 10
CACHED_BYTES = 64 << 10
"""So little of a volume that even slow disks have read it once before the measured time."""
SEVERAL = 4
"""Sessions, or connections of a session, that are compared with one."""
LARGE_OUTSTANDING = 16


@dataclass(frozen=True, slots=True)
class Trial:
    """One short load. `share` is its part of the time; `only_bytes` limits it to the start of the volume."""

    name: Name
    title: str
    size_bytes: int
    outstanding: int
    share: float
    is_random: bool = True
    is_write: bool = False
    only_bytes: int | None = None
    sessions: int = 1
    connections: int = 1

    @property
    def is_bulk(self) -> bool:
        """Whether it asks for a rate, not for a response time."""
        return self.size_bytes >= LARGE_BYTES


_READS = (
    Trial("floor", "4K random reads, depth 1", SMALL_BYTES, 1, 1.0),
    Trial("cached", "4K reads of the first 64 KiB, depth 1", SMALL_BYTES, 1, 0.5, only_bytes=CACHED_BYTES),
    Trial("small", "4K random reads, depth 32", SMALL_BYTES, 32, 1.0),
    Trial("large", "256K sequential reads", LARGE_BYTES, LARGE_OUTSTANDING, 2.0, is_random=False),
    Trial(
        "sessions",
        f"the same over {SEVERAL} sessions",
        LARGE_BYTES,
        LARGE_OUTSTANDING,
        1.5,
        is_random=False,
        sessions=SEVERAL,
    ),
    Trial(
        "connections",
        f"the same, {SEVERAL} connections (MC/S)",
        LARGE_BYTES,
        LARGE_OUTSTANDING,
        1.5,
        is_random=False,
        connections=SEVERAL,
    ),
)
_WRITES = (
    Trial("write_floor", "8K random writes, depth 1", 2 * SMALL_BYTES, 1, 1.0, is_write=True),
    Trial(
        "write",
        "256K sequential writes",
        LARGE_BYTES,
        LARGE_OUTSTANDING,
        2.0,
        is_random=False,
        is_write=True,
    ),
)


def trials(*, writes: bool) -> tuple[Trial, ...]:
    """The trials of a probe in their order; those that write come last and only where they are wanted."""
    return _READS + (_WRITES if writes else ())
