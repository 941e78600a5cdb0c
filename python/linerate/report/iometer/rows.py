"""The rows of one step: all, the manager, each worker and each of its disks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from linerate.report.iometer.columns import BINS
from linerate.results import LatencyHistogram, RunDirectory, StepRecord
from linerate.results.histogram import merged
from linerate.results.sample import OPS, Op

_MIB, _MB = 1 << 20, 10**6
_NS_PER_S = 1_000_000_000
_NS_PER_MS = 1e6
_SECTOR_BYTES = 512
_AMBIGUOUS = -1
"""Iometer's value for what targets do not have in common, and for what is not measured."""
_NAMES: Mapping[Op, str] = {"read": "Read", "write": "Write"}


def plain(text: str) -> str:
    """A name without what would end its column, as Iometer writes it."""
    return "".join(" " if char in "\r\n," else char for char in text)


class StepRows:
    """The measured time of a step, row by row. Each row has texts by the name of their column."""

    def __init__(self, run: RunDirectory, step: StepRecord) -> None:
        self._run = run
        self._step = step
        self._counters = run.measured_rows(step.key)
        self._usage = run.measured_usage(step.key)
        self._seconds = float((self._usage["end_s"] - self._usage["start_s"]).sum())
        self._streams: Sequence[Mapping[str, Any]] = step.spec.get("streams", ())
        self._volumes = {volume["name"]: volume for volume in step.spec.get("volumes", ())}
        self._users = Counter(name for stream in self._streams for name in stream["volumes"])
        workers = step.iometer.workers if step.iometer is not None else ()
        self._workers = {worker.stream: worker for worker in workers}

    def rows(self) -> Iterator[Mapping[str, str]]:
        """All rows in Iometer's order."""
        whole = self._figures(
            self._counters, [name for stream in self._streams for name in stream["volumes"]]
        )
        bins = self._bins(self._histogram())
        counts = {
            "# Workers": str(len(self._streams)),
            "# Disks": str(sum(len(stream["volumes"]) for stream in self._streams)),
            "Access Specification Name": self._common_specification(),
        }
        cpu = self._cpu(whole)
        without_raw = {name: text for name, text in whole.items() if " Raw " not in name}
        head = {"Target Type": "ALL", "Target Name": "All", "# Managers": "1"}
        yield {**without_raw, **counts, **cpu, **bins, **head}
        own = {"Target Type": "MANAGER", "Target Name": self._manager(), "Processor Speed": str(_NS_PER_S)}
        yield {**whole, **counts, **cpu, **bins, **own}
        for stream in self._streams:
            yield from self._worker(stream)

    def _worker(self, stream: Mapping[str, Any]) -> Iterator[Mapping[str, str]]:
        name, volumes = stream["name"], stream["volumes"]
        worker = self._workers.get(name)
        rows = self._counters.filter(pl.col("stream") == name)
        speed = {"Processor Speed": str(_NS_PER_S)}
        yield {
            **self._figures(rows, volumes),
            **self._bins(self._histogram(stream=name)),
            **speed,
            "Target Type": "WORKER",
            "Target Name": plain(name),
            "Access Specification Name": plain(worker.specification if worker else self._step.label),
            "# Disks": str(len(volumes)),
        }
        for volume in volumes:
            alone = self._users[volume] == 1
            # Of several streams on several volumes, the histograms do not say which I/Os were which.
            known = alone or len(volumes) == 1
            found = self._histogram(volume=volume) if alone else self._histogram(stream=name)
            yield {
                **self._figures(rows.filter(pl.col("volume") == volume), [volume]),
                **(self._bins(found) if known else {}),
                **speed,
                "Target Type": "DISK",
                "Target Name": plain(worker.targets.get(volume, volume) if worker else volume),
            }

    def _manager(self) -> str:
        record = self._step.iometer
        host = str(self._run.manifest.environment.get("host.name", ""))
        return plain(record.manager if record is not None and record.manager else host)

    def _common_specification(self) -> str:
        """Empty if the workers differ."""
        names = {worker.specification for worker in self._workers.values()} or {self._step.label}
        return plain(names.pop()) if len(names) == 1 else ""

    def _figures(self, rows: pl.DataFrame, volumes: Sequence[str]) -> dict[str, str]:
        """Rates, times and counts of some rows, and what their volumes have in common."""
        sides = {op: _Side(rows.filter(pl.col("op") == op)) for op in OPS}
        both = [sides[op] for op in OPS]
        ios, total_bytes = sum(side.ios for side in both), sum(side.bytes for side in both)
        total_ns, max_ns = sum(side.sum_ns for side in both), max(side.max_ns for side in both)
        figures = {
            **self._rates("", ios, total_bytes),
            "Transactions per Second": self._per_second(ios),
            "Connections per Second": _decimal(0),
            "Errors": str(sum(side.errors for side in both)),
            "Connections": "0",
            "Transactions per Connection": str(_AMBIGUOUS),
            "Total Raw Run Time": str(round(self._seconds * _NS_PER_S)),
            **self._common(volumes),
        }
        for what in ("Response Time", "Transaction Time"):
            figures[f"Average {what}"] = _mean_ms(total_ns, ios)
            figures[f"Maximum {what}"] = _decimal(max_ns / _NS_PER_MS)
        raw = {"Transaction Time": (total_ns, max_ns), "Connection Time": (0, 0)}
        for op, side in sides.items():
            name = _NAMES[op]
            figures |= self._rates(f"{name} ", side.ios, side.bytes)
            figures[f"{name} Errors"] = str(side.errors)
            figures[f"{name} I/Os"] = str(side.ios)
            figures[f"Average {name} Response Time"] = _mean_ms(side.sum_ns, side.ios)
            figures[f"Maximum {name} Response Time"] = _decimal(side.max_ns / _NS_PER_MS)
            raw[f"{name} Response Time"] = (side.sum_ns, side.max_ns)
        for what, (sum_ns, most_ns) in raw.items():
            figures[f"Total Raw {what}"], figures[f"Maximum Raw {what}"] = str(sum_ns), str(most_ns)
        figures |= {"Bytes Read": str(sides["read"].bytes), "Bytes Written": str(sides["write"].bytes)}
        return figures | {"Average Connection Time": _decimal(0), "Maximum Connection Time": _decimal(0)}

    def _rates(self, name: str, ios: int, total_bytes: int) -> dict[str, str]:
        return {
            f"{name}IOps": self._per_second(ios),
            f"{name}MiBps (Binary)": self._per_second(total_bytes / _MIB),
            f"{name}MBps (Decimal)": self._per_second(total_bytes / _MB),
        }

    def _per_second(self, amount: float) -> str:
        return _decimal(amount / self._seconds if self._seconds else 0.0)

    def _common(self, volumes: Sequence[str]) -> dict[str, str]:
        specs = [self._volumes[name] for name in volumes if name in self._volumes]
        return {
            "Starting Sector": _one_of([spec.get("first_byte", 0) // _SECTOR_BYTES for spec in specs]),
            "Maximum Size": _one_of([(spec.get("size_bytes") or 0) // _SECTOR_BYTES for spec in specs]),
            "Queue Depth": _one_of([self._depth(spec) for spec in specs]),
        }

    def _depth(self, volume: Mapping[str, Any]) -> int:
        """Of one stream; streams take even turns in the queue of a volume."""
        outstanding, users = int(volume.get("outstanding", 0)), max(self._users[volume["name"]], 1)
        return outstanding if outstanding % users else outstanding // users

    def _cpu(self, whole: Mapping[str, str]) -> dict[str, str]:
        """Of the host. What Linerate does not count is 0."""
        spent = {
            kind: float(self._usage[f"host_cpu_{kind}_s"].sum())
            for kind in ("user", "system", "idle", "wait")
        }
        total_s = sum(spent.values())
        user, system = (100 * spent[kind] / total_s if total_s else 0.0 for kind in ("user", "system"))
        busy = user + system
        return {
            "% CPU Utilization": _decimal(busy),
            "% User Time": _decimal(user),
            "% Privileged Time": _decimal(system),
            **dict.fromkeys(("% DPC Time", "% Interrupt Time", "Interrupts per Second"), _decimal(0)),
            **dict.fromkeys(("Packets/Second", "Packet Errors"), _decimal(0)),
            "CPU Effectiveness": _decimal(float(whole["IOps"]) / busy if busy else 0.0),
            "Segments Retransmitted/Second": self._per_second(int(self._usage["retransmits"].sum())),
        }

    def _histogram(self, *, stream: str | None = None, volume: str | None = None) -> LatencyHistogram | None:
        key = self._step.key
        found = (self._run.latency(key, stream=stream, volume=volume, op=op) for op in OPS)
        return merged(histogram for histogram in found if histogram is not None)

    def _bins(self, histogram: LatencyHistogram | None) -> dict[str, str]:
        counts = dict.fromkeys((name for name, _ in BINS), 0)
        for lowest, highest, count in histogram.buckets() if histogram is not None else ():
            name = next(name for name, limit_ns in BINS if (lowest + highest) / 2 < limit_ns)
            counts[name] += count
        return {name: str(count) for name, count in counts.items()}


class _Side:
    """Reads or writes of some rows."""

    def __init__(self, rows: pl.DataFrame) -> None:
        self.ios = int(rows["ios"].sum())
        self.bytes = int(rows["bytes"].sum())
        self.errors = int(rows["errors"].sum())
        self.sum_ns = int(rows["service_sum_ns"].sum())
        highest: Any = rows["service_max_ns"].max()
        self.max_ns = int(highest or 0)


def _decimal(value: float) -> str:
    return f"{value:.6f}"


def _mean_ms(sum_ns: int, ios: int) -> str:
    return _decimal(sum_ns / ios / _NS_PER_MS if ios else 0.0)


def _one_of(values: Sequence[int]) -> str:
    return str(values[0] if values and len(set(values)) == 1 else _AMBIGUOUS)
