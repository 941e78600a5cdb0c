"""How long something takes, as people say it."""

from __future__ import annotations


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
