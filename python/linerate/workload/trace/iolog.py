"""fio's iolog, versions 2 and 3, as `--write_iolog` writes it and `--read_iolog` reads it (iolog.c of fio 3.33).

Version 3 has a time in microseconds on each line. Version 2 has none; `wait` there waits until so many milliseconds
after the start.
"""

from __future__ import annotations

from collections.abc import Iterator

from linerate.workload.trace.recognise import IOLOG_HEADER
from linerate.workload.trace.records import READ, WRITE, RecordError, Records, whole_number

_DIRECTIONS = {"read": READ, "write": WRITE}
_NOT_REPLAYED = {"sync": "flushes (sync)", "datasync": "flushes (datasync)", "trim": "trims"}
_FILE_ACTIONS = ("add", "open", "close")
_US, _MS = 1_000, 1_000_000
_FORMS = {2: "FILE ACTION [OFFSET LENGTH]", 3: "TIME_US FILE ACTION [OFFSET LENGTH]"}


def version_of(header: str) -> int:
    """The version that the first line names. Raises RecordError for another than 2 and 3."""
    number = header.removeprefix(IOLOG_HEADER).split(" ")[0]
    if number not in ("2", "3"):
        raise RecordError(f"version {number} of fio's iolog is not read; record it with fio 2.0 or later")
    return int(number)


def read_iolog(lines: Iterator[tuple[int, str]], records: Records) -> Iterator[int]:
    """Adds the I/Os of an iolog after its first line, and gives the number of each line before it is read. Raises
    RecordError."""
    number, header = next(lines)
    yield number
    version = version_of(header)
    at_ns = 0
    waits = 0
    for number, text in lines:
        yield number
        words = text.split()
        if version == 3:
            at_ns = whole_number(words[0], "time") * _US
            del words[0]
        if len(words) == 2 and words[1] in _FILE_ACTIONS:
            continue
        if len(words) != 4:
            raise RecordError(f"{len(words)} words; write {_FORMS[version]}")
        name, action = words[0], words[1]
        offset = whole_number(words[2], "offset")
        size_bytes = whole_number(words[3], "length")
        if (direction := _DIRECTIONS.get(action)) is not None:
            records.add(name, at_ns, offset, size_bytes, direction)
        elif action in _NOT_REPLAYED:
            records.left_out[_NOT_REPLAYED[action]] += 1
        elif action == "wait" and version == 2:
            at_ns = max(at_ns, offset * _MS)
            waits += 1
        else:
            raise RecordError(f"{action}: no action of version {version}; read, write, sync, datasync, trim")
    if version == 2 and not waits:
        records.notes.append("version 2 without wait has no times: all I/Os are due at the start")
