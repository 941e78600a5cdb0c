"""A setting of what is around a host: links, switches, arrays, the load, its paths, faults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from linerate.quantity import number_text, parse_size, parse_time_s, size_text
from linerate.san import parse_delay_us, parse_rate, parse_share
from linerate.san.units import delay_text, rate_text, share_text
from linerate.setting import Applier, Setting, Value, Written

TopologyPart = Literal["link", "nic", "switch", "storage"]
RunPart = Literal["run", "volume", "smb", "multipath", "path", "backup"]
AS_BUILT = "as in the topology"
AS_LOADED = "as in the workload"
"""Defaults that the files of a study give."""


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class ModelField:
    """The field that a setting writes: of a part of the topology or of the run. `convert` makes the field's value.

    A field of a link is written at every link, one of a network adapter at every host, one of a switch at every
    switch, and one of storage at every array with disks.
    """

    part: TopologyPart | RunPart
    name: str
    convert: Callable[[Any], Any] = _same


@dataclass(frozen=True, slots=True, kw_only=True)
class SanSetting(Setting):
    """A setting that no host has. Without `field` it belongs to no model: its applier reads it.

    `elsewhere` are its names in other systems, by system.
    """

    applier: Applier
    field: ModelField | None = None
    elsewhere: tuple[tuple[str, str], ...] = ()


def _text_of(parse: Callable[[str], Any]) -> Callable[[Value], Any]:
    def read(value: Value) -> Any:
        if isinstance(value, bool):
            raise ValueError(value)
        return parse(str(value))

    return read


RATE = Written('a rate, for example "1gbit"', _text_of(parse_rate), rate_text)
DELAY = Written('a time, for example "50us"', _text_of(parse_delay_us), delay_text)
SHARE = Written('a share, for example "0.1%"', _text_of(parse_share), share_text)


def size(example: str) -> Written:
    """A number of bytes with a suffix."""
    return Written(f'a size, for example "{example}"', _text_of(parse_size), size_text)


def read_seconds(value: Value) -> float:
    """Seconds of a number or of a text with a unit. Raises ValueError."""
    return _text_of(parse_time_s)(value)  # type: ignore[no-any-return]


def seconds_text(seconds: float) -> str:
    """Seconds with their unit."""
    return f"{number_text(seconds)}s"
