"""The I/Os of a trace while it is read, and the compact file that the data plane replays.

An I/O takes 24 bytes in memory while the trace is read, and 24 bytes in the file.
"""

from __future__ import annotations

import tempfile
import weakref
from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from linerate.errors import HostError, UserError
from linerate.workload.spec import IO_BYTES_MAX, TIME_S_MAX

READ, WRITE = 0, 1
SECTOR_BYTES = 512
BLOCK_BYTES = 4096
"""The largest block of a volume."""
_RECORD = np.dtype([("at_ns", "<u8"), ("offset", "<u8"), ("bytes", "<u4"), ("write", "<u4")])
_OFFSET_MAX = 1 << 62
_NS_MAX = 1 << 62
_NS = 1_000_000_000


class RecordError(ValueError):
    """A line that is no I/O of a trace: what is wrong, and after a semicolon what is right."""


def whole_number(word: str, what: str) -> int:
    """A number of a line. Raises RecordError."""
    if not (word.isascii() and word.isdigit()) or len(word) > 20:
        raise RecordError(f"{what} {word[:40]!r}; write a whole number, not below 0")
    return int(word)


@dataclass(slots=True)
class Records:
    """I/Os in the order of the file. left_out: events that are not replayed, by kind."""

    devices: dict[str, int] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    at_ns: array[int] = field(default_factory=lambda: array("q"))
    offset: array[int] = field(default_factory=lambda: array("Q"))
    bytes: array[int] = field(default_factory=lambda: array("I"))
    kind: array[int] = field(default_factory=lambda: array("I"))
    """Index of the device times two, plus 1 for a write."""

    def add(self, device: str, at_ns: int, offset: int, size_bytes: int, direction: int) -> None:
        """Adds a read or write. Raises RecordError for numbers that no I/O has."""
        if not 0 <= offset < _OFFSET_MAX:
            raise RecordError(f"offset {offset:,}; from 0 to 4 EiB")
        if not 0 < size_bytes <= IO_BYTES_MAX:
            raise RecordError(f"length {size_bytes:,}; from 1 byte to 1 GiB")
        if not 0 <= at_ns < _NS_MAX:
            raise RecordError("a time before 0 or after 146 years; count from the start of the trace")
        self.at_ns.append(at_ns)
        self.offset.append(offset)
        self.bytes.append(size_bytes)
        self.kind.append(self.devices.setdefault(device, len(self.devices)) * 2 + direction)


@dataclass(frozen=True, slots=True)
class Direction:
    """The reads or the writes of a device. largest_bytes: in whole blocks of any size up to 4 KiB."""

    ios: int
    bytes: int
    first_byte: int
    end_byte: int
    largest_bytes: int


@dataclass(frozen=True, slots=True)
class DeviceTrace:
    """The I/Os of one device in the compiled file. Times in ns since the first I/O of the trace."""

    name: str
    first_io: int
    reads: Direction
    writes: Direction
    last_ns: int
    unaligned: Mapping[int, int]
    """I/Os that are not whole blocks, by the size of a block in bytes."""

    @property
    def ios(self) -> int:
        """Reads and writes."""
        return self.reads.ios + self.writes.ios

    @property
    def end_byte(self) -> int:
        """Where the last byte that is used ends."""
        return max(self.reads.end_byte, self.writes.end_byte)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class CompiledTrace:
    """A trace as the data plane takes it. The file has no name: it is gone when this object is."""

    devices: tuple[DeviceTrace, ...]
    duration_ns: int
    peak_ios: int
    """The most I/Os within one recorded second."""
    left_out: Mapping[str, int]
    moved: int
    """I/Os that came before an earlier line's."""
    notes: tuple[str, ...]
    file: IO[bytes]

    @property
    def ios(self) -> int:
        """Of all devices."""
        return sum(device.ios for device in self.devices)

    @property
    def path(self) -> str:
        """Where this process opens the compiled file."""
        return f"/proc/self/fd/{self.file.fileno()}"

    def beyond(self, device: DeviceTrace, size_bytes: int) -> int:
        """I/Os of a device that end beyond this size in bytes."""
        self.file.seek(device.first_io * _RECORD.itemsize)
        left, beyond = device.ios, 0
        while left:
            part = np.frombuffer(self.file.read(min(left, 1 << 16) * _RECORD.itemsize), _RECORD)
            beyond += int(np.count_nonzero(part["offset"] + part["bytes"] > size_bytes))
            left -= len(part)
        return beyond


