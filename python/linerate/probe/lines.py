"""Whether a line is full: one of a usual rate, one that raw TCP fills too, or one of any rate that all I/Os share."""

from __future__ import annotations

from linerate.analysis.limits.wire import FRAME_BYTES, HEADERS_BYTES, line_rate_text, on_wire
from linerate.probe.beside_raw import as_raw, is_below_raw
from linerate.probe.evidence import LOOPBACK, Evidence, TrialResult
from linerate.probe.windows import MORE

LINE_RATES_MBIT_S = (100.0, 1000.0, 2500.0, 5000.0, 10_000.0, 25_000.0, 40_000.0, 50_000.0, 100_000.0)
LINE_FULL = (0.93, 1.04)  # of a line's rate, headers counted
ALIKE = 1.03  # rates of large reads over one session and over several that are the same
ALIKE_SMALL = 1.06  # the same of small reads, whose requests and status are not counted
WAITS = 2.0  # times of a read with many in flight, in those of one alone: they wait for each other
DATA_IN_BYTES = 48  # header of the PDU of each answer


def full_line(seen: Evidence) -> str:
    """The sentence for a full line of a usual rate, else nothing."""
    best = max(seen.bulk, key=lambda one: one.mb_s)
    if seen.port == LOOPBACK or best.is_host_full or is_below_raw(seen):
        return ""
    if best.is_several and best.mb_s > MORE * seen.measured["large"].mb_s:
        return ""  # a line that one session does not fill is not what limits it
    on_wire_mbit_s = 8 * best.mb_s * on_wire(seen.mtu_bytes)
    line = next(
        (rate for rate in LINE_RATES_MBIT_S if LINE_FULL[0] <= on_wire_mbit_s / rate <= LINE_FULL[1]), None
    )
    if line is None:
        return ""
    return (
        f"The line is full: {best.mb_s:.0f} MB/s of data are {on_wire_mbit_s:,.0f} Mbit/s of frames, "
        f"{min(100.0, 100 * on_wire_mbit_s / line):.0f} % of {line_rate_text(line)}{_narrower(seen, line)}."
    )


def line_by_raw(seen: Evidence) -> str:
    """A loopback has no line, and a full load thread is the limit of iSCSI alone."""
    return "" if seen.port == LOOPBACK or seen.measured["large"].is_host_full else as_raw(seen)


def line_of_any_rate(seen: Evidence) -> str:
    """The sentence for a limit on bytes that all reads share, else nothing.

    4K random and 256K sequential reads, of one session and of several, bring the same bytes per second with their
    frames. CPUs, disks and windows do not do that: small I/Os cost them more per byte, or several sessions less.
    A slow line ends few large I/Os in the measured time, so each rate may be one I/O off.
    """
    small, floor, large = (seen.measured[name] for name in ("small", "floor", "large"))
    several = [one for one in seen.bulk if one.is_several and not one.trial.is_write]
    if seen.port == LOOPBACK or not several or small.is_host_full or large.is_host_full or is_below_raw(seen):
        return ""
    rates = [one.mb_s for one in (large, *several)]
    counted = 2 * max(one.share_of_one_io for one in (large, *several))
    if max(rates) > (ALIKE + counted) * min(rates) or small.p50_ms < WAITS * floor.p50_ms:
        return ""
    large_mbit_s, small_mbit_s = _frames_mbit_s(large, seen.mtu_bytes), _frames_mbit_s(small, seen.mtu_bytes)
    if max(large_mbit_s, small_mbit_s) > (ALIKE_SMALL + counted) * min(large_mbit_s, small_mbit_s):
        return ""
    return (
        f"A line, or a limit on its rate, is full: 256K reads bring {large.mb_s:.3g} MB/s over one session as over "
        f"several, and 4K reads {small.mb_s:.3g} MB/s. That is about {large_mbit_s:,.0f} Mbit/s of frames, which no "
        "usual line has: a shaped or shared link, or a rate limit of a switch, a virtual machine or the array."
    )


def _frames_mbit_s(one: TrialResult, mtu_bytes: int) -> float:
    """Frames of the answers of a trial, in full frames but the last."""
    data_bytes = one.trial.size_bytes + DATA_IN_BYTES
    frames = -(-data_bytes // (mtu_bytes - HEADERS_BYTES))
    return 8 * one.mb_s * (data_bytes + frames * (HEADERS_BYTES + FRAME_BYTES)) / one.trial.size_bytes


def _narrower(seen: Evidence, line_mbit_s: float) -> str:
    port_mbit_s = seen.port_mbit_s or 0.0
    if port_mbit_s <= line_mbit_s:
        return ""
    return f". The port {seen.port} of this host has {line_rate_text(port_mbit_s)}, so a narrower link is behind it"
