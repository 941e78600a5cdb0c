"""Which limit is named, from which figures; and the figures themselves, from a run and the laboratory's counters."""

from __future__ import annotations

from pathlib import Path

import pytest
from linerate.analysis import summarise
from linerate.analysis.figures import UNCERTAIN_S
from linerate.analysis.verdict import Observation, attribute, figures_of

from tests.support.samples.synthetic import Load, make_run

IDLE = {
    "iops": 20_000.0,
    "mib_s": 156.0,
    "response_ms": 1.6,
    "queue_depth": 32.0,
    "rtt_us": 100.0,
    "link_percent": 40.0,
    "link.h1.p0.received_percent": 40.0,
    "machine_busy_percent": 35.0,
    "retransmit_percent": 0.0,
}


@pytest.mark.parametrize(
    ("figures", "limit", "says"),
    [
        (
            {"fabric_lag_ms": 2.5, "fabric_cores": 0.98, "link.h1.p0.received_percent": 99.0},
            "fabric lag",
            "2.5 ms behind, gave up 0.0 % of the time and used 0.98 CPUs",
        ),
        ({"fabric_lag_ms": 30.0, "fabric_given_up_percent": 4.0}, "fabric lag", "gave up 4.0 % of the time"),
        ({"fabric_lag_ms": 30.0, "fabric_cores": 0.3}, "array service", "32 I/Os in flight"),
        (
            {"link.h1.p0.received_percent": 98.4, "link_percent": 98.4, "machine_busy_percent": 95.0},
            "link",
            "The link h1.p0 was full: it received at 98 % of its rate.",
        ),
        (
            {"link.a1.p1.sent_percent": 99.0, "link_percent": 99.0, "retransmit_percent": 5.1},
            "link",
            "a1.p1 was full: it sent at 99 % of its rate, with 5.1 % retransmits",
        ),
        (
            {"retransmit_percent": 2.0, "dropped_frames": 812.0},
            "loss",
            "2 % of the TCP segments were retransmits; adapters and switches dropped 812 frames, with the",
        ),
        (
            {"array_rwnd_limited_percent": 71.0, "retransmit_percent": 1.3},
            "receive window",
            "The host's receive window was too small: the array waited for it in 71 %",
        ),
        (
            {"host_rwnd_limited_percent": 71.0},
            "receive window",
            "The array's receive window was too small: the host",
        ),
        (
            {"host_sndbuf_limited_percent": 45.0},
            "send buffer",
            "The host's send buffer was too small: the host",
        ),
        (
            {
                "machine_busy_percent": 96.0,
                "foreign_percent": 3.0,
                "host_cores": 0.9,
                "array_cores": 0.7,
                "fabric_cores": 0.3,
            },
            "machine CPU",
            "96 % busy (CPUs: host 0.90, array 0.70, fabric 0.30), with the busiest link at 40 %",
        ),
        (
            {"rtt_us": 1200.0},
            "latency",
            "Latency: 32 I/Os in flight, 1.6 ms each, 1.2 ms of it the round trip, give 20000",
        ),
        (
            {"rtt_us": 1900.0},
            "latency",
            "Latency: 32 I/Os in flight, 1.6 ms each, no more than TCP's round trip of 1.9 ms, give 20000",
        ),
        ({}, "array service", "32 I/Os in flight, 1.6 ms each, 0.1 ms of it the round trip, give 20000 IOPS"),
    ],
)
def test_the_limit_that_hides_the_others_is_named(figures: dict[str, float], limit: str, says: str) -> None:
    (found,) = attribute([Observation("case", "w", 0, {**IDLE, **figures})])
    assert found.limit == limit
    assert says in found.sentence
    assert found.sentence.endswith(".")


FULL_LINK = {"link.h1.p0.received_percent": 97.0, "link_percent": 97.0}


