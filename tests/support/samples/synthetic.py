"""Makes run directories of any shape from a seed.

Plausible figures, known in advance, the same every time.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from linerate.results import (
    CounterRow,
    IntervalSample,
    LatencySample,
    RunDirectory,
    RunWriter,
    TimedEvent,
    Usage,
    WorkloadSource,
)
from linerate.results.manifest import FactValue, State
from linerate.results.sample import Op
from linerate.results.writer import Judge

from tests.support.samples.hdr import PlainHistogram

START = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
TSC_HZ = 2.9e9
CPUS = 8

ENVIRONMENT: dict[str, FactValue] = {
    "host.name": "loadhost1",
    "host.os": "Debian GNU/Linux 13",
    "host.kernel": "6.18.2",
    "host.architecture": "x86_64",
    "host.hypervisor": False,
    "cpu.model": "Example CPU 8c",
    "cpu.count": CPUS,
    "cpu.allowed": "0-7",
    "cpu.governor": "performance",
    "memory.total_bytes": 64 << 30,
    "port.eth1.peers": "10.0.0.10:3260",
    "port.eth1.mtu_bytes": 9000,
    "port.eth1.speed_mbit_s": 10000,
    "port.eth1.driver": "ixgbe",
    "sysctl.net.ipv4.tcp_congestion_control": "cubic",
    "sysctl.net.ipv4.tcp_rmem": "4096 131072 6291456",
}

WORKLOAD = """\
* three workloads over eight volumes
sd=default,size=8g,threads=5
sd=sd1,lun=iscsi://10.0.0.10/iqn.2026-11.lab.linerate:demo/0
wd=wd1,sd=sd*,xfersize=8k,rdpct=67,seekpct=100
rd=rd1,wd=wd1,iorate=max,elapsed=120,interval=1
"""


@dataclass(frozen=True)
class Load:
    """One step to make up. `iops` is the total of all volumes; `quiet` intervals hold no I/O at all."""

    name: str = "rd1"
    iops: float = 40_000.0
    size_bytes: int = 8192
    read_percent: float = 67.0
    volumes: int = 8
    outstanding: int = 5
    intervals: int = 30
    warmup: int = 3
    latency_ms: float = 1.0
    volume_kind: str = "iscsi"
    wait_ms: float = 0.0
    """Of each I/O before it is submitted: response time less service time."""
    spread: float = 0.45
    trend: float = 0.0
    jitter: float = 0.01
    for_loops: str = ""
    volume_bytes: int = 64 << 30
    errors: int = 0
    usage: dict[str, float] = field(default_factory=dict)
    spec: dict[str, Any] = field(default_factory=dict)
    session: dict[str, Any] = field(default_factory=dict)
    counters: dict[str, float] = field(default_factory=dict)
    san: dict[str, Any] = field(default_factory=dict)
    points: int = 160


class Clock:
    """A clock that only moves when told to."""

    def __init__(self) -> None:
        self.time = START

    def __call__(self) -> datetime:
        return self.time

    def pass_s(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


def make_run(
    path: Path,
    loads: list[Load] | None = None,
    *,
    seed: int = 1,
    name: str = "synthetic",
    state: State = "complete",
    reason: str = "",
    environment: dict[str, FactValue] | None = None,
    workload: str = WORKLOAD,
    judge: Judge | None = None,
) -> RunDirectory:
    """A closed run directory with one step per load."""
    clock = Clock()
    writer = RunWriter.create(
        path,
        name=name,
        workload=WorkloadSource(name="demo.parm", format="vdbench", text=workload),
        environment=ENVIRONMENT if environment is None else environment,
        versions={"linerate": "0.1.0", "python": "3.11.7"},
        command=("linerate", "run", "demo.parm"),
        now=clock,
    )
    for number, load in enumerate(loads or [Load()]):
        write_step(writer, load, random.Random(f"{seed}/{number}"), clock)
        clock.pass_s(2)
    return writer.close(state, reason, judge=judge)


def write_step(writer: RunWriter, load: Load, dice: random.Random, clock: Clock) -> str:
    """Write one step through the writer, as the command line does."""
    key = writer.begin_step(
        load.name,
        spec=spec_of(load),
        facts=facts_of(load),
        for_loops=load.for_loops,
        requested_rate="Uncontrolled MAX",
        san=load.san,
    )
    for interval in intervals_of(load, dice):
        writer.interval(interval)
        clock.pass_s(interval.seconds)
    writer.end_step(summary_of(load, dice), counters=load.counters)
    return key


def volume_name(number: int) -> str:
    return f"sd{number + 1}"


def spec_of(load: Load) -> dict[str, Any]:
    names = [volume_name(number) for number in range(load.volumes)]
    spec: dict[str, Any] = {
        "version": 1,
        "name": load.name,
        "seed": 12345,
        "warmup_s": float(load.warmup),
        "elapsed_s": float(load.intervals),
        "interval_s": 1.0,
        "verify": "off",
        "volumes": [
            {
                "name": name,
                "url": f"iscsi://10.0.0.10:3260/iqn.2026-11.lab.linerate:demo/{number}",
                "secret": None,
                "outstanding": load.outstanding,
            }
            for number, name in enumerate(names)
        ],
        "streams": [
            {
                "name": "wd1",
                "volumes": names,
                "share_percent": None,
                "sizes": {"kind": "mix", "parts": [[load.size_bytes, 100.0]]},
                "read_percent": load.read_percent,
                "random_percent": 100.0,
                "compression_ratio": None,
            }
        ],
        "shares": "uncontrolled",
        "arrival": {"kind": "closed"},
    }
    return {**spec, **load.spec}


def facts_of(load: Load) -> dict[str, Any]:
    session = {
        "local": "10.0.0.1:40000",
        "peer": "10.0.0.10:3260",
        "congestion_control": "cubic",
        **load.session,
    }
    return {
        "driver": "io_uring",
        "workers": 1,
        "cpus": [0],
        "tsc_hz": TSC_HZ,
        "volumes": [
            {
                "name": volume_name(number),
                "kind": load.volume_kind,
                "worker": 0,
                "size_bytes": load.volume_bytes,
                "capacity_bytes": load.volume_bytes,
                "block_bytes": 512,
                "session": session,
            }
            for number in range(load.volumes)
        ],
    }


def intervals_of(load: Load, dice: random.Random) -> Iterator[IntervalSample]:
    total = load.warmup + load.intervals
    for index in range(total):
        progress = index / max(total - 1, 1) - 0.5
        pace = (1 + load.trend * progress) * (1 + dice.gauss(0, load.jitter))
        if index < load.warmup:
            pace *= 0.6 + 0.4 * index / load.warmup
        yield _interval(load, index, max(pace, 0.0), dice)


def _interval(load: Load, index: int, pace: float, dice: random.Random) -> IntervalSample:
    rows: list[CounterRow] = []
    sums: dict[Op, list[CounterRow]] = {"read": [], "write": []}
    for number in range(load.volumes):
        for op in _ops(load):
            row = _row(load, op, number, pace, dice, errors=load.errors if index == load.warmup else 0)
            rows.append(row)
            sums[op].append(row)
    latencies = [
        LatencySample(
            op=op,
            kind=kind,
            stream="wd1",
            histogram=_histogram(load, sums[op], dice, load.wait_ms if kind == "response" else 0.0),
        )
        for op in _ops(load)
        for kind in ("service", "response")
    ]
    events = [
        TimedEvent(index + 0.5, "wrong_answer", "the array answered with a check condition", "sd1", "peer")
    ]
    return IntervalSample(
        index=index,
        start_s=float(index),
        end_s=float(index + 1),
        warmup=index < load.warmup,
        rows=tuple(rows),
        usage=_usage(load, rows, pace),
        latencies=tuple(latencies),
        events=tuple(events) if load.errors and index == load.warmup else (),
    )


def _ops(load: Load) -> list[Op]:
    ops: list[tuple[Op, float]] = [("read", load.read_percent), ("write", 100 - load.read_percent)]
    return [op for op, percent in ops if percent > 0]


def _row(load: Load, op: Op, number: int, pace: float, dice: random.Random, errors: int) -> CounterRow:
    share = load.read_percent / 100 if op == "read" else 1 - load.read_percent / 100
    weight = 1 + 0.1 * math.sin(number)
    ios = round(load.iops * pace * share / load.volumes * weight)
    mean_ns = load.latency_ms * 1e6 * (1.2 if op == "write" else 1.0) / max(pace, 0.1)
    largest = round(mean_ns * (3 + dice.random()))
    return CounterRow(
        stream="wd1",
        volume=volume_name(number),
        op=op,
        ios=ios,
        bytes=ios * load.size_bytes,
        errors=errors if number == 0 and op == "read" else 0,
        service_sum_ns=round(ios * mean_ns),
        service_sumsq_ns2=ios * (mean_ns**2) * (1 + load.spread**2),
        service_max_ns=largest,
        response_sum_ns=round(ios * (mean_ns * 1.01 + load.wait_ms * 1e6)),
        response_max_ns=largest + round(load.wait_ms * 1e6),
    )


def _histogram(
    load: Load, rows: list[CounterRow], dice: random.Random, wait_ms: float = 0.0
) -> PlainHistogram:
    histogram = PlainHistogram()
    ios = sum(row.ios for row in rows)
    if ios:
        histogram.record(max(row.service_max_ns for row in rows) + round(wait_ms * 1e6))
        ios -= 1
    points = min(load.points, ios)
    for point in range(points):
        value = load.latency_ms * 1e6 * math.exp(dice.gauss(-(load.spread**2) / 2, load.spread))
        histogram.record(
            max(1, round(value + wait_ms * 1e6)), ios // points + (1 if point < ios % points else 0)
        )
    return histogram


def _volume_histogram(load: Load, dice: random.Random) -> PlainHistogram:
    row = CounterRow("wd1", "sd1", "read", 20_000, 0, service_max_ns=round(load.latency_ms * 4e6))
    return _histogram(load, [row], dice)


def _usage(load: Load, rows: list[CounterRow], pace: float) -> Usage:
    moved = sum(row.bytes for row in rows)
    busy_ns = sum(row.service_sum_ns for row in rows)
    usage = Usage(
        load_cpu_user_s=0.18 * pace,
        load_cpu_system_s=0.42 * pace,
        host_cpu_user_s=0.4 * pace,
        host_cpu_system_s=1.1 * pace,
        host_cpu_idle_s=CPUS - 1.5 * pace,
        host_cpu_wait_s=0.02,
        tsc_hz=TSC_HZ,
        data_segments_sent=moved // 3 // 1448,
        bytes_sent=moved // 3,
        bytes_received=moved * 2 // 3,
        busy_us=450_000,
        rtt_us_mean=180.0,
        outstanding_mean=min(busy_ns / 1e9, float(load.volumes * load.outstanding)),
    )
    return replace(usage, **load.usage)  # type: ignore[arg-type]


def summary_of(load: Load, dice: random.Random) -> IntervalSample:
    latencies = [
        LatencySample(
            op=op, kind="service", volume=volume_name(number), histogram=_volume_histogram(load, dice)
        )
        for number in range(load.volumes)
        for op in _ops(load)
    ]
    return IntervalSample(
        0, float(load.warmup), float(load.warmup + load.intervals), False, (), latencies=tuple(latencies)
    )
