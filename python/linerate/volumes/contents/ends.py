"""The two ends of a volume, addressed as the volume itself is."""

from __future__ import annotations

from dataclasses import dataclass

END_BYTES = 2 << 20
"""How much of each end is looked at: a VMFS volume says what it is just behind the first MiB."""


@dataclass(frozen=True, slots=True)
class VolumeEnds:
    """The first and the last bytes of a volume of `size_bytes`; they overlap on a short one."""

    first: bytes
    last: bytes
    size_bytes: int

    def at(self, offset: int, length: int) -> bytes:
        """`length` bytes from byte `offset` of the volume on; fewer where they are not known. Negative: from the
        end."""
        start = offset + self.size_bytes if offset < 0 else offset
        if start < 0:
            return b""
        if start < len(self.first):
            return self.first[start : start + length]
        near_end = start - (self.size_bytes - len(self.last))
        return self.last[near_end : near_end + length] if near_end >= 0 else b""

    def number(self, offset: int, length: int, *, big: bool = False) -> int:
        """An unsigned number of the volume, little-endian unless `big`; 0 where it is not known."""
        return int.from_bytes(self.at(offset, length), "big" if big else "little")