def test_a_load_that_kept_its_pace_was_held_back_by_nothing() -> None:
    (found,) = attribute([Observation("case", "w", 0, {**IDLE, **FULL_LINK, "asked_iops": 20_100.0})])
    assert found.limit == "load"
    assert "paced at 20100 IOPS and 20000 were done, 1.6 ms each" in found.sentence
    assert "the busiest link at 97 %" in found.sentence


def test_a_load_that_fell_short_of_its_pace_was_held_back() -> None:
    (found,) = attribute([Observation("case", "w", 0, {**IDLE, **FULL_LINK, "asked_iops": 25_000.0})])
    assert found.limit == "link"


def test_a_lan_stream_alone_is_no_paced_load() -> None:
    """Beside LAN traffic alone a few I/Os keep time; their rate is left out of the figures."""
    (found,) = attribute([Observation("case", "w", 0, {**FULL_LINK, "asked_iops": 20.0})])
    assert found.limit == "link"


def test_of_what_must_not_happen_the_worst_block_counts() -> None:
    seen = [
        Observation("case", "w", block, {**IDLE, "io_errors": errors})
        for block, errors in enumerate((0, 2, 0))
    ]
    (found,) = attribute(seen)
    assert found.figures["io_errors"] == 2


@pytest.mark.parametrize("side", ["host", "array"])
def test_real_hosts_have_a_cpu_of_their_own(side: str) -> None:
    figures = {name: value for name, value in IDLE.items() if name != "machine_busy_percent"}
    (found,) = attribute([Observation("case", "w", 0, {**figures, f"{side}_cpu_percent": 93.0})])
    assert found.limit == f"{side} CPU"
    assert f"The {side}'s CPUs were 93 % busy" in found.sentence


def test_without_figures_nothing_is_made_up() -> None:
    (found,) = attribute([Observation("case", "w", 0, {})])
    assert (found.limit, found.sentence) == ("unknown", "No counter says what limited it.")


def test_the_figures_are_medians_over_the_blocks() -> None:
    seen = [
        Observation("case", "w", block, {**IDLE, "link.h1.p0.received_percent": percent})
        for block, percent in enumerate((98.0, 99.0, 12.0))
    ]
    (found,) = attribute(seen)
    assert found.limit == "link"
    assert found.figures["link.h1.p0.received_percent"] == 98.0


def test_figures_of_a_run_in_a_laboratory(tmp_path: Path) -> None:
    (summary,) = summarise(make_run(tmp_path, [Load(intervals=10, warmup=0)]))
    counters = {
        "machine.clock_s": 12.5,
        "machine.busy_s": 15.0,
        "machine.idle_s": 7.5,
        "machine.stolen_s": 2.5,
        "host.h1.cpu_s": 4.0,
        "host.h2.cpu_s": 1.0,
        "array.a1.cpu_s": 5.0,
        "fabric.cpu_s": 2.5,
        "supervisor.cpu_s": 0.5,
        "fabric.lag_ns_max": 300_000.0,
        "fabric.late_turns": 400.0,
        "fabric.late_ns": 0.125e9,
        "fabric.given_up_ns": 0.25e9,
        "host.h1.tcp_segments_sent": 1000.0,
        "host.h1.tcp_segments_retransmitted": 0.0,
        "array.a1.tcp_segments_sent": 200_000.0,
        "array.a1.tcp_segments_retransmitted": 500.0,
        "array.a1.tcp_busy_us": 1e6,
        "array.a1.tcp_rwnd_limited_us": 4e5,
        "port.h1.p0.bytes_received": 1_514e6,
        "port.h1.p0.frames_received": 1e6,
        "port.h1.p0.drops": 3.0,
        "port.h1.p0.switch_drops": 4.0,
    }
    figures = figures_of(summary, counters, {"h1.p0": 1e9, "h2.p0": 1e9})
    assert figures["iops"] == summary.total.iops
    assert figures["io_bytes"] == pytest.approx(8192)
    assert (figures["machine_busy_percent"], figures["stolen_percent"]) == (60, 10)
    assert (figures["host_cpu_percent"], figures["array_cpu_percent"]) == (20, 20)
    assert (figures["host_cores"], figures["fabric_cores"]) == (0.4, 0.2)
    assert (figures["fabric_lag_ms"], figures["fabric_given_up_percent"]) == (0.3, 2.0)
    assert figures["fabric_late_percent"] == pytest.approx(1)
    assert figures["foreign_percent"] == pytest.approx(100 * (15 - 13 - UNCERTAIN_S) / 25)
    assert (figures["host_retransmit_percent"], figures["array_retransmit_percent"]) == (0, 0.25)
    assert figures["retransmit_percent"] == 0.25
    assert figures["array_rwnd_limited_percent"] == pytest.approx(40)
    # a million frames of 1514 bytes and 24 more on the wire in 12.5 s of a gigabit line
    assert figures["link.h1.p0.received_percent"] == pytest.approx(100 * 1538e6 * 8 / 12.5 / 1e9)
    assert figures["link_percent"] == figures["link.h1.p0.received_percent"]
    assert not any(name.startswith("link.h2") for name in figures)
    assert figures["dropped_frames"] == 7
    assert not {"lan_mib_s", "iscsi_share_percent"} & figures.keys()


