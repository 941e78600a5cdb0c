"""What limited a run: each limit from planted figures, and one sentence for several steps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from linerate.analysis import bottleneck, limit_of, summarise
from linerate.analysis.figures import LINE_RATES
from linerate.report.page.build import render_report

from tests.support.samples.synthetic import ENVIRONMENT, Load, make_run

LOAD = Load(intervals=4, warmup=0, volumes=2, points=5)
PACED = {"arrival": {"kind": "open", "process": "poisson", "rate_iops": 40_000.0}}
LINE_BYTES = round(10e9 / 8 * 8948 / 9038)
"""Payload per second that fills a line of 10 Gbit/s at MTU 9000."""

CASES = {
    "host CPU": (replace(LOAD, usage={"load_cpu_user_s": 0.99}), "its 1 worker kept"),
    "link": (
        replace(LOAD, usage={"bytes_received": 99 * LINE_BYTES // 100}),
        "The link eth1 at 10 Gbit/s was full: it received at 99 %",
    ),
    "receive window": (replace(LOAD, usage={"rwnd_limited_us": 300_000}), "receive window was too small"),
    "loss": (replace(LOAD, usage={"retransmits": 5_000}), "TCP segments were retransmits"),
    "load": (replace(LOAD, spec=PACED), "Nothing held it back"),
    "array service": (LOAD, "The time that the array"),
}


@pytest.mark.parametrize("limit", CASES)
def test_a_planted_limit_is_named(limit: str, tmp_path: Path) -> None:
    load, words = CASES[limit]
    run = make_run(tmp_path / "run", [load])
    found = bottleneck(run, summarise(run)[0])
    assert found.limit == limit
    assert words in found.sentence


def in_a_laboratory(rate_bits_per_s: object) -> Load:
    """Four seconds at 99 % of 250 Mbit/s, as the laboratory counts them at the host's port."""
    return replace(
        LOAD,
        counters={"machine.clock_s": 4.0, "port.h1.p0.bytes_received": 0.99 * 4 * 250e6 / 8},
        san={LINE_RATES: {"h1.p0": rate_bits_per_s}},
    )


@pytest.mark.long
def test_a_full_link_of_a_laboratory_is_named_with_its_rate(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [in_a_laboratory(250e6)])
    said = "The link h1.p0 at 250 Mbit/s was full: it received at 99 % of its rate."
    assert limit_of(run, summarise(run)) == said
    assert said in render_report(run)
    faster = make_run(tmp_path / "faster", [in_a_laboratory(10e9)])
    assert bottleneck(faster, summarise(faster)[0]).limit == "array service"


@pytest.mark.parametrize("rate", [0, "250", None])
def test_a_rate_that_is_none_is_left_out(rate: object, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [in_a_laboratory(rate)])
    assert bottleneck(run, summarise(run)[0]).limit == "array service"


def test_a_port_without_a_known_speed_is_no_limit(tmp_path: Path) -> None:
    facts = {key: value for key, value in ENVIRONMENT.items() if "speed" not in key}
    run = make_run(tmp_path / "run", [CASES["link"][0]], environment=facts)
    assert bottleneck(run, summarise(run)[0]).limit == "array service"


def test_a_run_without_io_says_that_nothing_is_known(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [replace(LOAD, iops=0)])
    assert limit_of(run, summarise(run)) == "No I/O was completed, so nothing can be said about a limit."


def test_several_steps_are_counted_by_their_limits(tmp_path: Path) -> None:
    paced = replace(LOAD, spec=PACED)
    run = make_run(tmp_path / "run", [LOAD, paced, paced])
    said = limit_of(run, summarise(run))
    assert said == "The limit was the rate that was asked for in 2 of 3 steps, the time per I/O in 1."
    alike = make_run(tmp_path / "alike", [LOAD, LOAD])
    assert limit_of(alike, summarise(alike)) == "In all 2 steps the limit was the time per I/O."
