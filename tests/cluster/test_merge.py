"""Clocks, the division of a run among hosts, and the way back: what needs no process."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linerate._core import Histogram
from linerate.cluster import apportion, best_offset, divide
from linerate.cluster.merge import HostMerger, merge
from linerate.cluster.wire import packed, unpacked
from linerate.errors import UserError
from linerate.results import CounterRow, IntervalSample, LatencySample, TimedEvent, Usage
from linerate.workload import RunSpec
from linerate.workload.spec import ClosedArrival

SPEC = RunSpec.model_validate(
    {
        "name": "both",
        "seed": 7,
        "volumes": [{"name": "v1", "url": "null:1048576"}, {"name": "v2", "url": "null:1048576"}],
        "streams": [{"name": "s", "volumes": ["v2"], "rate_iops": 30, "stop_after_bytes": 4096}],
        "arrival": {"kind": "open", "rate_iops": 100},
        "limits": {"bytes": 1001},
    }
)


@given(
    st.integers(-(10**12), 10**12),
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1, max_size=30),
)
def test_the_true_offset_lies_within_the_uncertainty(true_ns: int, ways: list[tuple[int, int]]) -> None:
    samples = []
    now = 10**12
    for there_ns, back_ns in ways:
        samples.append((now, now + there_ns + true_ns, now + there_ns + back_ns))
        now += 10**6
    offset = best_offset(samples)
    assert abs(offset.offset_ns - true_ns) <= offset.uncertainty_ns
    assert offset.uncertainty_ns == (min(there + back for there, back in ways) + 1) // 2
    assert offset.remote(5) == 5 + offset.offset_ns


def test_rates_and_limits_are_divided_and_volumes_are_not() -> None:
    parts, whole = divide(SPEC, ("h1", "h2"), {"h2": {"v1": "null:2097152"}})
    one, two = parts["h1"], parts["h2"]
    assert [volume.name for volume in two.volumes] == ["h2/v1", "h2/v2"]
    assert (one.volumes[0].url, two.volumes[0].url) == ("null:1048576", "null:2097152")
    assert one.arrival.rate_iops == 50  # type: ignore[union-attr]
    assert (one.streams[0].rate_iops, one.streams[0].volumes) == (15, ("h1/v2",))
    assert one.limits.bytes == 500
    assert (one.streams[0].stop_after_bytes, one.streams[0].stop_after_percent) == (2048, None)
    stream = SPEC.streams[0].model_copy(update={"stop_after_bytes": None, "stop_after_percent": 200})
    half, _ = divide(SPEC.model_copy(update={"streams": (stream,)}), ("h1", "h2"), None)
    assert half["h1"].streams[0].stop_after_percent == 100
    assert one.limits.read_bytes is None
    assert one.seed != two.seed
    assert [volume.name for volume in whole.volumes] == ["h1/v1", "h1/v2", "h2/v1", "h2/v2"]
    assert whole.streams[0].volumes == ("h1/v2", "h2/v2")
    assert whole.arrival == SPEC.arrival


def test_several_hosts_do_not_verify_the_same_volumes() -> None:
    checked = SPEC.model_copy(update={"verify": "on"})
    with pytest.raises(UserError, match="verify"):
        divide(checked, ("h1", "h2"))
    assert divide(checked, ("h1",))[0]["h1"].verify == "on"


def test_volumes_with_owners_take_their_part_of_the_rates_along() -> None:
    spec = RunSpec.model_validate(
        {
            "name": "three",
            "volumes": [{"name": f"v{n}", "url": f"null:{n}048576"} for n in (1, 2, 3)],
            "streams": [
                {"name": "all", "volumes": ["v1", "v2", "v3"], "share_percent": 75},
                {"name": "one", "volumes": ["v3"], "share_percent": 25},
            ],
            "arrival": {"kind": "open", "rate_iops": 120},
        }
    )
    parts, whole = apportion(spec, {"v1": "h1", "v2": "h1", "v3": "h2", "v4": "h3"})
    assert list(parts) == ["h1", "h2"], "who owns nothing of it has no part"
    one, two = parts["h1"], parts["h2"]
    assert [volume.name for volume in one.volumes] == ["h1/v1", "h1/v2"]
    assert [stream.name for stream in one.streams] == ["all"]
    assert one.arrival.rate_iops == pytest.approx(60)  # type: ignore[union-attr]
    assert two.arrival.rate_iops == pytest.approx(60)  # type: ignore[union-attr]
    assert [stream.share_percent for stream in one.streams] == pytest.approx([100])
    assert [stream.share_percent for stream in two.streams] == pytest.approx([50, 50])
    assert [stream.volumes for stream in whole.streams] == [("h1/v1", "h1/v2", "h2/v3"), ("h2/v3",)]
    assert (whole.arrival, one.seed != two.seed) == (spec.arrival, True)
    for part in parts.values():
        RunSpec.model_validate(part.model_dump())


def test_each_stream_s_own_rate_is_divided_by_its_volumes() -> None:
    spec = SPEC.model_copy(update={"arrival": ClosedArrival()})
    parts, _ = apportion(spec, {"v1": "h1", "v2": "h2"})
    assert {host: [stream.rate_iops for stream in part.streams] for host, part in parts.items()} == {
        "h2": [30]
    }


def test_owners_verify_volumes_of_their_own_only() -> None:
    both = tuple(stream.model_copy(update={"volumes": ("v1", "v2")}) for stream in SPEC.streams)
    checked = SPEC.model_copy(update={"verify": "on", "streams": both})
    with pytest.raises(UserError, match="verify"):
        apportion(checked, {"v1": "h1", "v2": "h2"})
    assert len(apportion(checked, {"v1": "h1", "v2": "h1"})[0]) == 1


def _interval(index: int, host: str, values_ns: list[int], **usage: float) -> IntervalSample:
    histogram = Histogram()
    for value in values_ns:
        histogram.record(value)
    return IntervalSample(
        index=index,
        start_s=float(index),
        end_s=index + 1.0,
        warmup=index == 0,
        rows=(CounterRow("s", f"{host}/v", "read", len(values_ns), 512),),
        usage=Usage(**usage),  # type: ignore[arg-type]
        latencies=(LatencySample("read", "service", histogram, stream="s"),),
        events=(TimedEvent(at_s=0.5, kind="k", message=host),),
    )


def test_distributions_are_merged_and_rows_stay_apart() -> None:
    one = _interval(0, "h1", [1000] * 99, host_cpu_idle_s=1.0, tsc_hz=2e9, backlog_max=3, retransmits=1)
    two = _interval(0, "h2", [9000], host_cpu_idle_s=0.5, tsc_hz=3e9, backlog_max=2, retransmits=4)
    both = merge([one, two])
    assert [(row.volume, row.ios) for row in both.rows] == [("h1/v", 99), ("h2/v", 1)]
    assert len(both.latencies) == 1
    assert both.latencies[0].histogram.count == 100
    assert both.latencies[0].histogram.max >= 9000
    assert one.latencies[0].histogram.count == 99
    usage = both.usage
    assert (usage.host_cpu_idle_s, usage.tsc_hz, usage.backlog_max, usage.retransmits) == (1.5, 2.5e9, 3, 5)
    assert len(both.events) == 2


def test_an_interval_comes_back_from_the_wire() -> None:
    before = _interval(3, "h1", [1000, 2000], rtt_us_mean=4.0)
    after = unpacked(packed(before))
    assert (after.rows, after.usage, after.events) == (before.rows, before.usage, before.events)
    assert after.latencies[0].histogram.buckets() == before.latencies[0].histogram.buckets()


def test_intervals_come_in_order_when_all_have_delivered() -> None:
    merger = HostMerger(["h1", "h2"])
    merger.add("h1", _interval(0, "h1", [1]))
    merger.add("h1", _interval(1, "h1", [1]))
    assert merger.pop() is None
    merger.add("h2", _interval(1, "h2", [1]))
    merger.add("h2", _interval(0, "h2", [1]))
    first, second = merger.pop(), merger.pop()
    assert first is not None
    assert second is not None
    assert (first.index, first.ios, second.index) == (0, 2, 1)
    assert not merger.finished
    merger.leave("h1")
    merger.leave("h2")
    assert merger.finished


def test_a_host_that_leaves_does_not_hold_the_others_up() -> None:
    merger = HostMerger(["h1", "h2"])
    merger.add("h1", _interval(0, "h1", [1]))
    merger.add("h2", _interval(0, "h2", [1]))
    merger.add("h1", _interval(1, "h1", [1]))
    merger.event(TimedEvent(at_s=2.0, kind="host_lost", message="h2"))
    merger.leave("h2")
    merger.pop()
    alone = merger.pop()
    assert alone is not None
    assert [row.volume for row in alone.rows] == ["h1/v"]
    assert [event.kind for event in alone.events] == ["k", "host_lost"]
