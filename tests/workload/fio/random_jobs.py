"""Random job files that fio accepts, written in all the ways that its grammar allows."""

from __future__ import annotations

import random
from collections.abc import Sequence

_SIZES = ("512", "4k", "4K", "8kb", "16ki", "1m", "0x1000", "64k")
_VALUES: dict[str, Sequence[str]] = {
    "rw": ("read", "write", "randread", "randwrite", "rw", "randrw", "readwrite"),
    "readwrite": ("read", "randwrite"),
    "bs": (*_SIZES, "4k,8k", "4k,8k,16k"),
    "blocksize": _SIZES,
    "iodepth": ("1", "4", "32"),
    "numjobs": ("1", "2", "4"),
    "size": ("64m", "1g", "50%"),
    "io_size": ("1m", "64m"),
    "offset": ("0", "4k", "1m"),
    "runtime": ("5", "10s", "1m", "500ms"),
    "timeout": ("7",),
    "ramp_time": ("2", "3s"),
    "rwmixread": ("0", "30", "100"),
    "rwmixwrite": ("40",),
    "direct": ("0", "1"),
    "buffered": ("1",),
    "ioengine": ("psync", "sync", "null"),
    "filename": ("x", "x:y", "z-${LINERATE_TEST_NAME}", "${LINERATE_TEST_NAME}${LINERATE_TEST_NAME}"),
    "description": ("some words", "a % b", "-x --y"),
    "rate_iops": ("100", "1k"),
    "percentage_random": ("20",),
    "loops": ("2",),
    "randseed": ("7",),
    "time_based": ("", "0", "1"),
    "stonewall": ("",),
    "wait_for_previous": ("",),
    "group_reporting": ("", "1"),
    "thread": ("",),
    "norandommap": ("",),
    "bssplit": ("4k/60:8k/40", "4k/50:8k"),
    "bsrange": ("4k-16k",),
}
_COMMENTS = ("; words", "# words = more", "   # [b]", "\t; x", "")


LOAD = (
    "rw",
    "readwrite",
    "bs",
    "blocksize",
    "bssplit",
    "bsrange",
    "rwmixread",
    "rwmixwrite",
    "iodepth",
    "stonewall",
)
"""Keywords that say what a job does, and not for how long."""
ALL = tuple(_VALUES)


def job_file(seed: int, first: Sequence[str] = (), keywords: Sequence[str] = ALL) -> tuple[str, str]:
    """A job file that begins with the lines `first`, and a file `more.inc` that it may include."""
    draw = random.Random(seed)
    end = draw.choice(("\n", "\n", "\r\n"))
    lines = [*first, draw.choice(_COMMENTS)]
    for number in range(draw.randint(1, 5)):
        is_global = draw.random() < 0.35
        name = "global" if is_global else draw.choice(("a", "b", "job one", f"j{number}"))
        lines.append(draw.choice(("", "  ", "\t")) + f"[{name}]" + draw.choice(("", "", " ; words")))
        lines += _options(draw, keywords, draw.randint(0, 6))
        if draw.random() < 0.2:
            lines.append("include more.inc")
    return end.join(lines) + draw.choice((end, "")), "\n".join(
        _options(draw, keywords, draw.randint(1, 3))
    ) + "\n"


def _options(draw: random.Random, keywords: Sequence[str], number: int) -> list[str]:
    lines = []
    for _ in range(number):
        keyword = draw.choice(keywords)
        value = draw.choice(_VALUES[keyword])
        before, after = draw.choice(("", "", " ", "\t")), draw.choice(("", "", "  ", " ; words", "#x"))
        lines.append(before + (f"{keyword}={value}" if value else keyword) + after)
        lines += [draw.choice(_COMMENTS)] if draw.random() < 0.2 else []
    return lines
