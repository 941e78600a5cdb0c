"""CSV of block traces: the form of the MSR Cambridge traces in SNIA's IOTTA repository.

Timestamp (100 ns since 1601), Hostname, DiskNumber, Type, Offset and Size in bytes, ResponseTime (100 ns). A first line
may name the columns, then in any order.
"""

from __future__ import annotations

from collections.abc import Iterator

from linerate.workload.trace.recognise import SNIA_COLUMNS, has_columns, names_in
from linerate.workload.trace.records import READ, WRITE, RecordError, Records, whole_number

_NEEDED = SNIA_COLUMNS[:-1]
_DIRECTIONS = {"read": READ, "r": READ, "write": WRITE, "w": WRITE}
_NOT_REPLAYED = {"flush": "flushes", "trim": "trims", "discard": "trims"}
_TICK_NS = 100
_MARGIN_NS = 366 * 86_400 * 1_000_000_000
"""Lines may be a year before the first one."""


def read_snia(lines: Iterator[tuple[int, str]], records: Records) -> Iterator[int]:
    """Adds the I/Os of a CSV, and gives the number of each line before it is read. Raises RecordError."""
    places = tuple(range(len(_NEEDED)))
    first_tick: int | None = None
    most = len(SNIA_COLUMNS)
    for nth, (number, text) in enumerate(lines):
        yield number
        fields = text.split(",")
        if nth == 0 and has_columns(names := names_in(text)):
            places = tuple(names.index(name) for name in _NEEDED)
            most = len(names)
            continue
        if not max(places) < len(fields) <= most:
            raise RecordError(f"{len(fields)} fields; write {','.join(SNIA_COLUMNS)}")
        tick, host, disk, kind, offset, size = (fields[place].strip() for place in places)
        ticks = whole_number(tick, "timestamp")
        # Counted from the first line: sums of 100 ns since 1601 do not fit into 64 bits of nanoseconds.
        first_tick = ticks if first_tick is None else first_tick
        at_ns = (ticks - first_tick) * _TICK_NS
        device = f"{host}.{whole_number(disk, 'disk number')}"
        kind = kind.lower()
        if (direction := _DIRECTIONS.get(kind)) is not None:
            records.add(
                device,
                at_ns + _MARGIN_NS,
                whole_number(offset, "offset"),
                whole_number(size, "size"),
                direction,
            )
        elif kind in _NOT_REPLAYED:
            records.left_out[_NOT_REPLAYED[kind]] += 1
        else:
            raise RecordError(f"type {kind[:40]!r}; write Read or Write")
