"""The one place where reports meet the compiled histogram.

A histogram counts nanoseconds in HDR buckets (3 digits). Python never recomputes quantiles: it merges and
asks. `LatencyHistogram` names what the rest of the lab plane may ask of one; `decode` turns the bytes of a latency
log back into one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol


class LatencyHistogram(Protocol):
    """Counts of latencies in nanoseconds."""

    @property
    def count(self) -> int:
        """Values recorded."""

    @property
    def min(self) -> int:
        """Smallest value in nanoseconds; 0 when empty."""

    @property
    def max(self) -> int:
        """Largest value in nanoseconds; 0 when empty."""

    @property
    def mean(self) -> float:
        """Mean in nanoseconds; 0 when empty."""

    def merge(self, other: Any, /) -> None:
        """Add the counts of `other` to this histogram."""

    def quantile(self, q: float, /) -> int:
        """Value in nanoseconds that the share `q` (0 to 1) of the values does not exceed."""

    def encode(self) -> bytes:
        """The HdrHistogram V2 encoding, compressed or not."""

    def buckets(self) -> Sequence[tuple[int, int, int]]:
        """Non-empty buckets as (lowest value, highest value, count), values in nanoseconds, ascending."""


def compiled_decoder() -> Callable[[bytes], LatencyHistogram]:
    """The decoder of the compiled module: V2 bytes in, histogram out."""
    from linerate._core import Histogram as Compiled  # the only import of the data plane below `report`

    return Compiled.decode


def decode(data: bytes) -> LatencyHistogram:
    """Turn HdrHistogram V2 bytes into a histogram."""
    return compiled_decoder()(data)


def merged(histograms: Iterable[LatencyHistogram]) -> LatencyHistogram | None:
    """A new histogram with the counts of all; None when there are none. The arguments stay as they are."""
    total: LatencyHistogram | None = None
    for histogram in histograms:
        if total is None:
            total = decode(histogram.encode())
        else:
            total.merge(_in_memory(histogram))
    return total


def _in_memory(histogram: LatencyHistogram) -> LatencyHistogram:
    """What a compiled histogram can merge."""
    return histogram.decoded() if isinstance(histogram, EncodedHistogram) else histogram


class EncodedHistogram:
    """A histogram that stays in its encoded form: a few kilobytes in place of some hundred. Each question decodes it.

    For histograms of many hosts, most of which are only written to a file as they came.
    """

    def __init__(self, data: bytes, count: int) -> None:
        """HdrHistogram V2 bytes, and the number of values in them."""
        self._data = data
        self._count = count

    def decoded(self) -> LatencyHistogram:
        """A histogram of the compiled module. Raises UserError for other bytes."""
        return decode(self._data)

    def encode(self) -> bytes:
        """See `LatencyHistogram`."""
        return self._data

    @property
    def count(self) -> int:
        """See `LatencyHistogram`."""
        return self._count

    @property
    def min(self) -> int:
        """See `LatencyHistogram`."""
        return self.decoded().min

    @property
    def max(self) -> int:
        """See `LatencyHistogram`."""
        return self.decoded().max

    @property
    def mean(self) -> float:
        """See `LatencyHistogram`."""
        return self.decoded().mean

    def merge(self, other: Any, /) -> None:
        """See `LatencyHistogram`."""
        total = self.decoded()
        total.merge(_in_memory(other))
        self._data, self._count = total.encode(), total.count

    def quantile(self, q: float, /) -> int:
        """See `LatencyHistogram`."""
        return self.decoded().quantile(q)

    def buckets(self) -> Sequence[tuple[int, int, int]]:
        """See `LatencyHistogram`."""
        return self.decoded().buckets()
