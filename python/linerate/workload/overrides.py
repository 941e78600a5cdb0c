"""What the command line may change in a workload without editing its file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Self

from linerate.errors import UserError
from linerate.workload.spec import SessionOptions

_NUMBER_FIELD = re.compile(r"\{n(?:([+-])(\d+))?\}")


@dataclass(frozen=True, slots=True)
class LunMap:
    r"""Where the volumes of a file really are.

    Each entry maps a volume name (`sd1`), the text of its lun (`\\.\PhysicalDrive3`) or a pattern with
    one `*` (`sd*`, `\\.\PhysicalDrive*`, `*`) to a target URL. In the URL `{n}` stands for the number at
    the end of the volume's name or, failing that, of its lun; `{n-1}` and `{n+1}` count from another start.
    An exact entry wins over a pattern, a longer pattern over a shorter one.
    """

    entries: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, texts: list[str]) -> Self:
        """From `--map` options of the form `NAME=URL`."""
        entries: dict[str, str] = {}
        for text in texts:
            key, equals, url = text.partition("=")
            if not (key and equals and url):
                raise UserError(
                    f"--map {text}: no target", "write --map NAME=URL, for example --map sd1=null:8g"
                )
            entries[key] = url
        return cls(entries)

    def resolve(self, name: str, lun: str) -> str | None:
        """The URL for a volume, or None if no entry matches it."""
        for key in (name, lun):
            if key in self.entries:
                return _fill_number(self.entries[key], name, lun)
        for key in sorted((k for k in self.entries if "*" in k), key=len, reverse=True):
            if _matches(key, name) or _matches(key, lun):
                return _fill_number(self.entries[key], name, lun)
        return None


def _matches(pattern: str, text: str) -> bool:
    before, _, after = pattern.lower().partition("*")
    folded = text.lower()
    fits = len(folded) >= len(before) + len(after)
    return fits and folded.startswith(before) and folded.endswith(after)


def _fill_number(url: str, name: str, lun: str) -> str:
    if not _NUMBER_FIELD.search(url):
        return url
    digits = re.search(r"(\d+)$", name) or re.search(r"(\d+)\D*$", lun)
    if digits is None:
        raise UserError(
            f"{url}: neither {name} nor {lun} has a number for {{n}}", "name the volume in --map by itself"
        )
    number = int(digits.group(1))

    def fill(match: re.Match[str]) -> str:
        shift = int(match.group(2) or 0)
        return str(number - shift if match.group(1) == "-" else number + shift)

    filled = _NUMBER_FIELD.sub(fill, url)
    if re.search(r"/-\d", filled):
        raise UserError(
            f"{filled}: {{n}} of {name} became negative", "count from another start, for example {n}"
        )
    return filled


@dataclass(frozen=True, slots=True)
class Overrides:
    """Changes to every run of a workload; None leaves a value as the file has it. Applied in the order of
    the fields.

    `time_scale` multiplies warm-up and elapsed time and keeps them multiples of the interval.
    """

    time_scale: float | None = None
    warmup_s: float | None = None
    elapsed_s: float | None = None
    interval_s: float | None = None
    pause_s: float | None = None
    size_bytes: int | None = None
    outstanding: int | None = None
    seed: int | None = None
    verify: Literal["off", "on"] | None = None
    workers: int | None = None
    cpus: tuple[int, ...] | None = None
    driver: Literal["auto", "io_uring", "epoll"] | None = None
    wait: Literal["block", "spin"] | None = None
    session: Literal["own", "shared"] | None = None
    direct: bool | None = None
    create: bool | None = None
    iscsi: SessionOptions | None = None
    luns: LunMap = field(default_factory=LunMap)
