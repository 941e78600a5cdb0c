"""A small HdrHistogram in plain Python: 3 significant digits, lowest value 1, V2 encoding.

Written from the published format description, so that the latency logs are checked by something other than
what writes them.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections import Counter

_HALF_BITS = 10  # 2048 sub-buckets give 3 significant digits
_HALF = 1 << _HALF_BITS
_COOKIE = 0x1C849313
_COOKIE_COMPRESSED = 0x1C849314
_HIGHEST = 3_600_000_000_000


def index_of(value: int) -> int:
    bucket = max(value.bit_length() - (_HALF_BITS + 1), 0)
    return ((bucket + 1) << _HALF_BITS) + (value >> bucket) - _HALF


def bounds_of(index: int) -> tuple[int, int]:
    bucket = (index >> _HALF_BITS) - 1
    sub = (index & (_HALF - 1)) + _HALF
    if bucket < 0:
        bucket, sub = 0, sub - _HALF
    return sub << bucket, ((sub + 1) << bucket) - 1


class PlainHistogram:
    """Counts nanoseconds by bucket index."""

    def __init__(self, counts: dict[int, int] | None = None) -> None:
        self._counts = Counter(counts or {})

    def record(self, value: int, count: int = 1) -> None:
        self._counts[index_of(value)] += count

    @property
    def count(self) -> int:
        return sum(self._counts.values())

    @property
    def min(self) -> int:
        return bounds_of(min(self._counts))[0] if self._counts else 0

    @property
    def max(self) -> int:
        return bounds_of(max(self._counts))[1] if self._counts else 0

    @property
    def mean(self) -> float:
        total = sum(sum(bounds_of(index)) / 2 * count for index, count in self._counts.items())
        return total / self.count if self._counts else 0.0

    def merge(self, other: PlainHistogram, /) -> None:
        self._counts.update(other._counts)

    def quantile(self, q: float, /) -> int:
        wanted = max(1, math.ceil(q * self.count))
        seen = 0
        for index in sorted(self._counts):
            seen += self._counts[index]
            if seen >= wanted:
                return bounds_of(index)[1]
        return 0

    def buckets(self) -> list[tuple[int, int, int]]:
        return [(*bounds_of(index), self._counts[index]) for index in sorted(self._counts)]

    def encode(self) -> bytes:
        payload = bytearray()
        next_index = 0
        for index, count in sorted(self._counts.items()):
            if index > next_index:
                payload += _zigzag(next_index - index)  # a run of zeros
            payload += _zigzag(count)
            next_index = index + 1
        head = struct.pack(">Iiiiqqd", _COOKIE, len(payload), 0, 3, 1, _HIGHEST, 1.0)
        packed = zlib.compress(head + bytes(payload))
        return struct.pack(">Ii", _COOKIE_COMPRESSED, len(packed)) + packed

    @classmethod
    def decode(cls, data: bytes) -> PlainHistogram:
        if struct.unpack_from(">I", data)[0] == _COOKIE_COMPRESSED:
            data = zlib.decompress(data[8:])
        cookie, length = struct.unpack_from(">Ii", data)
        assert cookie == _COOKIE
        counts: dict[int, int] = {}
        index = 0
        position = 40
        while position < 40 + length:
            value, position = _unzigzag(data, position)
            if value < 0:
                index -= value
            else:
                counts[index] = value
                index += 1
        return cls(counts)


def _zigzag(value: int) -> bytes:
    """ZigZag LEB128-64b9B: seven bits a byte, the ninth byte holds eight."""
    rest = (value << 1) ^ (value >> 63) if value >= 0 else ((-value) << 1) - 1
    out = bytearray()
    while rest >= 0x80 and len(out) < 8:
        out.append((rest & 0x7F) | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _unzigzag(data: bytes, position: int) -> tuple[int, int]:
    value = 0
    for place in range(9):
        byte = data[position]
        position += 1
        value |= (byte if place == 8 else byte & 0x7F) << (7 * place)
        if byte < 0x80:
            break
    return (value >> 1) ^ -(value & 1), position
