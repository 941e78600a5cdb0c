"""Makes run directories of volumes with several paths: every figure is planted. SAMPLE DATA, never measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from linerate.results import (
    CounterRow,
    IntervalSample,
    LatencySample,
    PathRow,
    RunDirectory,
    RunWriter,
    TimedEvent,
    Usage,
    WorkloadSource,
)
from linerate.results.sample import LatencyKind, Op

from tests.support.samples.hdr import PlainHistogram
from tests.support.samples.synthetic import Clock

MIB = 1 << 20


@dataclass(frozen=True)
class Way:
    """One path: I/Os of each interval (the last number holds on), how long each takes, what was sent again."""

    name: str
    ios: Sequence[int] = (100,)
    service_ms: float = 10.0
    retransmits: int = 0
    state: str = "active"

    def at(self, interval: int) -> int:
        return self.ios[min(interval, len(self.ios) - 1)]


@dataclass(frozen=True)
class PathLoad:
    """A step over several paths. `slow` I/Os of an interval take two seconds."""

    ways: Sequence[Way]
    name: str = "rd1"
    op: Op = "write"
    size_bytes: int = MIB // 4
    intervals: int = 10
    interval_s: float = 0.5
    policy: str = "round_robin"
    events: Sequence[TimedEvent] = ()
    errors: dict[int, int] = field(default_factory=dict)
    slow: dict[int, int] = field(default_factory=dict)
    counters: dict[str, float] = field(default_factory=dict)
    paths: Sequence[dict[str, Any]] | None = None
    open_loop: bool = False
    """Response times are listed beside the service times; in a closed loop they are the same."""


def make_path_run(folder: Path, loads: Sequence[PathLoad], **manifest: Any) -> RunDirectory:
    """A closed run directory with one step per load."""
    clock = Clock()
    writer = RunWriter.create(folder, name="paths", workload=WorkloadSource(name="paths"), now=clock)
    for load in loads:
        write_path_step(writer, load, clock, **manifest)
    return writer.close("complete")


def write_path_step(writer: RunWriter, load: PathLoad, clock: Clock, **begin: Any) -> None:
    """The step of a load."""
    writer.begin_step(load.name, spec=spec_of(load), facts={}, **begin)
    for index in range(load.intervals):
        writer.interval(_interval(load, index))
        clock.pass_s(load.interval_s)
    writer.end_step(counters=load.counters)


def spec_of(load: PathLoad) -> dict[str, Any]:
    """What a run spec says about the volume."""
    paths = load.paths if load.paths is not None else [{"name": way.name} for way in load.ways]
    volume = {
        "name": "v1",
        "url": "iscsi://10.1.0.10:3260/iqn.2026-11.lab.linerate:a1/0",
        "outstanding": 16,
        "paths": paths,
        "multipath": {"policy": load.policy},
    }
    stream = {"name": "s", "volumes": ["v1"], "sizes": {"kind": "mix", "parts": [[load.size_bytes, 100.0]]}}
    return {
        "volumes": [volume],
        "streams": [{**stream, "read_percent": 100.0 if load.op == "read" else 0.0}],
        "arrival": {"kind": "closed"},
        "interval_s": load.interval_s,
        "warmup_s": 0.0,
    }


def _interval(load: PathLoad, index: int) -> IntervalSample:
    ios = sum(way.at(index) for way in load.ways)
    slow = min(load.slow.get(index, 0), ios)
    service_ns = sum(round(way.at(index) * way.service_ms * 1e6) for way in load.ways)
    longest_ns = 2_000_000_000 if slow else 20_000_000
    row = CounterRow(
        "s",
        "v1",
        load.op,
        ios,
        ios * load.size_bytes,
        load.errors.get(index, 0),
        service_sum_ns=service_ns,
        service_max_ns=longest_ns,
        response_sum_ns=service_ns,
        response_max_ns=longest_ns,
    )
    times = PlainHistogram()
    kinds: tuple[LatencyKind, ...] = ("service", "response") if load.open_loop else ("service",)
    if slow:
        times.record(2_000_000_000, slow)
    if ios > slow:
        times.record(10_000_000, ios - slow)
    begins_s = index * load.interval_s
    ends_s = begins_s + load.interval_s
    return IntervalSample(
        index=index,
        start_s=begins_s,
        end_s=ends_s,
        warmup=False,
        rows=(row,) if ios or load.errors.get(index) else (),
        usage=Usage(host_cpu_idle_s=1.0),
        latencies=tuple(LatencySample(load.op, kind, times, stream="s") for kind in kinds if ios),
        events=tuple(replace(one, step="") for one in load.events if begins_s <= one.at_s < ends_s),
        paths=tuple(_path_row(load, way, index) for way in load.ways),
    )


def _path_row(load: PathLoad, way: Way, index: int) -> PathRow:
    ios = way.at(index)
    moved = {f"{load.op}_ios": ios, f"{load.op}_bytes": ios * load.size_bytes}
    return PathRow(
        "v1",
        way.name,
        way.state,
        service_sum_ns=round(ios * way.service_ms * 1e6),
        service_max_ns=round(3e6 * way.service_ms) if ios else 0,
        retransmits=way.retransmits if ios else 0,
        **moved,
    )
