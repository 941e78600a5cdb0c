"""Which TCP window holds one session back: its name, its owner, and what to try.

A sender may have one window on the way per round trip (RFC 9293 3.8.6, RFC 5681): the smaller one of the receiver's
window and its own congestion window, and no more than its send buffer holds. Of reads the array is the sender: this
host knows its own receive window only. Of writes this host is the sender, and its kernel counts what it waited for.
"""

from __future__ import annotations

from dataclasses import dataclass

from linerate.probe.evidence import LOOPBACK, Evidence, TrialResult
from linerate.probe.hints import OWN_WINDOW_FIXED, OWN_WINDOW_MOST, SEVERAL_SESSIONS, Hint
from linerate.probe.tcp_state import TcpState

RTT_MS_MIN = 0.1  # below, a window of any size is refilled in time
MORE = 1.4  # others carry so many times as much: this one was held back
WINDOW_SHARE = 0.6  # of what was asked to be in flight
FILLED = 0.5  # of a window; auto-tuning keeps a receive window at twice of what comes per round trip, or more
FILLED_FIXED = 0.25  # of a window that cannot grow: this host and the array need a part of each turn
WAITED_PERCENT = 50.0  # of the time with data to send
SPARE = 2.0  # a window so many times as large as what is on the way is not full
QUEUED = 2.0  # a round trip so many times as long as on an empty path: frames wait in a queue

_SEND_BUFFER = Hint(
    "send_buffer_max_bytes", "", "the largest send buffer of the array (net.ipv4.tcp_wmem there, third value)"
)
_SEND_BUFFER_FIXED = Hint(
    "send_buffer_bytes=auto-tuned", "dsn-sessions", "a fixed buffer turns the kernel's tuning off"
)
_OWN_SEND_BUFFER = Hint(
    "send_buffer_max_bytes", "", "the largest send buffer of this host (net.ipv4.tcp_wmem here, third value)"
)
_ARRAY_WINDOW = Hint(
    "receive_buffer_max_bytes",
    "",
    "the largest receive buffer of the array (net.ipv4.tcp_rmem there, third value)",
)
_CONGESTION_CONTROL = Hint("congestion_control", "", "how fast this host's window grows again after a loss")


@dataclass(frozen=True, slots=True)
class Held:
    """What holds one session back, in a sentence with the figures, and what to try."""

    sentence: str
    hints: tuple[Hint, ...]


def window(seen: Evidence) -> Held | None:
    """The window that holds reads back, else the one that holds writes back; None if none does, as on a loopback."""
    return None if seen.port == LOOPBACK else _of_reads(seen) or held_writes(seen)


def _of_reads(seen: Evidence) -> Held | None:
    one = seen.measured["large"]
    best = max((more for more in seen.bulk if more.is_several), key=lambda more: more.mb_s)
    if not _is_held(one, best, seen.rtt_ms):
        return None
    whose, hints = _reader(one, seen.rtt_ms)
    return Held(
        f"One session is held back by its TCP window: it carries {_rate(one, seen.rtt_ms)}. {_words(best)} carry "
        f"{best.mb_s:.0f} MB/s.{whose}",
        hints,
    )


def _reader(one: TrialResult, rtt_ms: float) -> tuple[str, tuple[Hint, ...]]:
    """Whose window reads fill, and what to try."""
    state = one.tcp_state
    is_fixed = "recv_buffer_bytes" in one.fixed_buffers
    hints = (OWN_WINDOW_FIXED if is_fixed else SEVERAL_SESSIONS, OWN_WINDOW_MOST)
    if state is None:
        return "", hints
    on_the_way_bytes = _per_round_trip(one, max(rtt_ms, state.receive_rtt_ms or 0.0))
    own_kib = state.receive_window_bytes / 1024
    if on_the_way_bytes >= (FILLED_FIXED if is_fixed else FILLED) * state.receive_window_bytes:
        return f" It is the receive window of this host, {own_kib:.0f} KiB.", hints
    return (
        f" The receive window of this host is not full ({own_kib:.0f} KiB): it is the congestion window or the send "
        "buffer of the array.",
        (_SEND_BUFFER, SEVERAL_SESSIONS),
    )


