"""How a run is dealt to the hosts that its file names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linerate.cluster import deal, dealt_threads
from linerate.errors import UserError
from linerate.workload import RunSpec
from linerate.workload.hosts import LoadHost, LoadHosts
from linerate.workload.spec import OpenArrival

LABELS = ("h1", "h2", "h3", "h4")


def hosts_of(
    volumes: Mapping[str, tuple[str, ...]], streams: Mapping[str, tuple[str, ...]] | None = None
) -> LoadHosts:
    urls = {volume: dict.fromkeys(labels, f"null:{1 << 20}") for volume, labels in volumes.items()}
    return LoadHosts(tuple(LoadHost(label, label) for label in LABELS), urls, streams or {})


def run_of(threads: Mapping[str, int], *streams: Mapping[str, Any], **others: Any) -> RunSpec:
    volumes = [
        {"name": name, "url": f"null:{1 << 20}", "outstanding": count} for name, count in threads.items()
    ]
    return RunSpec.model_validate({"name": "run", "volumes": volumes, "streams": list(streams), **others})


def threads_of(parts: Mapping[str, RunSpec]) -> dict[str, dict[str, int]]:
    return {
        host: {volume.name.partition("/")[2]: volume.outstanding for volume in part.volumes}
        for host, part in parts.items()
    }


USING = st.lists(st.sampled_from(LABELS), min_size=1, unique=True)


@given(st.lists(st.tuples(st.integers(1, 1000), USING), max_size=12))
def test_all_threads_are_dealt_and_no_host_has_two_more_than_another(
    volumes: list[tuple[int, list[str]]],
) -> None:
    dealt = dealt_threads([count for count, _ in volumes], [using for _, using in volumes])
    for (count, using), shares in zip(volumes, dealt, strict=True):
        assert (list(shares), sum(shares.values())) == (using, count)
        assert max(shares.values()) - min(shares.values()) <= 1


@given(st.lists(st.integers(1, 50), min_size=1, max_size=20), USING)
def test_hosts_with_the_same_volumes_differ_by_one_in_all(counts: list[int], using: list[str]) -> None:
    dealt = dealt_threads(counts, [using] * len(counts))
    totals = [sum(shares[label] for shares in dealt) for label in using]
    assert max(totals) - min(totals) <= 1


@given(st.lists(st.tuples(st.integers(1, 60), USING), max_size=8))
def test_it_is_what_going_round_one_by_one_gives(volumes: list[tuple[int, list[str]]]) -> None:
    turn, expected = 0, []
    for count, using in volumes:
        shares = dict.fromkeys(using, 0)
        for _ in range(count):
            shares[using[turn % len(using)]] += 1
            turn += 1
        expected.append(shares)
    assert dealt_threads([count for count, _ in volumes], [using for _, using in volumes]) == expected


def test_the_turn_goes_on_from_one_volume_to_the_next() -> None:
    hosts = hosts_of(dict.fromkeys(("a", "b", "c"), ("h1", "h2")))
    parts, whole = deal(run_of({"a": 1, "b": 1, "c": 1}, {"name": "s", "volumes": ["a", "b", "c"]}), hosts)
    assert threads_of(parts) == {"h1": {"a": 1, "c": 1}, "h2": {"b": 1}}
    assert whole.streams[0].volumes == ("h1/a", "h1/c", "h2/b")
    assert parts["h1"].seed != parts["h2"].seed


@given(
    st.dictionaries(st.sampled_from("abcd"), st.tuples(st.integers(4, 40), USING), min_size=1),
    st.lists(st.floats(1, 99), min_size=1, max_size=3),
)
def test_rates_shares_and_limits_add_up_to_the_file_s(
    volumes: dict[str, tuple[int, list[str]]], weights: list[float]
) -> None:
    percents = [min(100 * weight / sum(weights), 100.0) for weight in weights]
    streams = [
        {"name": f"s{number}", "volumes": list(volumes), "share_percent": percent}
        for number, percent in enumerate(percents)
    ]
    threads = {name: count for name, (count, _) in volumes.items()}
    spec = run_of(threads, *streams, arrival={"kind": "open", "rate_iops": 1000}, shares="controlled")
    using = {
        name: tuple(label for label in LABELS if label in labels) for name, (_, labels) in volumes.items()
    }
    parts, _ = deal(spec, hosts_of(using))
    rates = {}
    for host, part in parts.items():
        RunSpec.model_validate(part.model_dump())
        assert isinstance(part.arrival, OpenArrival)
        rates[host] = part.arrival.rate_iops
        assert sum(stream.share_percent or 0 for stream in part.streams) == pytest.approx(100)
    pairs = sum(map(len, using.values()))
    for host in parts:
        assert rates[host] == pytest.approx(1000 * sum(host in labels for labels in using.values()) / pairs)
    for stream, percent in zip(spec.streams, percents, strict=True):
        done = sum(
            rates[host] * (one.share_percent or 0) / 100
            for host, part in parts.items()
            for one in part.streams
            if one.name == stream.name
        )
        assert done == pytest.approx(10 * percent)


def test_a_rate_is_shared_by_pairs_of_volume_and_host() -> None:
    hosts = hosts_of({"a": ("h1", "h2"), "b": ("h1",)})
    stream = {"name": "s", "volumes": ["a", "b"], "rate_iops": 30}
    parts, _ = deal(run_of({"a": 2, "b": 8}, stream, limits={"bytes": 3000}), hosts)
    assert [parts[host].streams[0].rate_iops for host in ("h1", "h2")] == pytest.approx([20, 10])
    assert [parts[host].limits.bytes for host in ("h1", "h2")] == [2000, 1000]


def test_a_sequential_stream_has_one_host_for_each_volume() -> None:
    hosts = hosts_of({"a": ("h1", "h2"), "b": ("h2",)}, {"seq": ("h2", "h1")})
    spec = run_of(
        {"a": 4, "b": 4},
        {"name": "seq", "volumes": ["a", "b"], "random_percent": 0},
        {"name": "rand", "volumes": ["a"], "random_percent": 100},
    )
    parts, whole = deal(spec, hosts)
    assert {stream.name: stream.volumes for stream in whole.streams} == {
        "seq": ("h2/a", "h2/b"),
        "rand": ("h1/a", "h2/a"),
    }
    assert threads_of(parts) == {"h1": {"a": 2}, "h2": {"a": 2, "b": 4}}


def test_verified_volumes_have_one_host_each() -> None:
    hosts = hosts_of({"a": ("h1", "h2"), "b": ("h2", "h3")})
    spec = run_of({"a": 4, "b": 4}, {"name": "s", "volumes": ["a", "b"]}, verify="on")
    assert threads_of(deal(spec, hosts)[0]) == {"h1": {"a": 4}, "h2": {"b": 4}}


def test_a_stream_whose_only_host_gets_no_threads_is_refused() -> None:
    hosts = hosts_of({"a": ("h1", "h2")}, {"seq": ("h2",)})
    streams = (
        {"name": "seq", "volumes": ["a"], "random_percent": 0},
        {"name": "rand", "volumes": ["a"], "random_percent": 100},
    )
    with pytest.raises(
        UserError, match="run: a has threads=1 for 2 hosts, and h2, which alone runs seq on it"
    ):
        deal(run_of({"a": 1}, *streams), hosts)


def test_each_host_has_its_own_lun() -> None:
    hosts = LoadHosts(
        (LoadHost("h1", "x"), LoadHost("h2", "y")), {"a": {"h1": "file:/dev/sdb", "h2": "file:/dev/sdc"}}, {}
    )
    parts, whole = deal(run_of({"a": 4}, {"name": "s", "volumes": ["a"]}), hosts)
    assert {host: part.volumes[0].url for host, part in parts.items()} == {
        "h1": "file:/dev/sdb",
        "h2": "file:/dev/sdc",
    }
    assert [volume.name for volume in whole.volumes] == ["h1/a", "h2/a"]
