"""Summary rows: derived from sums, reliable about quantiles."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from linerate.analysis import StepSummary, summarise, summarise_interval
from linerate.analysis.summary import MIB, outstanding_asked, quantiles_of, rate_asked
from linerate.results import (
    CounterRow,
    IntervalSample,
    LatencySample,
    RunWriter,
    TimedEvent,
    Usage,
    WorkloadSource,
)
from linerate.results.histogram import decode

from tests.support.samples.hdr import PlainHistogram
from tests.support.samples.synthetic import TSC_HZ, Clock, Load, make_run, spec_of


def histogram_of(*values_ns: int, count: int = 1) -> PlainHistogram:
    histogram = PlainHistogram()
    for value in values_ns:
        histogram.record(value, count)
    return histogram


READ = CounterRow(
    "wd1", "sd1", "read", 300, 300 * 8192, 0, 600_000_000, 3e6**2 * 300, 4_000_000, 900_000_000, 5_000_000
)
WRITE = CounterRow(
    "wd1", "sd1", "write", 100, 100 * 8192, 2, 400_000_000, 5e6**2 * 100, 9_000_000, 400_000_000, 9_000_000
)
USAGE = Usage(
    load_cpu_user_s=0.2,
    load_cpu_system_s=0.6,
    host_cpu_user_s=0.5,
    host_cpu_system_s=1.5,
    host_cpu_idle_s=5.0,
    host_cpu_wait_s=1.0,
    tsc_hz=2e9,
    retransmits=3,
    data_segments_sent=1200,
    bytes_sent=3 << 30,
    busy_us=1_000_000,
    rwnd_limited_us=250_000,
)
INTERVAL = IntervalSample(
    index=0,
    start_s=0.0,
    end_s=2.0,
    warmup=False,
    rows=(READ, WRITE),
    usage=USAGE,
    latencies=(
        LatencySample("read", "service", histogram_of(2_000_000, count=300), stream="wd1"),
        LatencySample("write", "service", histogram_of(4_000_000, count=100), stream="wd1"),
        LatencySample("write", "response", histogram_of(9_000_000, count=100), stream="wd1"),
    ),
)


def assert_sums_are_right(step: StepSummary) -> None:
    assert (step.total.ios, step.total.errors) == (400, 2)
    assert step.total.iops == 200
    assert step.total.mib_s == pytest.approx(400 * 8192 / 2 / MIB)
    assert step.total.mean_ms == pytest.approx(2.5)
    assert step.total.max_ms == 9.0
    assert step.read
    assert step.write
    assert (step.read.mean_ms, step.write.mean_ms) == (2.0, 4.0)
    assert step.read.response_mean_ms == 3.0
    assert step.read.stddev_ms == pytest.approx(math.sqrt(3**2 - 2**2))
    assert step.queue_depth == pytest.approx(0.5)
    assert step.read_percent == 75
    assert step.usage.cpu_busy_percent == pytest.approx(100 * 2 / 8)
    assert step.usage.cpu_system_percent == pytest.approx(100 * 1.5 / 8)
    assert step.usage.cycles_per_byte == pytest.approx(0.8 * 2e9 / (400 * 8192))
    assert step.usage.cpu_us_per_io == pytest.approx(0.8e6 / 400)
    assert step.usage.retransmits_percent == 0.25
    assert step.usage.rwnd_limited_percent == 25.0
    assert step.usage.sndbuf_limited_percent == 0.0


def test_an_interval_comes_down_to_its_sums() -> None:
    decoded = (replace(item, histogram=decode(item.histogram.encode())) for item in INTERVAL.latencies)
    assert_sums_are_right(summarise_interval(replace(INTERVAL, latencies=tuple(decoded))))


def test_a_stored_step_says_the_same_as_its_interval(tmp_path: Path) -> None:
    with RunWriter.create(
        tmp_path / "run", name="x", workload=WorkloadSource(name="x"), now=Clock()
    ) as writer:
        writer.begin_step("rd1", spec=spec_of(Load(volumes=1, outstanding=7)), facts={})
        writer.interval(INTERVAL)
        writer.end_step()
        run = writer.close("complete")
    (step,) = summarise(run)
    assert_sums_are_right(step)
    assert step.queue_depth_asked == 7
    p50 = step.total.quantile(0.5)
    assert p50
    assert p50.value_ms == pytest.approx(2.0, rel=1e-3)
    (volume,) = step.volumes
    (stream,) = step.streams
    assert volume.total.ios == stream.total.ios == 400
    assert (volume.total, volume.read, volume.write) == (step.total, step.read, step.write)
    assert stream.write
    assert stream.write.quantiles[0].value_ms == pytest.approx(4.0, rel=1e-3)


def test_no_quantile_is_above_the_maximum() -> None:
    """A bucket of a histogram ends above its largest value."""
    slowest_ns = 445_300_001
    histogram = histogram_of(slowest_ns)
    assert histogram.quantile(0.999) > slowest_ns
    row = CounterRow("wd1", "sd1", "read", 1, 8192, 0, slowest_ns, 0.0, slowest_ns, slowest_ns, slowest_ns)
    latencies = (
        LatencySample("read", "service", histogram, stream="wd1"),
        LatencySample("read", "response", histogram, stream="wd1"),
    )
    total = summarise_interval(replace(INTERVAL, rows=(row,), latencies=latencies)).total
    assert {one.value_ms for one in total.quantiles} == {total.max_ms} == {slowest_ns / 1e6}
    assert {one.value_ms for one in total.response_quantiles} == {total.response_max_ms}


def test_an_interval_without_io_is_all_zeros() -> None:
    step = summarise_interval(IntervalSample(0, 0.0, 1.0, False, (), events=(TimedEvent(0.5, "x", "y"),)))
    assert (step.total.iops, step.total.mean_ms, step.total.max_ms) == (0, 0, 0)
    assert (step.read, step.write, step.total.quantiles) == (None, None, ())
    assert step.usage.cpu_busy_percent is None
    assert step.usage.cycles_per_byte is None


@pytest.mark.parametrize(
    ("count", "reliable"),
    [(199, []), (200, ["p50"]), (2_000, ["p50", "p95"]), (10_000, ["p50", "p95", "p99"])],
)
def test_a_quantile_is_honest_with_100_values_beyond_it(count: int, reliable: list[str]) -> None:
    quantiles = quantiles_of(histogram_of(1_000_000, count=count))
    assert [item.name for item in quantiles] == ["p50", "p95", "p99", "p99.9"]
    assert [item.name for item in quantiles if item.reliable] == reliable


def test_p999_needs_a_hundred_thousand() -> None:
    assert not quantiles_of(histogram_of(1, count=99_999))[-1].reliable
    assert quantiles_of(histogram_of(1, count=100_000))[-1].reliable


def test_volumes_streams_and_warmup(tmp_path: Path) -> None:
    load = Load(volumes=4, intervals=5, warmup=5, iops=10_000)
    (step,) = summarise(make_run(tmp_path / "run", [load]))
    assert (step.seconds, step.intervals) == (5.0, 5)
    assert step.total.iops == pytest.approx(10_000, rel=0.08)
    assert [volume.name for volume in step.volumes] == ["sd1", "sd2", "sd3", "sd4"]
    assert sum(volume.total.ios for volume in step.volumes) == step.total.ios
    assert all(volume.total.quantile(0.99) for volume in step.volumes)
    assert step.volumes[0].read
    assert step.volumes[0].read.quantiles != step.volumes[0].total.quantiles
    assert step.usage.cycles_per_byte == pytest.approx(step.usage.load_cpu_s * TSC_HZ / step.total.bytes)


def test_outstanding_counts_used_volumes_of_a_closed_loop_only() -> None:
    spec = spec_of(Load(volumes=3, outstanding=5))
    assert outstanding_asked(spec) == 15
    spec["streams"][0]["volumes"] = ["sd1"]
    assert outstanding_asked(spec) == 5
    assert outstanding_asked({**spec, "arrival": {"kind": "open"}}) is None
    assert outstanding_asked({}) is None


def test_the_rate_that_was_asked_for() -> None:
    assert rate_asked({"arrival": {"kind": "open", "rate_iops": 500.0}}) == 500
    assert (
        rate_asked({"arrival": {"kind": "closed"}, "streams": [{"rate_iops": 200.0}, {"rate_iops": 100.0}]})
        == 300
    )
    assert rate_asked({"arrival": {"kind": "closed"}, "streams": [{"rate_iops": 200.0}, {}]}) is None
    assert rate_asked({}) is None
