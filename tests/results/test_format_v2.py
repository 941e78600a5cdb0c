"""The checked-in run of format 2 stays readable for later versions."""

from __future__ import annotations

from pathlib import Path

import pytest
from linerate.analysis import check_run, summarise
from linerate.results import RunDirectory

SAMPLE = Path(__file__).parents[1] / "support" / "samples" / "run-v2"


def test_its_figures_are_the_ones_it_was_written_with() -> None:
    run = RunDirectory.open(SAMPLE)
    assert (run.manifest.format_version, run.manifest.imported, run.damage()) == (2, None, [])
    (step,) = summarise(run)
    assert (step.total.ios, step.total.iops, step.total.errors) == (167_000, 41_750.0, 0)
    p99 = step.total.quantile(0.99)
    assert p99 is not None
    assert p99.value_ms == pytest.approx(2.301951)
    assert check_run(run) == run.manifest.validity