def compiled(path: Path, records: Records) -> CompiledTrace:
    """The I/Os by device and, in each device, by time; equal times stay in the order of the file.

    Raises UserError for a trace without I/Os or over more than a year, and HostError if there is no room for the file.
    """
    if not records.kind:
        left = ", ".join(f"{count:,} {kind}" for kind, count in records.left_out.items())
        what = f"{path}: no read or write in the trace" + (f", only {left}" if left else "")
        raise UserError(what, "record reads and writes; docs/trace.md says which lines count")
    at_ns = np.frombuffer(records.at_ns, np.int64)
    kind = np.frombuffer(records.kind, np.uint32)
    start_ns, end_ns = int(at_ns.min()), int(at_ns.max())
    if end_ns - start_ns > TIME_S_MAX * _NS:
        what = f"{path}: the trace lasts {(end_ns - start_ns) / _NS / 86_400:,.0f} days"
        raise UserError(what, "cut it to at most 366 days, and check its times")
    try:
        file: IO[bytes] = tempfile.TemporaryFile(prefix="linerate-trace-")  # noqa: SIM115 (kept open)
        devices = []
        first_io = 0
        for name, nth in records.devices.items():
            own = np.flatnonzero(kind >> 1 == nth)
            own = own[np.argsort(at_ns[own], kind="stable")]
            part = np.empty(len(own), _RECORD)
            part["at_ns"] = at_ns[own] - start_ns
            part["offset"] = np.frombuffer(records.offset, np.uint64)[own]
            part["bytes"] = np.frombuffer(records.bytes, np.uint32)[own]
            part["write"] = kind[own] & 1
            file.write(part.data)
            devices.append(_device(name, first_io, part))
            first_io += len(part)
        file.flush()
    except OSError as error:
        what = f"the compiled trace cannot be written to {tempfile.gettempdir()}: {error.strerror}"
        raise HostError(what, f"it needs {len(kind) * 24:,} bytes; name another folder in TMPDIR") from error
    trace = CompiledTrace(
        devices=tuple(devices),
        duration_ns=end_ns - start_ns,
        peak_ios=int(np.bincount(((at_ns - start_ns) // _NS).astype(np.int64)).max()),
        left_out=dict(records.left_out),
        moved=int(np.count_nonzero(at_ns[1:] < at_ns[:-1])),
        notes=tuple(records.notes),
        file=file,
    )
    weakref.finalize(trace, file.close)
    return trace


def _device(name: str, first_io: int, part: NDArray[np.void]) -> DeviceTrace:
    writes = part["write"] == 1
    return DeviceTrace(
        name=name,
        first_io=first_io,
        reads=_direction(part[~writes]),
        writes=_direction(part[writes]),
        last_ns=int(part["at_ns"][-1]),
        unaligned={
            block: int(np.count_nonzero((part["offset"] % block != 0) | (part["bytes"] % block != 0)))
            for block in (SECTOR_BYTES, BLOCK_BYTES)
        },
    )


def _direction(part: NDArray[np.void]) -> Direction:
    if not len(part):
        return Direction(0, 0, 0, 0, 0)
    ends = part["offset"] + part["bytes"]
    blocks = (ends + np.uint64(BLOCK_BYTES - 1)) // BLOCK_BYTES - part["offset"] // BLOCK_BYTES
    return Direction(
        ios=len(part),
        bytes=int(part["bytes"].sum(dtype=np.uint64)),
        first_byte=int(part["offset"].min()),
        end_byte=int(ends.max()),
        largest_bytes=int(blocks.max()) * BLOCK_BYTES,
    )
