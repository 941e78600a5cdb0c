"""What limits the path, from what a probe has seen: one sentence, and what is worth trying.

The causes are asked in the order in which they hide one another. Frames that vanish and lost segments make every other
figure doubtful. A stall of Nagle's algorithm and delayed acknowledgements looks like a slow array. Disks that are slow
for random I/O can still fill a line with sequential I/O, so they come before it. A full line explains a rate that more
sessions do not raise; a window explains one that they do. Then a line of an unusual rate that raw TCP fills too, the
CPU of this host, the array, and at last the round trip.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from linerate.analysis.limits.wire import HEADERS_BYTES, MSS_USUAL_BYTES
from linerate.probe.beside_raw import raw_notes
from linerate.probe.evidence import HOST_BUSY_PERCENT, LOOPBACK, Evidence, TrialResult
from linerate.probe.hints import Hint, Limit, hints_for
from linerate.probe.lines import full_line, line_by_raw, line_of_any_rate
from linerate.probe.port.adapter import adapter_notes
from linerate.probe.port.notes import port_notes
from linerate.probe.stalls import delayed_ack
from linerate.probe.windows import held_writes, window

LOSS_PERCENT = 0.05  # TCP's rate falls with the root of it (Mathis et al. 1997)
LOST_SEGMENTS_MIN = 10
GAPS_PERCENT = 0.2  # each lost segment leaves several that follow a gap
LOST_EXPECTED_MIN = 3.0
LOST_FOUND_SHARE = 0.1
_OF_READS = ("disks", "line", "window")
SLOW = 4.0  # an I/O takes so many round trips: the network is not what it waits for
SLOW_MS_MIN = 0.3  # below, an array that wakes up explains it
UNEVEN = 2.0  # the mean of a response time, in medians: most are fast, and some very slow
DISK_SHARE_BUSY = 0.875
DISK_SHARE = 0.5  # of a random read, that a cached one does not take


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What limits the path: by name, in a sentence with the figures that say so, and what to try.

    `notes` are faults that were seen beside it.
    """

    limit: Limit
    sentence: str
    hints: tuple[Hint, ...]
    notes: tuple[str, ...] = ()


def judge(seen: Evidence) -> Diagnosis:
    """The first cause that the figures show. Without any trial only the frames can tell."""
    notes = (*_notes(seen), *raw_notes(seen), *adapter_notes(seen), *port_notes(seen))
    for limit, explain in _CAUSES:
        if sentence := explain(seen):
            return Diagnosis(limit, sentence, _hints(limit, seen), (*_beside(limit, seen), *notes))
    return Diagnosis("unknown", _nothing_full(seen), hints_for("unknown", seen.mtu_bytes), notes)


def _hints(limit: Limit, seen: Evidence) -> tuple[Hint, ...]:
    held = window(seen) if limit == "window" else None
    return held.hints if held else hints_for(limit, seen.mtu_bytes)


def _window(seen: Evidence) -> str:
    held = window(seen)
    return held.sentence if held else ""


def _beside(limit: Limit, seen: Evidence) -> tuple[str, ...]:
    """Slow disks limit small I/O only: what limits large sequential I/O is another question, and so is what limits
    writes where reads are faster. A line that is full loses frames in front of it."""
    notes = []
    if limit == "line" and (lost := _lost(seen)):
        notes.append(f"{lost}, only while the line was full: a queue in front of it overflows.")
    sentence = (full_line(seen) or _window(seen)) if limit == "disks" else ""
    if sentence:
        notes.append(f"For large sequential I/O: {sentence}")
    held = held_writes(seen) if limit in _OF_READS else None
    if held and not (limit == "window" and held == window(seen)):
        notes.append(held.sentence)
    return tuple(notes)


def _black_hole(seen: Evidence) -> str:
    """Only where TCP sends such frames: the MSS follows from the smaller MTU of both ends, not from what is between."""
    frames = seen.frames
    if not frames.has_black_hole or (seen.measured and _segment_bytes(seen) <= (frames.largest_bytes or 0)):
        return ""
    stalled = "" if seen.measured else ": the session logged in, and no read of 4 KiB was answered"
    return (
        f"Frames above {frames.largest_bytes} bytes vanish on the way, {_no_answer(seen)}. Connections that send "
        f"larger frames stall{stalled}."
    )


