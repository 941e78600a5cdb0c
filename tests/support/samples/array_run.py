"""Makes run directories of arrays with disks: every figure is planted. SAMPLE DATA, never measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from linerate.results import ArrayRow, CounterRow, IntervalSample, RunDirectory, RunWriter, WorkloadSource
from linerate.results.sample import Op

from tests.support.samples.synthetic import Clock

KIB, GIB = 1 << 10, 1 << 30
WARMUP = 1
"""Intervals of it."""


@dataclass(frozen=True)
class Disks:
    """A set of alike disks under 8 KiB host I/Os, per second: `reads` and `writes` of hosts, and of each disk."""

    name: str = "r0"
    level: str = "raid50"
    disks: int = 12
    spares: int = 2
    reads: int = 670
    writes: int = 330
    disk_reads: int = 110
    disk_writes: int = 55
    busy: float = 0.96
    service_in: int = 4
    """Outstanding on each disk."""
    read_modify_writes: int = 300
    full_stripe_writes: int = 30
    task: str = ""
    used: float = 0.5
    """Of the pool."""
    intervals: int = 6
    array: str = "a1"


def make_array_run(folder: Path, sets: Sequence[Disks], step: str = "random") -> RunDirectory:
    """A closed run directory of one step of one-second intervals, the first of which is warm-up."""
    clock = Clock()
    writer = RunWriter.create(folder, name="disks", workload=WorkloadSource(name="disks"), now=clock)
    stream = {"name": "s", "volumes": ["v1"], "sizes": {"kind": "mix", "parts": [[8 * KIB, 100.0]]}}
    volume = {"name": "v1", "url": "iscsi://10.1.0.10:3260/iqn.2026-11.lab.linerate:a1/0", "outstanding": 40}
    writer.begin_step(
        step, spec={"volumes": [volume], "streams": [stream], "arrival": {"kind": "closed"}}, facts={}
    )
    for index in range(sets[0].intervals):
        writer.interval(
            IntervalSample(
                index=index,
                start_s=float(index),
                end_s=index + 1.0,
                warmup=index < WARMUP,
                rows=tuple(row for one in sets for row in _host_rows(one)),
                arrays=tuple(row for one in sets for row in array_rows(one, index)),
            )
        )
        clock.pass_s(1.0)
    writer.end_step()
    return writer.close("complete")


def _host_rows(load: Disks) -> Iterator[CounterRow]:
    """Forty host I/Os are in flight all the time."""
    rates: tuple[tuple[Op, int], ...] = (("read", load.reads), ("write", load.writes))
    for op, ios in rates:
        if ios:
            time_ns = 40 * 10**9 // (load.reads + load.writes) * ios
            yield CounterRow(
                "s", "v1", op, ios, ios * 8 * KIB, service_sum_ns=time_ns, response_sum_ns=time_ns
            )


def array_rows(load: Disks, index: int) -> Iterator[ArrayRow]:
    """What the disks, their set and a pool did in one interval."""
    for number in range(load.disks + load.spares):
        spare = number >= load.disks
        yield ArrayRow(
            array=load.array,
            part="disk",
            name=f"{load.name}d{number}",
            seconds=1.0,
            member_of=load.name,
            kind="sas_10k_2_5",
            state="spare" if spare else "online",
            size_bytes=4 * GIB,
            reads=0 if spare else load.disk_reads,
            writes=0 if spare else load.disk_writes,
            read_bytes=0 if spare else load.disk_reads * 8 * KIB,
            write_bytes=0 if spare else load.disk_writes * 8 * KIB,
            response_ns=0 if spare else round(load.service_in * 1e9),
            busy_ns=0 if spare else round(load.busy * 1e9),
        )
    yield ArrayRow(
        array=load.array,
        part="raid_set",
        name=load.name,
        seconds=1.0,
        kind=load.level,
        state="optimal",
        size_bytes=40 * GIB,
        full_stripe_writes=load.full_stripe_writes,
        read_modify_writes=load.read_modify_writes,
        task=load.task,
        done=0.1 * (index + 1) if load.task else 0.0,
    )
    yield ArrayRow(
        array=load.array,
        part="pool",
        name=f"p-{load.name}",
        seconds=1.0,
        size_bytes=40 * GIB,
        used_bytes=round(40 * load.used) * GIB,
        provisioned_bytes=60 * GIB,
    )
