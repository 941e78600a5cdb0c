"""Random job files that fio accepts, written in all the ways that its grammar allows."""

from __future__ import annotations

import random
from collections.abc import Sequence

_SIZES = ("512", "4k", "4K", "8kb", "16ki", "1m", "0x1000", "64k")
_VALUES: dict[str, Sequence[str]] = {
    "rw": ("read", "write", "randread", "randwrite", "rw", "randrw", "readwrite", "write:4k", "randread:8"),
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
    "ioengine": ("psync", "sync", "null", "filecreate", "filestat", "filedelete"),
    "nrfiles": ("1", "10"),
    "file_service_type": ("roundrobin", "sequential", "random", "zipf:1.2"),
    "create_on_open": ("0", "1"),
    "fsync": ("0", "1", "16"),
    "zero_buffers": ("0",),
    "buffer_compress_percentage": ("50",),
    "filename": ("x", "x:y", "z-${LINERATE_TEST_NAME}", "${LINERATE_TEST_NAME}${LINERATE_TEST_NAME}"),
    "description": ("some words", "a % b", "-x --y"),
    "rate_iops": ("100", "1k", "100,200", ",50"),
    "rate": ("1m", "1m,512k", "2m,"),
    "rate_process": ("linear", "poisson"),
    "thinktime": ("0", "500", "2ms"),
    "thinktime_blocks": ("1", "8"),
    "verify": ("0", "crc32c", "md5"),
    "do_verify": ("0", "1"),
    "rw_sequencer": ("sequential", "identical"),
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
_WRONG: dict[str, Sequence[str]] = {
    "rw": ("READ", "rnd"),
    "bs": ("", "k", "x"),
    "iodepth": ("0", "x"),
    "numjobs": ("x",),
    "rwmixread": ("101", "x"),
    "percentage_random": ("101", "x"),
    "size": ("z",),
    "runtime": ("soon",),
    "thinktime": ("x",),
    "rate": ("x",),
    "rate_iops": ("x",),
    "rate_process": ("even",),
    "verify": ("crc99",),
    "rw_sequencer": ("random",),
    "no_such_keyword": ("1",),
    "direct": ("x",),
}
"""Values that fio refuses."""
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


def wrong_job_file(seed: int) -> str:
    """A job file with one option that fio refuses."""
    draw = random.Random(f"wrong {seed}")
    text, _ = job_file(seed, keywords=("iodepth", "numjobs", "size", "direct", "bs", "description"))
    text = text.replace("include more.inc", "")
    keyword = draw.choice(list(_WRONG))
    value = draw.choice(_WRONG[keyword])
    return f"{text}\n[wrong]\n{keyword}={value}\n"


def _options(draw: random.Random, keywords: Sequence[str], number: int) -> list[str]:
    lines = []
    for _ in range(number):
        keyword = draw.choice(keywords)
        value = draw.choice(_VALUES[keyword])
        before, after = draw.choice(("", "", " ", "\t")), draw.choice(("", "", "  ", " ; words", "#x"))
        lines.append(before + (f"{keyword}={value}" if value else keyword) + after)
        lines += [draw.choice(_COMMENTS)] if draw.random() < 0.2 else []
    return lines
