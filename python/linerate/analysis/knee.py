"""The knee of a response curve: the point from which more load costs more time than it brings rate."""

from __future__ import annotations

from collections.abc import Sequence


def knee(points: Sequence[tuple[float, float]]) -> int | None:
    """Index of the point (rate, time) with the highest power, which is rate over time.

    Source: L. Kleinrock, Power and deterministic rules of thumb for probabilistic problems in computer communications,
    1979. None with fewer than three points, and where the highest power is at an end: the knee is then outside of what
    was measured.
    """
    power = [rate / time if time > 0 else 0.0 for rate, time in points]
    if len(power) < 3:
        return None
    place = max(range(len(power)), key=power.__getitem__)
    return place if 0 < place < len(power) - 1 else None
