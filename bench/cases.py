"""The bars, one function each: what is compared with what, and how much is asked for."""

from __future__ import annotations

import json
import re
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from . import processes
from .processes import CLIENT_CPU, SERVER_CPU, Measure, Shape

VOLUME_BYTES = 256 << 20


@dataclass(frozen=True)
class Result:
    """One line of the table. A `bar` of None says that it is reported only; no `ratios` that it was skipped."""

    name: str
    bar: float | None
    ratios: tuple[float, ...]
    at_most: bool = False
    note: str = ""

    @property
    def ratio(self) -> float:
        """Return the median over the rounds."""
        return statistics.median(self.ratios)

    @property
    def spread(self) -> float:
        """Return the distance of the extremes, relative to the median."""
        return (max(self.ratios) - min(self.ratios)) / self.ratio if self.ratio else 0.0

    @property
    def passed(self) -> bool | None:
        """Say whether the bar is met; None without bar or ratios."""
        if self.bar is None or not self.ratios:
            return None
        return self.ratio <= self.bar if self.at_most else self.ratio >= self.bar


@dataclass(frozen=True)
class Setting:
    """How long each measurement takes and how often it is repeated."""

    directory: Path
    seconds: float
    rounds: int


def skipped(name: str, why: str) -> Result:
    """Return the line of a comparison whose peer is absent."""
    return Result(name, None, (), note=f"skipped: {why}")


def interleaved(setting: Setting, a: Callable[[], float], b: Callable[[], float]) -> tuple[float, ...]:
    """Measure A B A B and give a/b of each round."""
    return tuple(a() / b() for _ in range(setting.rounds))


LIMIT_SHAPES = (
    Shape("4K random read, depth 32", 4096, 32),
    Shape("4K random read, depth 128", 4096, 128),
    Shape("4K random write, depth 32", 4096, 32, read_percent=0),
    Shape("8K 67% read, 8 volumes x 5", 8192, 5, 8, 67),
    Shape("256K sequential read, depth 8", 262_144, 8, random_percent=0),
    Shape("256K sequential write, depth 8", 262_144, 8, read_percent=0, random_percent=0),
    Shape("4K random read, depth 1, blocking", 4096, 1),
)
LIMIT_BAR = 0.95
"""Of the raw pair that waits in the same way."""


def against_limit(setting: Setting) -> Iterator[Result]:
    """Array and initiator against the raw TCP limit."""
    for shape in LIMIT_SHAPES:
        size = VOLUME_BYTES // shape.volumes
        with processes.array(setting.directory, shape, size) as server:
            ratios = interleaved(
                setting, partial(our_iops, setting, shape, server), partial(raw_iops, setting, shape)
            )
        yield Result(f"{shape.name}: array + initiator / raw TCP", LIMIT_BAR, ratios)
    blocking = Shape("depth 1", 4096, 1)
    polling = Shape("depth 1", 4096, 1, wait="spin")
    with processes.array(setting.directory, polling, VOLUME_BYTES) as server:
        ratios = interleaved(
            setting, partial(our_iops, setting, polling, server), partial(raw_iops, setting, blocking)
        )
    yield Result("4K random read, depth 1: polling / blocking raw TCP", 1.0, ratios)


def our_iops(setting: Setting, shape: Shape, server: processes.Server) -> float:
    """IOPS of our load engine and initiator."""
    return measure(setting, shape, server).iops


def raw_iops(setting: Setting, shape: Shape) -> float:
    """IOPS of the raw TCP pair."""
    return processes.measure_raw(shape, setting.seconds, VOLUME_BYTES).iops


def cpu_us(setting: Setting, shape: Shape, server: processes.Server) -> float:
    """CPU microseconds per I/O of both sides."""
    got = measure(setting, shape, server)
    return got.server_cpu_us + got.client_cpu_us


def measure(setting: Setting, shape: Shape, server: processes.Server) -> Measure:
    """Measure with the setting's time."""
    return processes.measure(setting.directory, shape, server, setting.seconds)


TGT_SHAPES = (
    (Shape("4K random read, depth 32", 4096, 32), 6.0),
    (Shape("4K random read, depth 128", 4096, 128), 6.0),
    (Shape("256K sequential read, depth 8", 262_144, 8, random_percent=0), 2.5),
    (Shape("256K sequential write, depth 8", 262_144, 8, read_percent=0, random_percent=0), 2.5),
)


def against_tgt(setting: Setting) -> Iterator[Result]:
    """Compare our array with tgt: small I/O per CPU second of the server, large I/O by throughput."""
    with processes.tgt(VOLUME_BYTES) as peer:
        if peer is None:
            yield skipped("array / tgt", "tgtd is not installed (Debian package tgt)")
            return
        for shape, bar in TGT_SHAPES:
            small = shape.size_bytes == 4096

            def value(server: processes.Server, shape: Shape = shape, small: bool = small) -> float:
                got = measure(setting, shape, server)
                return 1.0 / got.server_cpu_us if small else got.mb_s

            with processes.array(setting.directory, shape, VOLUME_BYTES) as ours:
                ratios = interleaved(setting, partial(value, ours), partial(value, peer))
            unit = "IOPS per array CPU second" if small else "MB/s"
            yield Result(f"{shape.name}: array / tgt, {unit}", bar, ratios)


