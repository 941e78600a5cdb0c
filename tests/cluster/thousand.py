"""A program: virtual load hosts feed the real coordinator (`ClusterLoad`, merging, a run directory), in virtual time.

    python -m tests.cluster.thousand                  # a table for 10, 100, 300 and 1,000 hosts
    python -m tests.cluster.thousand --hosts 100      # one row, as JSON
    python -m tests.cluster.thousand --transport      # CPU of a real interval by TLS, from real workers on this machine

Each virtual host has a clock of its own, a way of its own to the coordinator, and four volumes with reads and writes:
an interval with eight rows and two histograms (reads, writes) of 20,000 I/Os, and a total with a histogram for each
volume and direction besides, as an agent packs them. One host dies on the way.
CPU time is that of the coordinator's thread; what the virtual hosts need themselves is a dictionary look-up.
"""

from __future__ import annotations

import argparse
import json
import pickle
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from linerate import _core
from linerate.analysis import summarise_interval
from linerate.cluster import divide, local_endpoint
from linerate.cluster import load as protocol
from linerate.cluster.load import ClusterLoad
from linerate.cluster.wire import packed
from linerate.results import CounterRow, IntervalSample, LatencySample, RunWriter, WorkloadSource
from linerate.results.sample import Op
from linerate.workload import RunSpec

COUNTS = (10, 100, 300, 1000)
INTERVALS = 12
_DIES_AT = 6
_VOLUMES = 4
_IOS = 5000
"""Per interval, volume and direction: 40,000 I/Os per s of a host."""
_OPS: tuple[Op, ...] = ("read", "write")
_WAY_NS = (60_000, 400_000)
"""One way to a host and back: a LAN, or some switches further."""
_JITTER_NS = 50_000.0
"""Mean of what a message takes longer, each time; exponential."""


class _VirtualClock:
    """The coordinator's time, in place of the module. It goes on while a message is under way."""

    def __init__(self) -> None:
        self.now_ns = 1_000_000_000_000

    def monotonic_ns(self) -> int:
        return self.now_ns

    def monotonic(self) -> float:
        return self.now_ns / 1e9

    def time_ns(self) -> int:
        return self.now_ns


@dataclass
class _Answer:
    """What a host has answered, or how it will answer when it is waited for."""

    value: Any = None
    ask: Callable[[], Any] | None = None

    def result(self, timeout: float | None = None) -> Any:
        return self.value if self.ask is None else self.ask()


@dataclass
class _VirtualHost:
    """Answers as an agent does, over a way of its own."""

    name: str
    clock: _VirtualClock
    chance: random.Random
    interval: tuple[Any, ...]
    total: tuple[Any, ...]
    skew_ns: int = 0
    way_ns: int = 0
    alive: bool = True
    starts_ns: int = 0
    """By the coordinator's clock: what it will have done, and the coordinator cannot see."""
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.skew_ns = self.chance.randrange(-(10**15), 10**15)  # since their boots
        self.way_ns = self.chance.randrange(*_WAY_NS)

    def _crosses(self) -> None:
        self.clock.now_ns += self.way_ns // 2 + int(self.chance.expovariate(1 / _JITTER_NS))

    def _shows(self) -> int:
        self._crosses()
        shown = self.clock.now_ns + self.skew_ns
        self._crosses()
        return shown

    def ask(self, method: str, *arguments: Any) -> _Answer:
        match method:
            case "clock_ns":
                return _Answer(ask=self._shows)
            case "wall_clock_ns":
                return _Answer(ask=lambda: self.clock.now_ns)
            case "prepare":
                volumes = [{"name": f"{self.name}/v{number}"} for number in range(_VOLUMES)]
                return _Answer({"driver": "io_uring", "workers": 2, "volumes": volumes, "spool": "x"})
            case "start_at":
                self.starts_ns = arguments[0] - self.skew_ns
            case "interval":
                return _Answer((arguments[0], *self.interval[1:]))
            case "finish":
                return _Answer((self.total, None))
        return _Answer()


