"""How far the monotonic clocks of two hosts are apart, by asking for the time and timing the answer.

The answer was made at some moment between asking and receiving, so the middle is wrong by half of the round trip at
most. The shortest round trip of several gives the tightest bound (Cristian 1989).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

ASKED = 20
"""Round trips from which the shortest is taken."""
UNCERTAINTY_MAX_NS = 5_000_000
"""Hosts whose clock is known less well are refused: their intervals could not be laid over each other."""
APART_MAX_NS = UNCERTAINTY_MAX_NS
"""A clock that has moved further from this machine's during a run has laid its intervals beside those of others."""


@dataclass(frozen=True, slots=True)
class Offset:
    """The remote clock shows the local time plus `offset_ns`, give or take `uncertainty_ns`."""

    offset_ns: int
    uncertainty_ns: int
    round_trip_ns: int
    """Median of all that were timed."""

    def remote(self, local_ns: int) -> int:
        """What the remote clock shows when the local one shows `local_ns`."""
        return local_ns + self.offset_ns


def best_offset(samples: Iterable[tuple[int, int, int]]) -> Offset:
    """From (asked, remote time, answered), in ns of the local, the remote and the local clock. Needs at least one."""
    timed = sorted((answered - asked, asked, remote) for asked, remote, answered in samples)
    shortest_ns, asked, remote = timed[0]
    half_ns = (shortest_ns + 1) // 2
    return Offset(remote - asked - half_ns, half_ns, timed[len(timed) // 2][0])


@dataclass(frozen=True, slots=True)
class Drift:
    """How far a clock has moved from the local one since an earlier offset: `moved_ns`, give or take `doubt_ns`."""

    moved_ns: int
    doubt_ns: int

    @classmethod
    def between(cls, before: Offset, after: Offset) -> Drift:
        """From two offsets of one host."""
        return cls(after.offset_ns - before.offset_ns, before.uncertainty_ns + after.uncertainty_ns)

    @property
    def is_too_far(self) -> bool:
        """Surely further than `APART_MAX_NS`."""
        return abs(self.moved_ns) - self.doubt_ns > APART_MAX_NS

    @property
    def is_decided(self) -> bool:
        """Surely further than that, or surely not."""
        return self.is_too_far or abs(self.moved_ns) + self.doubt_ns <= APART_MAX_NS
