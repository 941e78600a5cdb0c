"""A layout of paths, summed up: what each path carried, and at which ports senders met.

Paths of the same name are one path, whichever volume they lead to. A path's ends are ports: those in its name
(`h1.p0-a1.p1`, as topologies call them), else the interface or address that it starts from and the portal that it
leads to. Two senders meet at a port when both moved data to it within one interval: the host's ports at an array's
port by writing, the array's ports at a host's port by reading. An interval is the finest that a run records, so a
meeting says that they could get into each other's way, and how often.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

import polars as pl

from linerate.analysis.summary import MIB, NS_PER_MS
from linerate.results import RunDirectory
from linerate.results.columns import PATH_SUMS

Side = Literal["host", "array"]

_NAMED_BY_PORTS = re.compile(r"([^.\s]+\.[^.\s]+?)-([^.\s]+\.[^.\s]+)")
_SESSION = re.compile(r"#\d+$")


@dataclass(frozen=True, slots=True)
class PathFigures:
    """What one path carried over the measured time.

    `queue` is the mean number of I/Os in flight, `service_ms` the mean time of one from its submission on this path.
    `retransmits` are segments that the host sent again, `requeued` I/Os that were sent again over another path when
    this one failed.
    """

    name: str
    host_port: str
    array_port: str
    state: str
    ios: int
    bytes: int
    share_percent: float
    iops: float
    mib_s: float
    queue: float
    service_ms: float
    service_max_ms: float
    retransmits: int
    requeued: int


@dataclass(frozen=True, slots=True)
class Meeting:
    """A port to which several senders moved data within one interval, in `percent` of the intervals with I/O."""

    port: str
    side: Side
    senders: tuple[str, ...]
    percent: float
    queue: float
    service_ms: float


@dataclass(frozen=True, slots=True)
class PathLayout:
    """All paths of a step (or of the same step of several runs), and what the network under them counted.

    `drops` are the frames that switches dropped on the way to a port; ports that were not counted are left out.
    `array_retransmits` are segments that arrays sent again; None if not counted.
    """

    paths: tuple[PathFigures, ...]
    meetings: tuple[Meeting, ...]
    policy: str
    seconds: float
    interval_s: float
    iops: float
    mib_s: float
    service_ms: float
    read_percent: float
    drops: Mapping[str, int]
    array_retransmits: int | None

    @property
    def retransmits(self) -> int:
        """Segments that the hosts sent again."""
        return sum(path.retransmits for path in self.paths)

    def share_of(self, side: Side) -> dict[str, float]:
        """Port of a side -> percent of the bytes that it carried."""
        shares: dict[str, float] = {}
        for path in self.paths:
            port = path.host_port if side == "host" else path.array_port
            if port:
                shares[port] = shares.get(port, 0.0) + path.share_percent
        return shares


@dataclass(frozen=True, slots=True)
class _Part:
    """The rows of one run, with the ports of their paths, and the intervals that they are of."""

    rows: pl.DataFrame
    seconds: float
    intervals: int
    policy: str
    counters: Mapping[str, float]


def layout_of(run: RunDirectory, step: str) -> PathLayout | None:
    """The layout of one step; None when no volume of it has paths."""
    return merged_layout([(run, step)])


def merged_layout(steps: Sequence[tuple[RunDirectory, str]]) -> PathLayout | None:
    """The layout of the same step in several runs, taken together; None without paths."""
    parts = [part for number, (run, step) in enumerate(steps) if (part := _part(run, step, number))]
    if not parts:
        return None
    rows = pl.concat([part.rows for part in parts])
    seconds = sum(part.seconds for part in parts)
    total = _row_of(rows)
    moved = total["read_bytes"] + total["write_bytes"]
    ios = total["read_ios"] + total["write_ios"]
    drops: dict[str, int] = {}
    for part in parts:
        for port, dropped in _drops(part.counters).items():
            drops[port] = drops.get(port, 0) + dropped
    again = [found for part in parts if (found := _array_retransmits(part.counters)) is not None]
    return PathLayout(
        paths=tuple(_paths(rows, seconds, moved)),
        meetings=(*_meetings(rows, seconds, "array"), *_meetings(rows, seconds, "host")),
        policy=parts[0].policy,
        seconds=seconds,
        interval_s=seconds / max(sum(part.intervals for part in parts), 1),
        iops=ios / (seconds or math.inf),
        mib_s=moved / (seconds or math.inf) / MIB,
        service_ms=total["service_sum_ns"] / max(ios, 1) / NS_PER_MS,
        read_percent=100 * total["read_ios"] / max(ios, 1),
        drops=drops,
        array_retransmits=sum(again) if again else None,
    )


def over_time(run: RunDirectory, step: str) -> pl.DataFrame:
    """Per interval (warm-up included) and path: `start_s`, `end_s`, `path`, `ios`, `bytes`, `queue`, `retransmits`."""
    rows = run.paths.filter(pl.col("step") == step)
    return (
        rows.group_by("interval", "start_s", "end_s", "path", maintain_order=True)
        .agg(
            (pl.col("read_ios") + pl.col("write_ios")).sum().alias("ios"),
            (pl.col("read_bytes") + pl.col("write_bytes")).sum().alias("bytes"),
            pl.col("service_sum_ns").sum(),
            pl.col("retransmits").sum(),
        )
        .with_columns((pl.col("service_sum_ns") / 1e9 / (pl.col("end_s") - pl.col("start_s"))).alias("queue"))
        .drop("service_sum_ns")
    )


def ports_of(path: str, spec: Mapping[str, Any]) -> tuple[str, str]:
    """The host's and the array's end of a path of a run spec; empty if unknown."""
    name = _SESSION.sub("", path)
    if found := _NAMED_BY_PORTS.fullmatch(name):
        return found[1], found[2]
    for volume in spec.get("volumes", ()):
        for way in volume.get("paths") or ():
            if way.get("name") == name:
                ours = way.get("interface") or way.get("source_address") or ""
                return ours, way.get("portal") or urlsplit(str(volume.get("url", ""))).netloc
    return "", ""


def _part(run: RunDirectory, step: str, number: int) -> _Part | None:
    rows = run.paths.filter((pl.col("step") == step) & ~pl.col("warmup"))
    if rows.is_empty():
        return None
    record, usage = run.step(step), run.measured_usage(step)
    names = rows["path"].unique().to_list()
    ports = pl.DataFrame(
        [(name, *ports_of(name, record.spec)) for name in names],
        schema=["path", "host_port", "array_port"],
        orient="row",
    )
    policies = [
        (volume.get("multipath") or {}).get("policy", "")
        for volume in record.spec.get("volumes", ())
        if volume.get("paths")
    ]
    return _Part(
        rows=rows.join(ports, on="path").with_columns(pl.lit(number).alias("run")),
        seconds=float((usage["end_s"] - usage["start_s"]).sum()),
        intervals=usage.height,
        policy=policies[0] if len(set(policies)) == 1 else "",
        counters=record.counters,
    )


def _paths(rows: pl.DataFrame, seconds: float, moved: int) -> list[PathFigures]:
    table = rows.group_by("path", "host_port", "array_port", maintain_order=True).agg(
        *(pl.col(name).sum() for name in PATH_SUMS),
        pl.col("service_max_ns").max(),
        pl.col("state").last(),
    )
    found = []
    for row in table.iter_rows(named=True):
        ios, carried = row["read_ios"] + row["write_ios"], row["read_bytes"] + row["write_bytes"]
        found.append(
            PathFigures(
                name=row["path"],
                host_port=row["host_port"],
                array_port=row["array_port"],
                state=row["state"],
                ios=ios,
                bytes=carried,
                share_percent=100 * carried / max(moved, 1),
                iops=ios / (seconds or math.inf),
                mib_s=carried / (seconds or math.inf) / MIB,
                queue=row["service_sum_ns"] / 1e9 / (seconds or math.inf),
                service_ms=row["service_sum_ns"] / max(ios, 1) / NS_PER_MS,
                service_max_ms=row["service_max_ns"] / NS_PER_MS,
                retransmits=row["retransmits"],
                requeued=row["requeued"],
            )
        )
    return found


def _meetings(rows: pl.DataFrame, seconds: float, side: Side) -> list[Meeting]:
    """Ports of a side where senders of the other met, the busiest meeting first."""
    port, sender = ("array_port", "host_port") if side == "array" else ("host_port", "array_port")
    moved = pl.col("write_ios" if side == "array" else "read_ios") > 0
    known = rows.filter(moved & (pl.col(port) != "") & (pl.col(sender) != ""))
    active = known.select("run", "interval").n_unique()
    found = []
    for (name,), of_port in known.group_by([port], maintain_order=True):
        senders = of_port.group_by("run", "interval").agg(pl.col(sender).n_unique().alias("count"))
        shared = senders.filter(pl.col("count") > 1).height
        if not shared:
            continue
        total = _row_of(of_port)
        ios = total["read_ios"] + total["write_ios"]
        found.append(
            Meeting(
                port=str(name),
                side=side,
                senders=tuple(sorted(of_port[sender].unique().to_list())),
                percent=100 * shared / active,
                queue=total["service_sum_ns"] / 1e9 / (seconds or math.inf),
                service_ms=total["service_sum_ns"] / max(ios, 1) / NS_PER_MS,
            )
        )
    return sorted(found, key=lambda meeting: (-round(meeting.percent), meeting.port))


def _row_of(rows: pl.DataFrame) -> dict[str, int]:
    return rows.select(pl.col(name).sum() for name in PATH_SUMS).row(0, named=True)


def _drops(counters: Mapping[str, float]) -> dict[str, int]:
    ending = ".switch_drops"
    return {
        name.removeprefix("port.").removesuffix(ending): int(value)
        for name, value in counters.items()
        if name.startswith("port.") and name.endswith(ending)
    }


def _array_retransmits(counters: Mapping[str, float]) -> int | None:
    found = [
        value
        for name, value in counters.items()
        if name.startswith("array.") and name.endswith(".tcp_segments_retransmitted")
    ]
    return int(sum(found)) if found else None