def _no_answer(seen: Evidence) -> str:
    frames = seen.frames
    return (
        f'without "fragmentation needed" from a router; the port of this host sends up to '
        f"{frames.port_mtu_bytes or max(frames.lost)}"
    )


def _segment_bytes(seen: Evidence) -> int:
    """Largest IP packet that TCP sends on this path."""
    mss = seen.measured["floor"].session.get("snd_mss") or MSS_USUAL_BYTES
    return int(mss) + HEADERS_BYTES


def _notes(seen: Evidence) -> tuple[str, ...]:
    if not seen.frames.has_black_hole or _black_hole(seen):
        return ()
    return (
        f"Frames above {seen.frames.largest_bytes} bytes vanish on the way, {_no_answer(seen)}. TCP has agreed on "
        "smaller ones, so this path does not stall: give all ports of it the same MTU.",
    )


def _loss(seen: Evidence) -> str:
    """A line that is full loses frames where a queue in front of it overflows: then the line is the limit."""
    lost = _lost(seen)
    return f"{lost}." if lost and not (full_line(seen) and _is_lost_by_load(seen)) else ""


def _is_lost_by_load(seen: Evidence) -> bool:
    """Whether small I/O loses nothing, where the share of the lost segments of bulk trials makes several.

    A lost segment makes at most as many follow a gap as a connection has on the way: so that share is known from below.
    """
    small = [one for one in seen.measured.values() if not one.trial.is_bulk]
    share = max((_lost_share(one) for one in seen.bulk if not one.trial.is_write), default=0.0)
    expected = share * sum(one.tcp.received_segments for one in small)
    found = sum(one.tcp.out_of_order + _lost_segments(one) for one in small)
    return expected >= LOST_EXPECTED_MIN and found <= LOST_FOUND_SHARE * expected


def _lost_share(one: TrialResult) -> float:
    """Of the received segments, at least."""
    connections = one.trial.sessions * one.trial.connections
    mss_bytes = one.session.get("snd_mss") or MSS_USUAL_BYTES
    on_the_way = 1e6 * one.mb_s * one.tcp.rtt_us / 1e6 / connections / mss_bytes
    return one.tcp.out_of_order / max(1, one.tcp.received_segments) / max(1.0, on_the_way)


def _lost(seen: Evidence) -> str:
    """Over all trials; a few segments prove nothing, for TCP also sends some again that were only late.

    A loopback loses nothing: it reorders, and an array that works in turns acknowledges late.
    """
    if seen.port == LOOPBACK:
        return ""
    sums = [one.tcp for one in seen.measured.values()]
    again = sum(_lost_segments(one) for one in seen.measured.values())
    gaps = sum(tcp.out_of_order for tcp in sums)
    again_percent = 100 * again / max(1, sum(tcp.sent_segments for tcp in sums))
    gaps_percent = 100 * gaps / max(1, sum(tcp.received_segments for tcp in sums))
    signs = []
    if again_percent >= LOSS_PERCENT and again >= LOST_SEGMENTS_MIN:
        signs.append(f"{again:,} segments that this host sent ({again_percent:.2g} %) were retransmits")
    if gaps_percent >= GAPS_PERCENT and gaps >= LOST_SEGMENTS_MIN:
        signs.append(f"{gaps:,} segments that came in ({gaps_percent:.2g} %) followed a gap")
    return f"The path loses frames: {', and '.join(signs)}" if signs else ""


def _lost_segments(one: TrialResult) -> int:
    """A segment that waits in a long queue, or for a busy array, is sent again too, but was not lost."""
    return max(0, one.tcp.retransmits - one.tcp.needless_retransmits)


