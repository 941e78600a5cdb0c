"""What limited a run: each limit from planted figures, and one sentence for several steps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from linerate.analysis import bottleneck, limit_of, summarise

from tests.support.samples.synthetic import ENVIRONMENT, Load, make_run

LOAD = Load(intervals=4, warmup=0, volumes=2, points=5)
PACED = {"arrival": {"kind": "open", "process": "poisson", "rate_iops": 40_000.0}}
LINE_BYTES = round(10e9 / 8 * 8948 / 9038)
"""Payload per second that fills a line of 10 Gbit/s at MTU 9000."""

CASES = {
    "host CPU": (replace(LOAD, usage={"load_cpu_user_s": 0.99}), "its 1 worker kept"),
    "link": (
        replace(LOAD, usage={"bytes_received": 99 * LINE_BYTES // 100}),
        "eth1 was full: it received at 99 %",
    ),
    "receive window": (replace(LOAD, usage={"rwnd_limited_us": 300_000}), "receive window was too small"),
    "loss": (replace(LOAD, usage={"retransmits": 5_000}), "segments were sent again"),
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
