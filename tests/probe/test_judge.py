"""The judgement of a probe: each planted cause is named, and a healthy path has none of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from linerate.probe import FrameSizes, Tcp, judge, trials
from linerate.probe.hints import HINTS, hints_for
from linerate.probe.trials import Name
from linerate.settings import find
from linerate.study import shipped_studies

from tests.probe.evidence import RTT_MS, evidence, without_trials

HOLE = FrameSizes(9000, (576, 1280, 1500), (), (2000, 9000), RTT_MS)
GAPS = Tcp(received_segments=100_000, out_of_order=2500)
FULL_MB_S = 117.7  # 1 Gbit/s at MTU 1500

Changes = dict[Name, dict[str, Any]]
BULK: tuple[Name, ...] = ("large", "sessions", "connections")
PLANTED: dict[str, tuple[str, Changes, tuple[str, ...]]] = {
    "retransmits": (
        "loss",
        {"write": {"tcp": Tcp(sent_segments=20_000, retransmits=90)}},
        ("90 segments that this host sent (0.1 %)",),
    ),
    "gaps": ("loss", {"large": {"tcp": GAPS}}, ("2,500 segments that came in (1.5 %) followed a gap",)),
    "stall of reads": ("delayed acknowledgement", {"floor": {"p50_ms": 40.4, "p99_ms": 41.0}}, ("40 ms",)),
    "stall of some writes": (
        "delayed acknowledgement",
        {"write_floor": {"p99_ms": 43.0}},
        ("43 ms", "8K random"),
    ),
    "late acknowledgement": ("delayed acknowledgement", {"floor": {"p99_ms": 201.0}}, ("201 ms",)),
    "full line": (
        "line",
        {name: {"mb_s": FULL_MB_S} for name in BULK},
        ("1 Gbit/s", "10 Gbit/s", "narrower"),
    ),
    "line of an unusual rate": (
        "line",
        {
            "small": {"mb_s": 28.7, "p50_ms": 4.5, "host_busy_percent": 99.0},
            "large": {"mb_s": 29.4, "host_busy_percent": 99.0},
            "sessions": {"mb_s": 29.3},
            "connections": {"mb_s": 29.4},
        },
        ("29.4 MB/s over one session", "28.7 MB/s", "250 Mbit/s", "rate limit"),
    ),
    "small window": (
        "window",
        {"large": {"mb_s": 60.0}, "sessions": {"mb_s": 200.0}, "connections": {"mb_s": 190.0}},
        ("60 MB/s", "12 KiB", "4096 KiB", "4 sessions carry 200"),
    ),
    "full load thread": ("this host's CPU", {"large": {"load_cores": 0.97}}, ("0.97 CPUs",)),
    "busy host": ("this host's CPU", {"small": {"host_busy_percent": 96.0}}, ("96 % busy",)),
    "slow disks": ("disks", {"floor": {"p50_ms": 8.0}}, ("8 ms", "0.25 ms", "0.2 ms")),
    "busy array": ("array", {"floor": {"p50_ms": 2.0}, "cached": {"p50_ms": 1.9}}, ("2 ms", "20,000")),
    "array that works in turns": (
        "array",
        {"floor": {"iops": 500.0, "p99_ms": 9.0}, "cached": {"iops": 550.0, "p99_ms": 8.0}},
        ("in turns", "takes 0.25 ms", "mean 2 ms", "percentile 9 ms"),
    ),
    "round trip": ("round trip", {}, ("0.2 ms of the 0.25 ms",)),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_cause_is_named(name: str) -> None:
    limit, changes, words = PLANTED[name]
    answer = judge(evidence(changes))
    assert answer.limit == limit
    assert all(word in answer.sentence for word in words), answer.sentence
    assert len(answer.hints) == 2


def test_frames_that_vanish_are_the_limit_only_if_tcp_sends_them() -> None:
    stalled = judge(without_trials(HOLE))
    assert stalled.limit == "mtu black hole"
    assert "above 1500 bytes vanish" in stalled.sentence
    assert "logged in" in stalled.sentence
    large = {"snd_mss": 8948}
    assert judge(evidence({"floor": {"session": large}}, HOLE)).limit == "mtu black hole"
    agreed = judge(evidence(frames=HOLE))
    assert agreed.limit == "round trip"
    assert "vanish" in agreed.notes[0]


def test_frames_that_are_refused_are_no_black_hole() -> None:
    refused = FrameSizes(9000, (576, 1280, 1500), (2000, 9000), (), RTT_MS)
    answer = judge(evidence(frames=refused))
    assert (answer.limit, answer.notes) == ("round trip", ())


def test_slow_disks_beside_a_full_line() -> None:
    full: Changes = {name: {"mb_s": FULL_MB_S} for name in BULK}
    answer = judge(evidence(full | {"floor": {"p50_ms": 12.0}}))
    assert answer.limit == "disks"
    assert answer.notes[0].startswith("For large sequential I/O: The line is full")


@pytest.mark.parametrize(("p50_ms", "limit"), [(1.5, "line"), (12.0, "disks")])
def test_slow_reads_of_a_busy_host_must_be_very_slow(p50_ms: float, limit: str) -> None:
    changes: Changes = {name: {"mb_s": FULL_MB_S} for name in BULK}
    changes |= {"floor": {"p50_ms": p50_ms, "host_busy_percent": 99.0}}
    assert judge(evidence(changes)).limit == limit


@pytest.mark.parametrize(
    "changes",
    [
        # a cache in front of slow disks: what is in the cache is fast
        {"floor": {"iops": 500.0, "p99_ms": 12.0}},
        # this host has no CPU left itself
        {"floor": {"iops": 500.0, "host_busy_percent": 97.0}, "cached": {"iops": 550.0}},
        # a little uneven
        {"floor": {"iops": 2500.0}, "cached": {"iops": 2500.0}},
    ],
)
def test_a_mean_above_the_median_is_not_always_the_array(changes: Changes) -> None:
    assert judge(evidence(changes)).limit != "array"


@pytest.mark.parametrize(
    "changes",
    [
        # small reads bring fewer bytes: a CPU, or disks
        {"small": {"mb_s": 20.0}},
        # several sessions bring more
        {"sessions": {"mb_s": 32.0}},
        # a deep queue is no slower than one read: nothing is full
        {"small": {"mb_s": 28.7, "p50_ms": 0.3}},
    ],
)
def test_rates_that_differ_are_no_line(changes: Changes) -> None:
    same: Changes = {name: {"mb_s": 29.4} for name in BULK}
    same["small"] = {"mb_s": 28.7, "p50_ms": 4.5}
    assert judge(evidence(same)).limit == "line"
    differ = {name: {**same.get(name, {}), **changes.get(name, {})} for name in same}
    assert judge(evidence(differ)).limit != "line"


@pytest.mark.parametrize(("seconds", "limit"), [(1.6, "line"), (160.0, "round trip")])
def test_few_large_reads_of_a_slow_line_are_one_off(seconds: float, limit: str) -> None:
    """As seen on a line of 40 Mbit/s: 29 reads of 256K in 1.6 s over one session, and 31 over several."""
    several = {"iops": 19.125, "mb_s": 5.0135, "seconds": seconds}
    changes: Changes = {
        "small": {"iops": 1132.6, "mb_s": 4.64, "p50_ms": 28.3},
        "large": {"iops": 18.0625, "mb_s": 4.735, "seconds": seconds},
        "sessions": several,
        "connections": several,
    }
    assert judge(evidence(changes)).limit == limit


def test_a_full_line_that_overflows_is_the_limit_and_one_that_loses_always_is_not() -> None:
    """As seen in a virtual SAN: 100 Mbit/s 4 ms away with a queue of 256 KiB, and a line of the same rate with loss."""

    def rates(rtt_ms: float, gaps: int, of_small: Tcp) -> Changes:
        bulk = Tcp(1000 * rtt_ms, received_segments=14_000, out_of_order=gaps)
        return {
            **{name: {"mb_s": 11.8, "tcp": bulk} for name in BULK},
            **{name: {"tcp": of_small} for name in ("floor", "cached", "write_floor", "small")},
            "write": {"mb_s": 11.8},
        }

    overflows = judge(evidence(rates(18.0, 1100, Tcp(received_segments=2500))))
    assert overflows.limit == "line"
    assert "only while the line was full" in overflows.notes[0]
    loses = rates(2.0, 500, Tcp(received_segments=5000, out_of_order=6))
    assert judge(evidence(loses)).limit == "loss"
    too_few = rates(18.0, 1100, Tcp(received_segments=100))
    assert judge(evidence(too_few)).limit == "loss", "too few segments of small I/O to tell"
    full = rates(18.0, 1100, Tcp(received_segments=2500))
    not_full = {name: {**one, "mb_s": 9.0} if "mb_s" in one else one for name, one in full.items()}
    assert judge(evidence(not_full)).limit == "loss"


def test_frames_that_are_large_already_are_no_hint() -> None:
    for limit in HINTS:
        assert len(hints_for(limit, 65_536)) == len(hints_for(limit, 1500)) == 2
        assert not any(hint.setting == "mtu=9000" for hint in hints_for(limit, 9000))
    assert [hint.setting for hint in hints_for("line", 1500)] == ["multipath.paths", "mtu=9000"]


def test_a_line_that_one_session_does_not_fill_is_not_its_limit() -> None:
    changes: Changes = {name: {"mb_s": FULL_MB_S} for name in BULK} | {"large": {"mb_s": 30.0}}
    assert judge(evidence(changes)).limit == "window"


def test_a_loopback_reorders_and_has_no_line() -> None:
    changes: Changes = {"large": {"tcp": GAPS, "mb_s": FULL_MB_S}}
    assert judge(replace(evidence(changes), port="lo")).limit == "round trip"


def test_a_few_segments_sent_again_are_no_loss() -> None:
    assert judge(evidence({"floor": {"tcp": Tcp(sent_segments=100, retransmits=9)}})).limit == "round trip"


def test_segments_that_came_late_are_no_loss() -> None:
    late = Tcp(sent_segments=100, retransmits=90)
    assert judge(evidence({"sessions": {"tcp": late}})).limit == "loss"
    known = replace(late, needless_retransmits=85)
    assert judge(evidence({"sessions": {"tcp": known}})).limit == "round trip"
    assert judge(replace(evidence({"sessions": {"tcp": late}}), port="lo")).limit == "round trip"


def test_nothing_full() -> None:
    answer = judge(evidence({"floor": {"p50_ms": 0.5}, "cached": {"p50_ms": 0.5}}))
    assert answer.limit == "unknown"
    assert "Nothing was full" in answer.sentence


def test_without_an_echo_tcp_tells_the_round_trip() -> None:
    seen = evidence(frames=FrameSizes(1500, why_not="the array answers no echo (ping)"))
    assert seen.rtt_ms == pytest.approx(RTT_MS)
    late = evidence({"floor": {"tcp": Tcp(rtt_us=40_000)}}, seen.frames)
    assert late.rtt_ms == late.measured["floor"].p50_ms


def test_hints_name_settings_and_studies_that_exist() -> None:
    studies = set(shipped_studies())
    for hint in (hint for hints in HINTS.values() for hint in hints):
        assert hint.study in studies
        find(hint.setting.partition("=")[0])


def test_writes_are_tried_only_where_they_are_wanted() -> None:
    assert not any(trial.is_write for trial in trials(writes=False))
    assert sum(trial.is_write for trial in trials(writes=True)) == 2