def held_writes(seen: Evidence) -> Held | None:
    """The window that holds writes back.

    Only where reads or several sessions carry more: a path that carries no more is not held back by a window.
    """
    one = seen.measured.get("write")
    best = max(seen.bulk, key=lambda more: more.mb_s)
    if one is None or one.tcp_state is None or not _is_held(one, best, seen.rtt_ms):
        return None
    whose, hints = _writer(one.tcp_state, one, seen.rtt_ms)
    if not whose:
        return None
    return Held(
        f"Writes of one session are held back by a TCP window: they carry {_rate(one, seen.rtt_ms)}; "
        f"{_words(best)} carry {best.mb_s:.0f} MB/s. {whose}",
        hints,
    )


def _writer(state: TcpState, one: TrialResult, rtt_ms: float) -> tuple[str, tuple[Hint, ...]]:
    """Whose window writes fill, and what to try; no words if they fill none. A slow array closes its window too,
    but much less than a window is on the way then."""
    on_the_way_bytes = _per_round_trip(one, max(rtt_ms, state.rtt_ms))
    if state.rwnd_limited_percent >= WAITED_PERCENT and _fills(on_the_way_bytes, state.peer_window_bytes):
        return (
            f"It is the receive window of the array, {state.peer_window_bytes / 1024:.0f} KiB: this host waited for "
            f"it in {state.rwnd_limited_percent:.0f} % of the time with data to send.",
            (_ARRAY_WINDOW, SEVERAL_SESSIONS),
        )
    # the kernel does not count a wait for a small buffer while the load has another send in the queue
    is_small = _fills(on_the_way_bytes, state.send_buffer_bytes) and (
        state.congestion_window_bytes >= SPARE * on_the_way_bytes
    )
    if state.sndbuf_limited_percent >= WAITED_PERCENT or is_small:
        return (
            f"It is the send buffer of this host, {state.send_buffer_bytes / 1024:.0f} KiB.",
            (
                _SEND_BUFFER_FIXED if "send_buffer_bytes" in one.fixed_buffers else SEVERAL_SESSIONS,
                _OWN_SEND_BUFFER,
            ),
        )
    if _fills(on_the_way_bytes, state.congestion_window_bytes) and state.rtt_ms < QUEUED * rtt_ms:
        return (
            f"It is the congestion window of this host, {state.congestion_window_bytes / 1024:.0f} KiB.",
            (_CONGESTION_CONTROL, SEVERAL_SESSIONS),
        )
    return "", ()


def _fills(on_the_way_bytes: float, window_bytes: int) -> bool:
    """Whether a window limits this; one of 0 bytes is not known."""
    return on_the_way_bytes >= FILLED * window_bytes > 0


def _is_held(one: TrialResult, best: TrialResult, rtt_ms: float) -> bool:
    """Whether one session carries much less than the best, and has less on the way than was asked for."""
    return (
        rtt_ms >= RTT_MS_MIN
        and best.mb_s >= MORE * one.mb_s
        and not one.is_host_full
        and _per_round_trip(one, rtt_ms) <= WINDOW_SHARE * one.in_flight_bytes
    )


def _per_round_trip(one: TrialResult, rtt_ms: float) -> float:
    """Bytes; MB/s times ms."""
    return 1000 * one.mb_s * rtt_ms


def _rate(one: TrialResult, rtt_ms: float) -> str:
    return (
        f"{one.mb_s:.0f} MB/s, which is {_per_round_trip(one, rtt_ms) / 1024:.0f} KiB per round trip of "
        f"{rtt_ms:.2g} ms, while {one.in_flight_bytes >> 10} KiB were asked for"
    )


def _words(one: TrialResult) -> str:
    if not one.is_several:
        return one.trial.title
    sessions, connections = one.trial.sessions, one.trial.connections
    return f"{sessions} sessions" if sessions > 1 else f"{connections} connections of one session"
