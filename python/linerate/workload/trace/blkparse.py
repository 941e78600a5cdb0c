"""The text of blkparse in its default format (blkparse_fmt.c of blktrace): device, CPU, sequence, time, PID, action,
RWBS, and for an I/O its first sector, `+` and its number of sectors.

Events of one kind count: D (issued to the driver), or Q (queued) in a trace without D, because an I/O has one of each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from linerate.workload.trace.recognise import EVENT
from linerate.workload.trace.records import READ, SECTOR_BYTES, WRITE, RecordError, Records

_SECTORS = re.compile(r"(\d+)\s+\+\s+(\d+)(?:\s|$)")
_ACTIONS = frozenset(["Q", "M", "F", "G", "S", "R", "D", "C", "P", "U", "UT", "I", "X", "B", "A", "m", "N"])
_SUMMARY = re.compile(
    r"CPU\s*\d+\s*\(|Total \(|\S+ \(\d+,\d+\):|Reads |Read |Throughput|Events|Skips|Input file|"
    r"Writes |Write |IO unplugs|Trace started|Allocation|Timer unplugs|Dispatch|.*\bunplugs:"
)
_FORM = "8,0 1 2 0.000000123 456 D R 2048 + 8 [name]"
_DIGITS_MAX = 18


def read_blkparse(lines: Iterator[tuple[int, str]], records: Records) -> Iterator[int]:
    """Adds the I/Os of a text of blkparse, and gives the number of each line before it is read. Raises RecordError."""
    queued = Records()
    for number, text in lines:
        yield number
        event = EVENT.match(text)
        if event is None:
            if _SUMMARY.match(text):
                break  # the totals at the end
            raise RecordError(f"{text[:40]!r} is no event; write {_FORM}")
        action = event["action"]
        if action not in _ACTIONS:
            raise RecordError(f"action {action}; known are {', '.join(sorted(_ACTIONS))}")
        if action == "D":
            _add(records, event)
        elif action == "Q" and not records.kind:
            _add(queued, event)
    if not records.kind:
        _take(records, queued)
        if queued.kind:
            records.notes.append("the trace has no D events of reads and writes: Q events are used")


def _take(records: Records, other: Records) -> None:
    records.devices = other.devices
    records.left_out = other.left_out
    records.at_ns, records.offset = other.at_ns, other.offset
    records.bytes, records.kind = other.bytes, other.kind


def _add(records: Records, event: re.Match[str]) -> None:
    rwbs = event["rwbs"] or ""
    sectors = _SECTORS.match(event["rest"] or "")
    count = int(sectors[2][:_DIGITS_MAX]) if sectors else 0
    if (kind := _left_out(rwbs, count)) is not None:
        records.left_out[kind] += 1
        return
    if sectors is None or len(sectors[1]) > _DIGITS_MAX:
        raise RecordError(f"no place of an I/O; write {_FORM}")
    if event["time"].startswith("-"):
        raise RecordError(f"time {event['time']}; a time is not below 0")
    direction = WRITE if "W" in rwbs else READ
    at_ns = int(event["time"][:30].replace(".", ""))
    size_bytes = count * SECTOR_BYTES
    records.add(event["device"], at_ns, int(sectors[1]) * SECTOR_BYTES, size_bytes, direction)


def _left_out(rwbs: str, sectors: int) -> str | None:
    """The kind of an event that is no read or write of data; None: it is one."""
    if "D" in rwbs or "E" in rwbs:
        return "discards"
    if not sectors:
        return "flushes" if "F" in rwbs else "commands without data"
    return None if "W" in rwbs or "R" in rwbs else "commands without data"
