"""One plain statement of why a layout of paths did what it did, put together from what was measured.

Every clause follows from figures of the run, and is left out without them. The last one names a mechanism
only where its parts were all seen (senders that met, loss, less throughput than the control) and calls it what it is:
consistent with the figures, not proven by them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from linerate.analysis.paths.layout import Meeting, PathFigures, PathLayout, Side

SHARED_PERCENT_MIN = 1.0
"""Of the intervals: below, senders hardly ever met."""
DRAG_MIN = 2.0
"""A path that takes this many times as long per I/O as another holds back a load that waits for both."""
ALIKE_PERCENT = 10.0
"""Shares of I/Os within this much of each other are equal."""
EVEN_POINTS = 2.0
"""Shares of bytes within so many points of each other are equal."""
WAIT_MIN = 1.5
"""Times the control's service time, from which a wait is worth a word."""
LESS = 0.95
"""Of the control's throughput, below which a layout cost something: the margin of the published tests."""
LOST_MIN = 20
"""Frames and segments: fewer lost ones explain no rate, however short the run."""
_NAMED_MAX = 4
_COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")


def explain(layout: PathLayout, control: PathLayout | None = None) -> str:
    """The statement, empty when no path carried anything.

    `control` is the layout that it is held against (one path), measured under the same load.
    """
    if layout.mib_s <= 0:
        return ""
    clauses = [
        *_shares(layout),
        *_meetings(layout),
        *_loss(layout),
        *_waits(layout, control),
        *_drag(layout),
        *_mechanism(layout, control),
    ]
    return " ".join(clauses)


def _shares(layout: PathLayout) -> Iterator[str]:
    used = [path for path in layout.paths if path.ios]
    rate = f"{layout.mib_s:.3g} MB/s"
    if len(used) == 1:
        only = used[0]
        yield f"{only.name} carried all {rate}, with {only.queue:.3g} I/Os in flight of {only.service_ms:.3g} ms each."
    else:
        by_side = (layout.share_of(side) for side in _SIDES)
        carrying = [{port: share for port, share in shares.items() if share} for shares in by_side]
        sides = [_listed(shares) for shares in carrying if len(shares) > 1]
        if sides:
            yield f"Of {rate}, {', and '.join(sides)}."
        else:
            yield f"{_count(len(used)).capitalize()} paths carried {rate}."
    idle = [path for path in layout.paths if not path.ios]
    if idle:
        states = ", ".join(dict.fromkeys(path.state for path in idle if path.state))
        named = _and([path.name for path in idle])
        yield f"{named} carried nothing{f' ({states})' if states else ''}."


_SIDES: tuple[Side, ...] = ("array", "host")


def _listed(shares: dict[str, float]) -> str:
    if max(shares.values()) - min(shares.values()) <= EVEN_POINTS:
        return f"{_and(sorted(shares))} carried {100 / len(shares):.0f} % each"
    ranked = sorted(shares.items(), key=lambda item: (-round(item[1]), item[0]))
    shown = [f"{port} carried {share:.0f} %" for port, share in ranked[:_NAMED_MAX]]
    if len(ranked) > _NAMED_MAX:
        shown.append(f"{len(ranked) - _NAMED_MAX} more the rest")
    return ", ".join(shown)


def _meetings(layout: PathLayout) -> Iterator[str]:
    """One clause per kind of meeting: ports with the same senders in the same share of intervals stand together."""
    grouped: dict[tuple[Side, int, int], list[Meeting]] = {}
    for meeting in _met(layout):
        key = (meeting.side, len(meeting.senders), round(meeting.percent))
        grouped.setdefault(key, []).append(meeting)
    for (side, senders, percent), meetings in grouped.items():
        ports = _and([meeting.port for meeting in meetings])
        each = "each of " if len(meetings) > 1 else ""
        flight = max(meeting.queue for meeting in meetings)
        of = f"in {percent} % of the intervals of {layout.interval_s:.2g} s"
        if side == "array":
            what = f"{_count(senders).capitalize()} host ports shared {each}array port {ports} {of}"
        else:
            what = f"{_count(senders).capitalize()} array ports sent to {each}host port {ports} {of}"
        yield f"{what}, with up to {flight:.2g} I/Os in flight there on average."


