"""The figures that a study compares: times of one kind, for paced and other loads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from linerate.analysis import summarise
from linerate.analysis.figures import figures_of

from tests.support.samples.synthetic import Load, make_run

PACED = {"arrival": {"kind": "open", "process": "deterministic", "rate_iops": 40_000.0}}
LOAD = Load(intervals=6, warmup=1, volumes=2, wait_ms=400.0)


def times(folder: Path, load: Load) -> tuple[float, float]:
    (step,) = summarise(make_run(folder, [load]))
    figures = figures_of(step)
    return figures["response_ms"], figures["p99_ms"]


def test_a_stalled_paced_run_shows_the_stall_in_both_times(tmp_path: Path) -> None:
    """Every I/O waits 400 ms for its turn and takes about 1 ms then: no application saw 1 ms."""
    mean_ms, p99_ms = times(tmp_path / "run", replace(LOAD, spec=PACED))
    assert mean_ms == pytest.approx(401, abs=1)
    assert 401 < p99_ms < 410


def test_a_closed_loop_has_service_times_only(tmp_path: Path) -> None:
    mean_ms, p99_ms = times(tmp_path / "run", LOAD)
    assert mean_ms == pytest.approx(1.07, abs=0.02)
    assert 1 < p99_ms < 5