def against_iscsi_perf(setting: Setting) -> Iterator[Result]:
    """Client CPU per I/O of our initiator with full histograms, against libiscsi's."""
    name = "4K random read, depth 32: client CPU per I/O, ours / iscsi-perf"
    tool = shutil.which("iscsi-perf")
    if tool is None:
        yield skipped(name, "iscsi-perf is not installed (Debian package libiscsi-bin)")
        return
    shape = Shape("4K", 4096, 32)
    with processes.array(setting.directory, shape, VOLUME_BYTES) as server:

        def perf() -> float:
            # It prints a line per second; less than three tell nothing.
            arguments = [
                "timeout",
                "--signal=INT",
                str(max(3.0, setting.seconds)),
                tool,
                "-b",
                "8",
                "-m",
                "32",
                "-r",
            ]
            arguments.append(server.urls[0])
            return peer_cpu_us(arguments, server)

        ours = interleaved(setting, lambda: measure(setting, shape, server).client_cpu_us, perf)
    yield Result(name, 0.5, ours, at_most=True)


def peer_cpu_us(arguments: list[str], server: processes.Server) -> float:
    """CPU microseconds per I/O of a client that prints its IOPS on lines of its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    process = processes.pinned(CLIENT_CPU, arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output, _ = process.communicate(timeout=120)
    seconds = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    rates = [
        float(rate) for rate in re.findall(r"iops(?: average)?\s*[:=]?\s*([0-9.]+)", output, re.IGNORECASE)
    ]
    if not rates:
        raise RuntimeError(f"{arguments[3]} printed no IOPS: {output[-200:]!r}")
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu_s / (statistics.median(rates) * seconds) * 1e6


MULTIPATH_PAIRS = 4
"""Pairs per round: 3 % is little against the noise of a shared machine."""


def multipath(setting: Setting) -> Iterator[Result]:
    """Measure one path under the multipath layer against the same session without it."""
    for read_percent in (100, 67):
        shape = Shape(f"8K {read_percent}% read, depth 32", 8192, 32, read_percent=read_percent)
        pair = Setting(setting.directory, setting.seconds / 2, setting.rounds * MULTIPATH_PAIRS)
        with processes.array(setting.directory, shape, VOLUME_BYTES) as server:
            plain = processes.run_spec(shape, server.urls, pair.seconds)
            layered = processes.run_spec(shape, server.urls, pair.seconds)
            layered["volumes"][0]["paths"] = [{"name": "only"}]
            layered["volumes"][0]["multipath"] = {"policy": "round_robin"}
            ratios = interleaved(pair, partial(load_iops, pair, layered), partial(load_iops, pair, plain))
        yield Result(f"{shape.name}: IOPS of one path with multipath / without", 0.97, ratios)


def generator(setting: Setting) -> Iterator[Result]:
    """The load engine alone: null volumes, and a cached file against fio."""
    null = Shape("null", 4096, 32)
    rates = tuple(
        load_iops(setting, processes.run_spec(null, ["null:8589934592"], setting.seconds)) / 5e6
        for _ in range(setting.rounds)
    )
    yield Result("null volume, histograms on: IOPS / 5 million", 1.0, rates)
    name = "cached file, 4K random read, depth 32: IOPS, ours / fio io_uring"
    fio = shutil.which("fio")
    if fio is None:
        yield skipped(name, "fio is not installed")
        return
    file = setting.directory / "file"
    file.write_bytes(b"\x5a" * VOLUME_BYTES)
    spec = processes.run_spec(Shape("file", 4096, 32), [f"file:{file}"], setting.seconds)
    spec["volumes"][0]["direct"] = False
    spec["driver"] = "io_uring"
    command = [
        fio,
        "--name=x",
        f"--filename={file}",
        "--ioengine=io_uring",
        "--iodepth=32",
        "--rw=randread",
        "--bs=4k",
    ]
    command += [
        "--time_based",
        f"--runtime={max(1, round(setting.seconds))}",
        "--output-format=json",
        "--direct=0",
    ]
    command += [f"--size={VOLUME_BYTES}", "--invalidate=0", "--norandommap", "--thread"]

    def fio_iops() -> float:
        process = processes.pinned(CLIENT_CPU, command, stdout=subprocess.PIPE)
        output, _ = process.communicate(timeout=setting.seconds + 60)
        return float(json.loads(output)["jobs"][0]["read"]["iops"])

    yield Result(name, 1.2, interleaved(setting, lambda: load_iops(setting, spec), fio_iops))


def load_iops(setting: Setting, spec: dict[str, Any]) -> float:
    """IOPS of one run of the load engine."""
    report = processes.load(setting.directory, spec)
    return float(report["ios"] / report["seconds"])


ONE = Shape("one", 4096, 32)


def scaling(setting: Setting) -> Iterator[Result]:
    """Many sessions and many volumes against one, by CPU of both sides; memory of an idle session."""
    # Volumes of 2 MiB lie in huge pages as the one does, and hold as much together: what is compared is sessions.
    sessions = Shape("256 sessions", 4096, 32, 256)
    volumes = Shape("1,000 volumes", 4096, 1, 1000, session="shared")
    for shape, size, single_size in (
        (sessions, 2 << 20, 512 << 20),
        (volumes, 256 << 10, VOLUME_BYTES),
    ):
        with (
            processes.array(setting.directory, ONE, single_size) as single,
            processes.array(setting.directory, shape, size) as plenty,
        ):
            yield against_one(setting, shape.name, shape, plenty, single)
    with processes.array(setting.directory, ONE, VOLUME_BYTES) as single:
        crowd = processes.Server(single.process, single.urls * sessions.volumes)
        yield against_one(setting, "256 sessions of one volume", sessions, crowd, single)
    yield idle_memory(setting)


def against_one(
    setting: Setting, name: str, shape: Shape, plenty: processes.Server, single: processes.Server
) -> Result:
    """CPU of many against that of one session with one volume and 32 I/Os."""
    ratios = interleaved(
        setting, partial(cpu_us, setting, shape, plenty), partial(cpu_us, setting, ONE, single)
    )
    return Result(f"{name}: CPU per I/O of both sides, against one of 32", 1.2, ratios, at_most=True)


def idle_memory(setting: Setting) -> Result:
    """Resident memory that 256 idle sessions add to the array."""
    sessions = 256
    shape = Shape("idle", 4096, 1, sessions)
    with processes.array(setting.directory, shape, 1 << 18) as server:
        before = processes.resident_bytes(server.pid)
        spec = processes.run_spec(shape, server.urls, 6.0)
        spec["arrival"] = {"kind": "open", "process": "deterministic", "rate_iops": 1.0}
        arguments = [str(processes.RELEASE / "bench-load"), processes.write_json(setting.directory, spec)]
        client = processes.pinned(CLIENT_CPU, arguments, stdout=subprocess.DEVNULL)
        time.sleep(4.0)
        each = (processes.resident_bytes(server.pid) - before) / sessions
        client.wait(60)
    return Result("memory of an idle session / 64 KiB", 1.0, (each / 65_536,), at_most=True)


PYTHON_RUN = """
import sys
from linerate import _core
run = _core.Run.start(open(sys.argv[1]).read())
while run.next_interval(1.0) is not None or not run.finished:
    pass