def _met(layout: PathLayout) -> list[Meeting]:
    return [meeting for meeting in layout.meetings if meeting.percent >= SHARED_PERCENT_MIN]


def _loss(layout: PathLayout) -> Iterator[str]:
    """Drops where several senders shared a port, and TCP retransmits; "nothing dropped" if that was counted."""
    ports = [meeting.port for meeting in _met(layout)] or [
        port for path in layout.paths for port in (path.array_port, path.host_port)
    ]
    watched = [port for port in dict.fromkeys(ports) if port in layout.drops]
    lossy = sorted((port for port in watched if layout.drops[port]), key=lambda port: -layout.drops[port])
    again = layout.retransmits + (layout.array_retransmits or 0)
    if lossy:
        named = _and([f"{layout.drops[port]:,} to {port}" for port in lossy[:_NAMED_MAX]])
        yield f"The switch dropped frames on the way: {named}."
    if again:
        sides = [f"{layout.retransmits:,} by the host"]
        if layout.array_retransmits is not None:
            sides.append(f"{layout.array_retransmits:,} by the array")
        yield f"TCP retransmits: {', '.join(sides)}."
    elif _met(layout) and watched and not lossy:
        yield "No frame was dropped there, and there were no TCP retransmits."


def _waits(layout: PathLayout, control: PathLayout | None) -> Iterator[str]:
    if control is None or control.service_ms <= 0 or control.iops <= 0 or layout.iops <= 0:
        return
    times = layout.service_ms / control.service_ms
    if times >= WAIT_MIN:
        longest = max(path.service_max_ms for path in layout.paths)
        yield (
            f"An I/O took {layout.service_ms:.3g} ms, {times:.2g} times as long as in the control, "
            f"the longest {longest:,.0f} ms."
        )


def _drag(layout: PathLayout) -> Iterator[str]:
    """A path that is slower than the others, and what the policy made of it."""
    used = [path for path in layout.paths if path.ios]
    if len(used) < 2:
        return
    slow = max(used, key=lambda path: path.service_ms)
    fast = min(used, key=lambda path: path.service_ms)
    if fast.service_ms <= 0 or slow.service_ms < DRAG_MIN * fast.service_ms:
        return
    times = f"{slow.service_ms / fast.service_ms:.2g} times as long"
    if _alike(used):
        what = "round robin gave it" if layout.policy.startswith("round_robin") else "it was given"
        yield (
            f"{slow.name} dragged: an I/O took {times} there as on {fast.name}, and {what} as many I/Os as "
            "the others, so that they waited for it."
        )
    else:
        shares = 100 * slow.ios / sum(path.ios for path in used)
        yield f"An I/O took {times} on {slow.name} as on {fast.name}, which got {shares:.0f} % of the I/Os."


def _alike(paths: Sequence[PathFigures]) -> bool:
    counts = [path.ios for path in paths]
    return max(counts) - min(counts) <= ALIKE_PERCENT / 100 * max(counts)


def _mechanism(layout: PathLayout, control: PathLayout | None) -> Iterator[str]:
    met = _met(layout)
    if control is None or control.mib_s <= 0 or not met:
        return
    times = layout.mib_s / control.mib_s
    dropped = sum(layout.drops.get(meeting.port, 0) for meeting in met)
    lost = dropped + layout.retransmits + (layout.array_retransmits or 0)
    if times < LESS and lost >= LOST_MIN:
        yield (
            f"At {times:.2g} times the control's throughput, this is consistent with senders that together overflow "
            "the buffer in front of the port where they meet, and wait until TCP notices the loss; it does not "
            "prove it."
        )
    elif times >= LESS and not lost and layout.drops:
        yield "Sharing a port by itself cost no throughput here."


def _count(number: int) -> str:
    return _COUNTS[number] if number < len(_COUNTS) else str(number)


def _and(names: Sequence[str]) -> str:
    shown = list(names[:_NAMED_MAX])
    if len(names) > _NAMED_MAX:
        shown.append(f"{len(names) - _NAMED_MAX} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
