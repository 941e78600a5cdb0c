"""Sizes, times and percentages as people write them: `8k`, `100g`, `90s`, `5m`, `67%`."""

from __future__ import annotations

import re

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)?", re.IGNORECASE)
_SIZE_FACTOR = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_TIME_FACTOR = {"ms": 0.001, "": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}

SIZE_FORM = "a number of bytes, or one with k, m, g or t (1024-based), for example 8k"
TIME_FORM = "a number of seconds, or one with ms, s, m or h, for example 5m"


def parse_size(text: str) -> int:
    """Bytes of `8k`, `100g`, `1.5MiB`, `512`; suffixes are 1024-based. Raises ValueError."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a size; write {SIZE_FORM}")
    size_bytes = float(match.group(1)) * _SIZE_FACTOR[match.group(2).lower()]
    if size_bytes != int(size_bytes):
        raise ValueError(f"{text!r} is not a whole number of bytes")
    return int(size_bytes)


def parse_time_s(text: str) -> float:
    """Seconds of `30`, `90s`, `5m`, `2h`, `500ms`. Raises ValueError."""
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a time; write {TIME_FORM}")
    return float(match.group(1)) * _TIME_FACTOR[(match.group(2) or "").lower()]


def size_text(size_bytes: float) -> str:
    """The shortest exact form with a 1024-based suffix: 4096 is `4k`, 1000 is `1000`."""
    whole = int(size_bytes)
    if whole != size_bytes or whole == 0:
        return f"{size_bytes:g}"
    for suffix in ("t", "g", "m", "k"):
        if whole % _SIZE_FACTOR[suffix] == 0:
            return f"{whole // _SIZE_FACTOR[suffix]}{suffix}"
    return str(whole)


def number_text(value: float) -> str:
    """A number without a needless `.0`."""
    return str(int(value)) if value == int(value) else f"{value:.10g}"


def duration_text(seconds: float) -> str:
    """Two units at most: 45 s, 12 min, 3 h 05 min."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02d} min"


def span_text(least_s: float, most_s: float) -> str:
    """One time, or two where they differ: `4 min to 8 min`."""
    least, most = duration_text(least_s), duration_text(most_s)
    return least if least == most else f"{least} to {most}"