def _measured(host: str, chance: random.Random, *, total: bool) -> tuple[Any, ...]:
    """As its agent packs an interval, or what it measured in all: reads and writes of about 2 ms on each volume."""
    volumes = [f"{host}/v{number}" for number in range(_VOLUMES)]
    ios = _IOS * (INTERVALS if total else 1)
    rows = [CounterRow("s", volume, op, ios, ios * 4096) for volume in volumes for op in _OPS]
    latencies = [
        LatencySample(op=op, kind="service", histogram=_histogram(chance), stream="s", volume="")
        for op in _OPS
    ]
    if total:
        latencies += [
            LatencySample(op=op, kind="service", histogram=_histogram(chance), stream="", volume=volume)
            for volume in volumes
            for op in _OPS
        ]
    sample = IntervalSample(
        index=0, start_s=0.0, end_s=1.0, warmup=False, rows=tuple(rows), latencies=tuple(latencies)
    )
    return packed(sample)


def _histogram(chance: random.Random) -> _core.Histogram:
    histogram = _core.Histogram()
    for _ in range(_VOLUMES * _IOS):
        histogram.record(int(chance.lognormvariate(14.5, 0.5)))
    return histogram


def _spec() -> RunSpec:
    volumes = [{"name": f"v{number}", "url": "null:1073741824"} for number in range(_VOLUMES)]
    streams = [{"name": "s", "volumes": [volume["name"] for volume in volumes], "read_percent": 50.0}]
    return RunSpec.model_validate({"name": "many", "interval_s": 1.0, "volumes": volumes, "streams": streams})


class _Announcements:
    """Says what the hosts say."""

    def __init__(self) -> None:
        self.listen: Callable[[Mapping[str, Any]], None] = lambda said: None

    def __call__(self, listen: Callable[[Mapping[str, Any]], None]) -> Callable[[], None]:
        self.listen = listen
        return lambda: None


