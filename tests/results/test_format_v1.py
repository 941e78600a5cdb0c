"""The checked-in run of format 1 stays readable for later versions."""

from __future__ import annotations

from pathlib import Path

import pytest
from linerate.analysis import check_run, summarise
from linerate.report import write_vdbench_output
from linerate.report.page import write_report
from linerate.results import RunDirectory

SAMPLE = Path(__file__).parents[1] / "support" / "samples" / "run-v1"
IOS = [503234, 50173, 43955]
P99_MS = [2.656255, 2.684927, 2.504703]


@pytest.fixture(scope="module")
def run() -> RunDirectory:
    return RunDirectory.open(SAMPLE)


def test_its_manifest_is_read(run: RunDirectory) -> None:
    manifest = run.manifest
    assert (manifest.format, manifest.format_version, run.state) == ("linerate-run", 1, "complete")
    assert [step.key for step in manifest.steps] == ["rd1", "rd2", "rd3"]
    assert manifest.environment["sysctl.net.ipv4.tcp_congestion_control"] == "cubic"
    assert manifest.steps[0].facts["driver"] == "io_uring"
    assert manifest.workload.text.startswith("* three workloads over eight volumes")
    assert run.damage() == []


def test_its_figures_are_the_ones_it_was_written_with(run: RunDirectory) -> None:
    assert (run.intervals.height, run.usage.height, len(run.events)) == (224, 42, 1)
    steps = summarise(run)
    assert [step.total.ios for step in steps] == IOS
    p99 = [step.total.quantile(0.99) for step in steps]
    assert [item.value_ms for item in p99 if item] == pytest.approx(P99_MS, rel=2e-3)
    assert all(volume.total.quantiles for step in steps for volume in step.volumes)


@pytest.mark.long
def test_it_can_still_be_judged_and_reported(run: RunDirectory, tmp_path: Path) -> None:
    assert check_run(run).stamp == "caution"
    assert write_report(run, tmp_path / "report.html").stat().st_size > 50_000
    write_vdbench_output(run, tmp_path / "vdbench")
    assert (tmp_path / "vdbench" / "flatfile.html").exists()