@pytest.mark.parametrize(
    ("busy_s", "idle_s", "ours_s", "percent"),
    [(0.07, 0.0, 0.03, 0), (0.9, 0.1, 0.45, 40), (0.9, 0.1, 0.95, 0)],
)
def test_other_programs_are_told_from_the_rounding_of_a_short_phase(
    busy_s: float, idle_s: float, ours_s: float, percent: float, tmp_path: Path
) -> None:
    (summary,) = summarise(make_run(tmp_path, [Load(intervals=10, warmup=0)]))
    counters = {"machine.busy_s": busy_s, "machine.idle_s": idle_s, "array.n1.cpu_s": ours_s}
    assert figures_of(summary, counters)["foreign_percent"] == pytest.approx(percent)


@pytest.mark.parametrize(("read_percent", "expected"), [(100.0, 0.25), (0.0, 4.0), (67.0, 4.0)])
def test_retransmits_are_those_of_the_side_that_sends_the_data(
    read_percent: float, expected: float, tmp_path: Path
) -> None:
    (summary,) = summarise(make_run(tmp_path, [Load(intervals=10, warmup=0, read_percent=read_percent)]))
    counters = {
        "host.h1.tcp_segments_sent": 100.0,
        "host.h1.tcp_segments_retransmitted": 4.0,
        "array.a1.tcp_segments_sent": 200_000.0,
        "array.a1.tcp_segments_retransmitted": 500.0,
    }
    assert figures_of(summary, counters)["retransmit_percent"] == expected
    del counters["array.a1.tcp_segments_sent"]
    assert figures_of(summary, counters)["retransmit_percent"] == 4.0


def test_lan_streams_share_the_line_and_not_the_retransmits(tmp_path: Path) -> None:
    (summary,) = summarise(make_run(tmp_path, [Load(intervals=10, warmup=0)]))
    counters = {"host.h1.tcp_segments_sent": 1000.0, "host.h1.tcp_segments_retransmitted": 80.0}
    assert figures_of(summary, counters)["retransmit_percent"] == 8
    beside = figures_of(summary, counters, lan_mib_s=summary.total.mib_s)
    assert beside["retransmit_percent"] == summary.usage.retransmits_percent == 0
    assert (beside["lan_mib_s"], beside["iscsi_share_percent"]) == (summary.total.mib_s, pytest.approx(50))


def test_figures_of_a_run_without_a_laboratory_are_those_of_the_load(tmp_path: Path) -> None:
    (summary,) = summarise(make_run(tmp_path, [Load(intervals=10, warmup=0)]))
    figures = figures_of(summary)
    assert figures["host_cpu_percent"] == summary.usage.cpu_busy_percent
    assert figures["retransmit_percent"] == summary.usage.retransmits_percent
    assert not {"array_cpu_percent", "link_percent", "fabric_lag_ms", "lan_mib_s"} & figures.keys()