summary = run.finish()
total = summary.total
ios = sum(total.rows["ios"])
print(ios / (total.end_s - total.start_s))
"""


def python_side(setting: Setting) -> Iterator[Result]:
    """Measure the same run from Python and from Rust alone."""
    name = "4K random read, depth 32: IOPS from Python / from Rust alone"
    try:
        import linerate._core  # noqa: F401
    except ImportError as error:
        yield skipped(name, str(error))
        return
    shape = Shape("4K", 4096, 32)
    with processes.array(setting.directory, shape, VOLUME_BYTES) as server:
        spec = processes.run_spec(shape, server.urls, setting.seconds)
        spec["interval_s"] = min(1.0, setting.seconds / 2)
        path = processes.write_json(setting.directory, spec)

        def from_python() -> float:
            process = processes.pinned(
                CLIENT_CPU, [sys.executable, "-c", PYTHON_RUN, path], stdout=subprocess.PIPE
            )
            output, _ = process.communicate(timeout=setting.seconds + 60)
            return float(output)

        ratios = interleaved(setting, from_python, lambda: load_iops(setting, spec))
    yield Result(name, 0.98, ratios)


def thin_pool(setting: Setting) -> Iterator[Result]:
    """Measure a pool with 1 TiB of thin volumes, all written, and 100 snapshots of all: times against limits."""
    reports = []
    for _ in range(setting.rounds):
        process = processes.pinned(
            CLIENT_CPU, [str(processes.RELEASE / "bench-pool")], stdout=subprocess.PIPE
        )
        output, _ = process.communicate(timeout=600)
        reports.append(json.loads(output))
    snapshots = tuple(max(report["snapshots_ms"]) / 10 for report in reports)
    yield Result("slowest of 100 snapshots of 1 TiB / 10 ms", 1.0, snapshots, at_most=True)
    opened = tuple(report["open_s"] for report in reports)
    yield Result("opening 1 TiB of thin volumes with 100 snapshots / 1 s", 1.0, opened, at_most=True)


GROUPS: dict[str, Callable[[Setting], Iterator[Result]]] = {
    "limit": against_limit,
    "tgt": against_tgt,
    "iscsi-perf": against_iscsi_perf,
    "multipath": multipath,
    "generator": generator,
    "scaling": scaling,
    "pool": thin_pool,
    "python": python_side,
}

assert SERVER_CPU != CLIENT_CPU
