"""Lines over I/O sizes: rates and CPU cost of a sweep, as the report draws them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import altair as alt
import pytest
from linerate.analysis import StepSummary, summarise
from linerate.report.page.build import render_report
from linerate.report.page.curves import response_curves
from linerate.report.page.sizes import cpu_cost, size_lines, size_points
from linerate.report.panels import charts
from linerate.results import RunDirectory

from tests.support.samples.synthetic import Load, make_run

LOAD = Load(intervals=3, warmup=0, volumes=1, points=5)
SIZES = {"size=16k": 16384, "size=1k": 1024, "size=4k": 4096}


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """Reads and writes of three sizes, not in their order, and a run of one size."""
    loads = [
        replace(LOAD, name=name, for_loops=loop, size_bytes=size, iops=4e6 / size)
        for name in ("read", "write")
        for loop, size in SIZES.items()
    ]
    return make_run(tmp_path / "run", [*loads, replace(LOAD, name="single")])


def _without_frequency(step: StepSummary) -> StepSummary:
    return replace(step, usage=replace(step.usage, cycles_per_byte=None))


def test_a_sweep_over_sizes_is_a_line_in_the_order_of_its_sizes(run: RunDirectory) -> None:
    lines = size_lines(summarise(run))
    assert lines.keys() == {"read", "write"}
    points, unit = size_points(lines)
    assert unit == "cycles per byte"
    assert [point["size_bytes"] for point in points] == [1024, 4096, 16384] * 2
    for point, step in zip(points, [step for steps in lines.values() for step in steps], strict=True):
        assert point["iops"] == pytest.approx(step.total.iops, abs=0.1)
        assert point["mib_s"] == pytest.approx(step.total.mib_s, abs=0.001)
        assert point["cpu"] == step.usage.cycles_per_byte
    assert "read, 4 KiB\n" in points[1]["say"]


def test_without_the_frequency_the_cost_is_cpu_time(run: RunDirectory) -> None:
    """One step without it is enough: a chart has one unit."""
    (first, *others), _ = size_lines(summarise(run)).values()
    cost = cpu_cost([_without_frequency(first), *others])
    assert cost.unit == "CPU ns per byte"
    assert cost.of_step[first.step] == pytest.approx(1e9 * first.usage.load_cpu_s / first.total.bytes)


def test_other_loops_are_lines_of_their_own_and_two_sizes_are_none(tmp_path: Path) -> None:
    loads = [
        replace(LOAD, name="r", for_loops=f"xfersize={size}k threads={threads}", size_bytes=size * 1024)
        for threads in (1, 8)
        for size in (1, 2, 4, 8)[: 4 if threads == 8 else 2]
    ]
    assert size_lines(summarise(make_run(tmp_path / "run", loads))).keys() == {"r threads=8"}


@pytest.mark.long
def test_the_report_has_the_three_charts_and_no_knee_over_sizes(run: RunDirectory) -> None:
    summaries = summarise(run)
    assert response_curves(summaries), "steps of a sweep without other loops make a curve"
    page = render_report(run)
    assert '<section id="sizes">' in page
    assert '<section id="curves">' not in page
    for title in ("MB/sec against size", "i/o rate against size", "cycles per byte against size"):
        assert f'aria-label="{title}"' in page
    assert ">16 KiB</text>" in page
    points, _ = size_points(size_lines(summaries))
    alt.Chart.from_dict(charts.size_chart(points, "cpu", "cycles per byte"), validate=True)
