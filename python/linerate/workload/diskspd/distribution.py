"""`-rd` of diskspd: uneven random places, by parts of the target that follow each other.

The rules are those of diskspd 2.2: its reader of options, `Target::SetDistributionRange` and `Profile::Validate`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from linerate.workload.problems import shorten
from linerate.workload.spec import PlaceDistribution

_WHOLE = 100
_PARTS_MAX = 1_000
_FORM = "write -rdpct90/10:5/20, or -rdabs90/10G:5/20G: percent of the I/Os, and the size of the part"
_PART = re.compile(r"(\d{1,3})/(\w+)")


class DistributionError(ValueError):
    """A distribution that diskspd refuses, or that is not supported. args: what is wrong, and what is accepted."""

    def __init__(self, what: str, accepted: str) -> None:
        super().__init__(what, accepted)
        self.what, self.accepted = what, accepted


def read_distribution(
    text: str, *, block_bytes: int, grid_bytes: int, size: Callable[[str], int | None]
) -> PlaceDistribution:
    """The parts of a text such as `pct90/10:5/20`. size: the bytes of a text such as 10G, or None.

    Raises DistributionError.
    """
    kind, texts = text[:3], text[3:].split(":")
    if kind not in ("pct", "abs") or len(texts) > _PARTS_MAX:
        raise DistributionError(f"-rd{shorten(text)}: no distribution", _FORM)
    parts = [_part(one, in_bytes=kind == "abs", size=size) for one in texts]
    io_percent = sum(share for share, _ in parts)
    if io_percent > _WHOLE:
        what = f"-rd{shorten(text)}: {io_percent} % of the I/Os, which diskspd refuses"
        raise DistributionError(what, "write shares of at most 100 in all")
    if kind == "pct":
        parts = _whole_in_percent(text, parts, io_percent)
    else:
        for _, length in parts:
            _check_length(text, length, block_bytes, grid_bytes)
        parts += [(_WHOLE - io_percent, 0)] if io_percent < _WHOLE else []
    unit = "percent" if kind == "pct" else "bytes"
    return PlaceDistribution.model_validate({"unit": unit, "parts": parts})


def _part(text: str, *, in_bytes: bool, size: Callable[[str], int | None]) -> tuple[int, int]:
    found = _PART.fullmatch(text)
    share = int(found[1]) if found is not None else _WHOLE + 1
    length = None
    if found is not None and in_bytes:
        length = size(found[2])
    elif found is not None and found[2].isdecimal() and int(found[2]) <= _WHOLE:
        length = int(found[2])
    if share > _WHOLE or not length:
        raise DistributionError(f"-rd: {shorten(text)}: no part of a distribution", _FORM)
    return share, length


def _whole_in_percent(text: str, parts: list[tuple[int, int]], io_percent: int) -> list[tuple[int, int]]:
    """The parts with the rest of the I/Os in the rest of the target."""
    covered = sum(length for _, length in parts)
    if io_percent < _WHOLE and covered < _WHOLE:
        return [*parts, (_WHOLE - io_percent, _WHOLE - covered)]
    if covered != _WHOLE or io_percent != _WHOLE:
        what = f"{io_percent} % of the I/Os in {covered} % of the target"
        raise DistributionError(
            f"-rd{shorten(text)}: {what}, which diskspd refuses",
            "write parts of 100 % of the target, or leave I/Os and target for the rest",
        )
    return parts


def _check_length(text: str, length: int, block_bytes: int, grid_bytes: int) -> None:
    if length < block_bytes:
        what = f"-rd{shorten(text)}: a part of {length:,} bytes is less than an I/O, which diskspd refuses"
        raise DistributionError(what, "write larger parts")
    if length % grid_bytes:
        what = f"-rd{shorten(text)} is not supported: a part of {length:,} bytes, on a grid of {grid_bytes:,}"
        raise DistributionError(what, "write multiples of the grid (-r, or the size of an I/O)")
