"""What diskspd 2.2 refuses in the options of a command, beside what Linerate does not do.

The rules are those of its own reader and of the check of its profile (CmdLineParser.cpp, Profile::Validate).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from linerate.workload.problems import shorten

_ONCE = ("f", "B", "r", "s", "si")
"""Options that may be given once."""
_EVENTS = r"[pqsc].*|PROCESS|THREAD|IMAGE_LOAD|DISK_IO|MEMORY_PAGE_FAULTS|MEMORY_HARD_FAULTS|NETWORK|REGISTRY"
_VALUES: dict[str, tuple[str, str]] = {
    "I": (r"[1-3]", "write -I1 (very low), -I2 or -I3 (normal)"),
    "v": (r"s?", "write -v or -vs"),
    "R": (r"text|xml", "write -Rtext or -Rxml"),
    "e": (_EVENTS, "write -ep, -eq, -es, -ec, or a group such as -eNETWORK"),
    "fr": (r"[rst]*", "write letters of r, s and t behind -f, or a size"),
    "fs": (r"[rst]*", "write letters of r, s and t behind -f, or a size"),
    "ft": (r"[rst]*", "write letters of r, s and t behind -f, or a size"),
    "a": (r"|(g\d+,)?\d+(,(g\d+,)?\d+)*|g", "write CPUs: -a0,1 or -ag0,0,1"),
}
"""What may be behind the letters of options that have no effect here."""
_NEVER_ZERO = {
    "i": "I/Os of a burst",
    "j": "pause",
    "g": "rate",
    "T": "distance of the threads",
    "F": "threads",
    "O": "I/Os in flight",
}


def why_refused(given: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """What is wrong, and what is accepted. `given`: the letters of each option in order, and what is behind them."""
    letters = [one for one, _ in given]
    for one in _ONCE:
        if letters.count(one) > 1:
            yield f"-{one} twice, which diskspd refuses", "give it once"
    if any(value != "100" for one, value in [pair for pair in given if pair[0] == "rs"][:-1]):
        yield "-rs twice, which diskspd refuses", "give it once"
    has_cpus = any(one == "a" and value not in ("", "g") for one, value in given)
    for one, other, are_both in (("n", "a", has_cpus), ("g", "x", "x" in letters)):
        if one in letters and are_both:
            yield f"-{one} with -{other}, which diskspd refuses", "write one of them"
    if {"F", "O"} <= set(letters):
        for one in dict.fromkeys(one for one in letters if one in ("g", "j", "p")):
            yield f"-O with -{one}, which diskspd refuses", "write -o, or leave it out"
    for one, value in given:
        pattern, accepted = _VALUES.get(one, ("", ""))
        if pattern and not re.fullmatch(pattern, value):
            yield f"-{one}{shorten(value)}, which diskspd refuses", accepted
        if one in _NEVER_ZERO and re.fullmatch(r"0+[bkmgti]?", value, re.IGNORECASE):
            yield (
                f"-{one}{value}: {_NEVER_ZERO[one]} 0, which diskspd refuses",
                "write 1 or more, or leave it out",
            )
