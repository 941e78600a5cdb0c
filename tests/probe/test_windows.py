"""The cause "window" names whose window it is, and what to try for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from linerate.host import named
from linerate.probe import judge
from linerate.probe.hints import OWN_WINDOW_MOST
from linerate.probe.trials import Name
from linerate.probe.windows import _ARRAY_WINDOW, _OWN_SEND_BUFFER, _SEND_BUFFER

from tests.probe.evidence import WIDE, evidence

Changes = dict[Name, dict[str, Any]]
SLOW_READS: Changes = {"large": {"mb_s": 60.0}, "sessions": {"mb_s": 200.0}, "connections": {"mb_s": 190.0}}
PER_ROUND_TRIP_BYTES = 12_000  # of 60 MB/s at 0.2 ms
SMALL_BYTES = 16_384


@pytest.mark.parametrize(
    ("state", "words", "settings"),
    [
        (
            replace(WIDE, receive_window_bytes=SMALL_BYTES),
            "It is the receive window of this host, 16 KiB.",
            ["sessions_per_volume", "receive_buffer_max_bytes"],
        ),
        (
            WIDE,
            "The receive window of this host is not full (1024 KiB): it is the congestion window or the send buffer",
            ["send_buffer_max_bytes", "sessions_per_volume"],
        ),
        (
            # each turn takes longer than an echo, so more is on the way than an echo's time suggests
            replace(WIDE, receive_window_bytes=100_000, receive_rtt_ms=1.0),
            "It is the receive window of this host, 98 KiB.",
            ["sessions_per_volume", "receive_buffer_max_bytes"],
        ),
        (
            replace(WIDE, receive_window_bytes=100_000, receive_rtt_ms=None),
            "The receive window of this host is not full (98 KiB)",
            ["send_buffer_max_bytes", "sessions_per_volume"],
        ),
        (None, "190 MB/s", ["sessions_per_volume", "receive_buffer_max_bytes"]),
    ],
)
def test_reads(state: Any, words: str, settings: list[str]) -> None:
    changes: Changes = SLOW_READS | {"large": {"mb_s": 60.0, "tcp_state": state}}
    answer = judge(evidence(changes | {"sessions": {"mb_s": 150.0}}))
    assert answer.limit == "window"
    assert words in answer.sentence
    assert [hint.setting for hint in answer.hints] == settings


def test_a_fixed_buffer_cannot_grow() -> None:
    """So less of it tells, and the kernel's tuning is what to try."""
    state = replace(WIDE, receive_window_bytes=40_000)
    for fixed, words, first in (
        ((), "is not full", "send_buffer_max_bytes"),
        (("recv_buffer_bytes",), "It is the receive window of this host", "recv_buffer_bytes=auto-tuned"),
    ):
        held = {"mb_s": 60.0, "tcp_state": state, "fixed_buffers": fixed}
        answer = judge(evidence(SLOW_READS | {"large": held}))
        assert words in answer.sentence
        assert answer.hints[0].setting == first
    small = {"mb_s": 50.0, "tcp_state": replace(WIDE, send_buffer_bytes=SMALL_BYTES)}
    answer = judge(evidence({"write": small | {"fixed_buffers": ("send_buffer_bytes",)}}))
    assert answer.hints[0].setting == "send_buffer_bytes=auto-tuned"


@pytest.mark.parametrize(
    ("state", "words", "settings"),
    [
        (
            replace(WIDE, peer_window_bytes=SMALL_BYTES, rwnd_limited_percent=80.0),
            "It is the receive window of the array, 16 KiB: this host waited for it in 80 %",
            ["receive_buffer_max_bytes", "sessions_per_volume"],
        ),
        (
            replace(WIDE, sndbuf_limited_percent=70.0, send_buffer_bytes=SMALL_BYTES),
            "It is the send buffer of this host, 16 KiB.",
            ["sessions_per_volume", "send_buffer_max_bytes"],
        ),
        (
            replace(WIDE, send_buffer_bytes=SMALL_BYTES),
            "It is the send buffer of this host, 16 KiB.",
            ["sessions_per_volume", "send_buffer_max_bytes"],
        ),
        (
            replace(WIDE, congestion_window_bytes=SMALL_BYTES),
            "It is the congestion window of this host, 16 KiB.",
            ["congestion_control", "sessions_per_volume"],
        ),
    ],
)
def test_writes(state: Any, words: str, settings: list[str]) -> None:
    answer = judge(evidence({"write": {"mb_s": 50.0, "tcp_state": state}}))
    assert answer.limit == "window"
    assert words in answer.sentence
    assert [hint.setting for hint in answer.hints] == settings


@pytest.mark.parametrize(
    "change",
    [
        {"mb_s": 50.0},
        {"mb_s": 50.0, "tcp_state": None},
        # a slow array closes its window, but so much is never on the way
        {"mb_s": 50.0, "tcp_state": replace(WIDE, rwnd_limited_percent=90.0)},
        # frames wait in a queue
        {"mb_s": 50.0, "tcp_state": replace(WIDE, congestion_window_bytes=SMALL_BYTES, rtt_ms=2.0)},
        # nothing else is faster
        {"mb_s": 78.0, "tcp_state": replace(WIDE, congestion_window_bytes=SMALL_BYTES)},
    ],
)
def test_writes_that_no_window_holds(change: dict[str, Any]) -> None:
    assert judge(evidence({"write": change})).limit == "round trip"


def test_hints_name_the_sysctl_of_their_setting() -> None:
    hints = (_ARRAY_WINDOW, _OWN_SEND_BUFFER, _SEND_BUFFER, OWN_WINDOW_MOST)
    for hint, place in zip(hints, ("there", "here", "there", "here"), strict=True):
        sysctl, value = named(hint.setting).names.linux.split(" ", 1)
        assert f"({sysctl} {place}, {value.strip('()')})" in hint.why


def test_writes_beside_a_limit_of_reads_are_a_note() -> None:
    held = {"mb_s": 45.0, "tcp_state": replace(WIDE, congestion_window_bytes=SMALL_BYTES)}
    full: Changes = {name: {"mb_s": 117.7} for name in ("large", "sessions", "connections")}
    line = judge(evidence(full | {"write": held}))
    assert line.limit == "line"
    assert line.notes[0].startswith("Writes of one session are held back")
    both = judge(evidence(SLOW_READS | {"write": held}))
    assert both.limit == "window"
    assert both.sentence.startswith("One session")
    assert both.notes[0].startswith("Writes of one session are held back")
    assert judge(evidence({"write": held})).notes == ()
