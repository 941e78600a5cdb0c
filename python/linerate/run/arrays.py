"""What the arrays did in each interval: their counters are read when an interval arrives, and the differences kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import Any, cast

from linerate.results.sample import ArrayPart, ArrayRow
from linerate.run.load import Load

Reports = Callable[[], Mapping[str, Any]]
"""Reads what every array says of its disks: name -> disks, raid_sets, pools and volumes, counters since its start."""

_PARTS: tuple[tuple[str, ArrayPart], ...] = (
    ("disks", "disk"), ("raid_sets", "raid_set"), ("pools", "pool"), ("volumes", "volume"),
)  # fmt: skip
_MEMBER_OF = ("raid_set", "pool")
_KIND = ("model", "level")
_NOW = ("state", "size_bytes", "used_bytes", "provisioned_bytes", "warning")
"""How a part is; everything else that is a number counts since the start."""
_COUNTS = tuple(
    field.name
    for field in fields(ArrayRow)
    if str(field.type) == "int" and field.name not in _NOW
)  # fmt: skip
_Key = tuple[str, str, str]


class ArrayWatch:
    """Differences of the arrays' counters from one reading to the next. The first reading is made when it begins.

    `now_s` is the clock of the arrays: a modelled one where they are modelled as a whole.
    """

    def __init__(self, read: Reports, now_s: Callable[[], float] = time.monotonic) -> None:
        self._read = read
        self._now_s = now_s
        self._at_s = now_s()
        self._before = dict(_parts(read()))

    def rows(self) -> tuple[ArrayRow, ...]:
        """What happened since the last reading. Raises what the reader raises."""
        found = dict(_parts(self._read()))
        at_s = self._now_s()
        seconds = at_s - self._at_s
        rows = tuple(_row(key, part, self._before.get(key, {}), seconds) for key, part in found.items())
        self._at_s, self._before = at_s, found
        return rows


def _parts(reports: Mapping[str, Any]) -> Iterator[tuple[_Key, Mapping[str, Any]]]:
    for array, report in reports.items():
        for name, part in _PARTS:
            for one in report.get(name, ()):
                yield (array, part, one["name"]), one


def _row(key: _Key, part: Mapping[str, Any], before: Mapping[str, Any], seconds: float) -> ArrayRow:
    array, kind_of_part, name = key
    task = part.get("task") or {}
    known = {field: part[field] for field in _NOW if part.get(field) is not None}
    counted = {field: part[field] - before.get(field, 0) for field in _COUNTS if field in part}
    return ArrayRow(
        array=array,
        part=cast("ArrayPart", kind_of_part),
        name=name,
        seconds=seconds,
        member_of=_first(part, _MEMBER_OF),
        kind=_first(part, _KIND),
        task=task.get("kind", ""),
        done=float(task.get("done", 0.0)),
        **known,
        **counted,
    )


def _first(part: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next((str(part[name]) for name in names if part.get(name)), "")


Watcher = Callable[[Load], ArrayWatch]
"""Begins to watch the arrays behind the volumes of a load that has begun."""


def watch(read: Reports) -> Watcher:
    """Watches arrays that serve in real time."""
    return lambda load: ArrayWatch(read)