def _this_host(seen: Evidence) -> str:
    for name in ("large", "small"):
        one = seen.measured[name]
        busy = one.host_busy_percent or 0.0
        if one.is_host_full:
            return (
                f"The load threads of this host are the limit: {one.trial.title} use {one.load_cores:.2f} CPUs, and "
                f"there {'is one thread' if one.workers == 1 else f'are {one.workers} threads'}."
            )
        if busy >= HOST_BUSY_PERCENT:
            return (
                f"The CPUs of this host are the limit: they are {busy:.0f} % busy, and {one.trial.title} use only "
                f"{one.load_cores:.2f} of them. Other programs, or an array on this machine, use the rest."
            )
    return ""


def _disks(seen: Evidence) -> str:
    """A host without CPUs left makes single I/Os late: then the difference must be larger."""
    floor, cached = seen.measured["floor"], seen.measured.get("cached")
    if cached is None or floor.p50_ms < max(SLOW_MS_MIN, SLOW * seen.rtt_ms):
        return ""
    if floor.p50_ms - cached.p50_ms < (DISK_SHARE_BUSY if seen.is_host_busy else DISK_SHARE) * floor.p50_ms:
        return ""
    return (
        f"The disks are the limit of random I/O: a 4K read takes {floor.p50_ms:.3g} ms, one from the array's memory "
        f"{cached.p50_ms:.3g} ms, and the round trip {seen.rtt_ms:.2g} ms."
    )


def _array(seen: Evidence) -> str:
    floor, small = seen.measured["floor"], seen.measured["small"]
    if floor.p50_ms < max(SLOW_MS_MIN, SLOW * seen.rtt_ms):
        return _array_in_turns(seen)
    return (
        f"The array is the limit: a 4K read at depth 1 takes {floor.p50_ms:.3g} ms, {seen.rtt_ms:.2g} ms of it on the "
        f"network, and with 32 in flight {small.iops:,.0f} are done per second. This host and the line have time left."
    )


def _array_in_turns(seen: Evidence) -> str:
    """A CPU that other programs or a quota take for milliseconds at a time: most reads are fast, and all wait then.

    Reads of the array's memory wait too, which slow disks behind a cache do not explain.
    """
    floor, cached = seen.measured["floor"], seen.measured.get("cached")
    if cached is None or seen.is_host_busy:
        return ""
    mean_ms = min(one.mean_ms_at_depth_1 for one in (floor, cached))
    if mean_ms < max(SLOW_MS_MIN, SLOW * seen.rtt_ms, UNEVEN * floor.p50_ms):
        return ""
    return (
        f"The CPU of the array is the limit: it works in turns. The median 4K read at depth 1 takes "
        f"{floor.p50_ms:.3g} ms, the mean {floor.mean_ms_at_depth_1:.3g} ms and the 99th percentile {floor.p99_ms:.3g} "
        f"ms, also from the array's memory, while this host has CPU left. Other programs there, or a limit on its CPU "
        f"time, take the rest."
    )


def _round_trip(seen: Evidence) -> str:
    floor = seen.measured["floor"]
    if seen.rtt_ms < 0.5 * floor.p50_ms:
        return ""
    return (
        f"The round trip is the limit: {seen.rtt_ms:.2g} ms of the {floor.p50_ms:.3g} ms of a 4K read at depth 1. More "
        "I/Os in flight raise the rate."
    )


def _nothing_full(seen: Evidence) -> str:
    floor, large = seen.measured["floor"], seen.measured["large"]
    return (
        f"Nothing was full: a 4K read takes {floor.p50_ms:.3g} ms ({seen.rtt_ms:.2g} ms of it the round trip), one "
        f"session reads {large.mb_s:.0f} MB/s, and more sessions do not change that by much."
    )


_CAUSES: tuple[tuple[Limit, Callable[[Evidence], str]], ...] = (
    ("mtu black hole", _black_hole),
    ("loss", _loss),
    ("delayed acknowledgement", delayed_ack),
    ("disks", _disks),
    ("line", full_line),
    ("window", _window),
    ("line", line_by_raw),
    ("line", line_of_any_rate),
    ("this host's CPU", _this_host),
    ("array", _array),
    ("round trip", _round_trip),
)