def simulate(count: int, folder: Path) -> dict[str, Any]:
    """One run on so many virtual hosts; what the coordinator needed for it."""
    chance, clock = random.Random(count), _VirtualClock()
    one, all_of_it = (_measured("h0", chance, total=total) for total in (False, True))
    hosts = {}
    for number in range(count):
        name = f"h{number}"
        # Nothing is shared, as after a network.
        interval, total = (pickle.loads(pickle.dumps(_renamed(this, name))) for this in (one, all_of_it))
        hosts[name] = _VirtualHost(name, clock, chance, interval, total)
    said = _Announcements()
    with patch.object(protocol, "time", clock):
        began, began_ns, memory = time.process_time(), clock.now_ns, _memory_bytes()
        divided = divide(_spec(), tuple(hosts))
        load = ClusterLoad.start(hosts, said, divided, run_id="r", spool="x")
        armed_s, clocks_s = time.process_time() - began, (clock.now_ns - began_ns) / 1e9
        known = load.facts()["cluster"]
        writer = RunWriter.create(
            folder / "run", name="many", workload=WorkloadSource(name="many"), versions={}
        )
        writer.begin_step("many", spec=load.spec.model_dump(mode="json"), facts=dict(load.facts()))
        per_interval, events, in_last = [], [], 0
        for index in range(INTERVALS):
            if index == _DIES_AT:
                hosts[f"h{count - 1}"].alive = False
            clock.now_ns += 10**9
            began = time.process_time()
            for name, host in hosts.items():
                if host.alive:
                    said.listen({"host": name, "index": index, "run": "r"})
            while (interval := load.next_interval(1.0)) is None:
                pass
            writer.interval(interval)
            summarise_interval(interval, "many")  # for the live table
            per_interval.append(time.process_time() - began)
            events += interval.events
            in_last = len({row.volume.partition("/")[0] for row in interval.rows})
        for name, host in hosts.items():
            if host.alive:
                said.listen({"host": name, "index": None, "run": "r"})
        began = time.process_time()
        end = load.finish()
        finish_s = time.process_time() - began
        writer.end_step(end.total)
        writer.close("complete")
    starts = [host.starts_ns for host in hosts.values()]
    off_ns = [abs(start - load._start_ns) for start in starts]
    bounds_ns = [known[name]["clock_uncertainty_ns"] for name in hosts]
    return {
        "hosts": count,
        "arm_cpu_s": armed_s,
        "clocks_s": clocks_s,
        "interval_cpu_s": sorted(per_interval)[len(per_interval) // 2],
        "interval_cpu_worst_s": max(per_interval),
        "finish_cpu_s": finish_s,
        "memory_bytes": _memory_bytes() - memory,
        "bytes_per_host": len(pickle.dumps(one)),
        "directory_bytes": sum(path.stat().st_size for path in (folder / "run").iterdir()),
        "hosts_in_last": in_last,
        "hosts_in_total": len({row.volume.partition("/")[0] for row in end.total.rows}),
        "events": [event.kind for event in events],
        "skew_us": (max(starts) - min(starts)) / 1e3,
        "bound_us": max(bounds_ns) / 1e3,
        "within_bounds": all(off <= bound for off, bound in zip(off_ns, bounds_ns, strict=True)),
    }


def _renamed(interval: tuple[Any, ...], host: str) -> tuple[Any, ...]:
    """The same figures of another host: making histograms takes longer than all that is measured."""
    index, start_s, end_s, warmup, rows, usage, latencies, events, paths = interval
    rows = [(row[0], f"{host}/{row[1].partition('/')[2]}", *row[2:]) for row in rows]
    latencies = [(*one[:5], f"{host}/{one[5].partition('/')[2]}") if one[5] else one for one in latencies]
    return (index, start_s, end_s, warmup, rows, usage, latencies, events, paths)


def _memory_bytes() -> int:
    """The most that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def transport(seconds: float) -> dict[str, Any]:
    """CPU time of this process for each interval of a real worker: heard of, fetched by TLS, merged."""
    from linerate.cluster import Cluster

    from tests.support.cleared import cleared

    spec = _spec().model_copy(update={"interval_s": 0.1, "elapsed_s": seconds, "warmup_s": 0.0, "workers": 1})
    limited = spec.model_copy(
        update={"arrival": type(spec).model_validate({**_paced(spec), "name": "paced"}).arrival}
    )
    with Cluster([local_endpoint("h1"), local_endpoint("h2")]) as cluster:
        began = time.process_time()
        time.sleep(seconds)
        idle_s = time.process_time() - began
        load = cluster.start(cleared(limited))
        began, count = time.process_time(), 0
        while not load.finished:
            count += load.next_interval(1.0) is not None
        used_s = time.process_time() - began
        load.finish()
    return {
        "intervals": 2 * count,
        "cpu_s_per_interval": (used_s - idle_s) / (2 * count),
        "idle_cpu_s": idle_s,
    }


def _paced(spec: RunSpec) -> dict[str, Any]:
    return {
        **spec.model_dump(mode="json"),
        "arrival": {"kind": "open", "process": "poisson", "rate_iops": 4000.0},
    }


def _table() -> None:
    print("hosts  arm CPU  clocks  CPU per interval  per host  worst  finish  memory  start skew  bound")
    for count in COUNTS:
        command = [sys.executable, "-m", "tests.cluster.thousand", "--hosts", str(count)]
        row = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        each_ms = 1e3 * row["interval_cpu_s"] / count
        print(
            f"{count:5,}  {row['arm_cpu_s']:5.2f} s  {row['clocks_s']:4.1f} s  {row['interval_cpu_s']:14.3f} s  "
            f"{each_ms:5.2f} ms  {row['interval_cpu_worst_s']:.2f} s  {row['finish_cpu_s']:.2f} s  "
            f"{row['memory_bytes'] / 1e6:4.0f} MB  {row['skew_us']:6.0f} us  {row['bound_us']:4.0f} us"
        )


def main() -> None:
    """See the head of the module."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--hosts", type=int)
    parser.add_argument("--transport", action="store_true")
    asked = parser.parse_args()
    if asked.transport:
        print(json.dumps(transport(10.0)))
    elif asked.hosts:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(simulate(asked.hosts, Path(folder))))
    else:
        _table()


if __name__ == "__main__":
    main()
