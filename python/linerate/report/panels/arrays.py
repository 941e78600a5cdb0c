"""The panel of the arrays' disks: gathered for one step or for several runs, written alike in both kinds of report."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from linerate.analysis.arrays import ArrayUse, PartUse, array_use
from linerate.analysis.summary import NS_PER_MS
from linerate.report import figures
from linerate.report.panels import charts, series
from linerate.report.panels.series import Point
from linerate.report.panels.svg import PATHS
from linerate.results import RunDirectory

WARN_PERCENT = 80.0
"""A fuller pool is marked, also if the array gives no warning."""
_CHARTS = (
    ("iops", "disk i/o rate by RAID set", "disk IOPS"),
    ("queue", "I/Os in flight on each disk", "mean queue"),
    ("ms", "work per disk I/O", "ms"),
    ("parity", "read-modify-writes by RAID set", "writes/s"),
    ("done", "progress of background tasks", "%"),
)
_SUMMED = (
    "seconds", "reads", "writes", "response_ns", "busy_ns", "read_modify_writes", "reconstruct_writes",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ArrayPanel:
    """The arrays of one step; `charts` are titles, notes and specs, still to be drawn."""

    use: ArrayUse
    charts: tuple[tuple[str, charts.Spec, str], ...] = ()

    @property
    def several(self) -> bool:
        """Names of parts do not say of which array they are."""
        return len({part.row.array for part in (*self.use.disks, *self.use.raid_sets, *self.use.pools)}) > 1

    def name(self, part: PartUse) -> str:
        """What a part is called."""
        return f"{part.row.array}.{part.row.name}" if self.several else part.row.name


def array_panel(run: RunDirectory, step: str, points_max: int, *, brief: bool) -> ArrayPanel | None:
    """The panel of a step; None if the disks were not watched."""
    use = array_use(run, step)
    if use is None:
        return None
    points = sets_over_time(run, step, points_max, len(PATHS))
    warmup_end_s = series.warmup_end_s(run, step)
    drawn = tuple(
        (title, charts.sets_chart(points, field, unit, warmup_end_s), "")
        for field, title, unit in (_CHARTS[:1] if brief else _CHARTS)
        if any(point[field] for point in points)
    )
    return ArrayPanel(use, drawn)


def filters() -> dict[str, Callable[..., Any]]:
    """What the template's macros need beyond those of the paths' template."""
    return {"task": task, "fill": fill, "overfull": overfull, "size": figures.size}


def task(part: PartUse) -> str:
    """What a RAID set does in the background, and how far it is."""
    return f"{part.row.task} {100 * part.row.done:.1f} %" if part.row.task else figures.NOTHING


def fill(part: PartUse) -> str:
    """How full a pool or volume is, in words."""
    used = part.used_percent
    return figures.NOTHING if used is None else f"{used:.1f} %"


def overfull(part: PartUse) -> bool:
    """A pool that shall be looked after."""
    return part.row.warning or (part.used_percent or 0.0) > WARN_PERCENT


def sets_over_time(run: RunDirectory, step: str, points_max: int, sets_max: int) -> list[Point]:
    """Disk I/Os per second, queue, work per I/O, stripe writes that read first, progress: of each RAID set over time.

    Neighbouring intervals are summed, warm-up included. Disks of no set stand for themselves. Sets beyond `sets_max`
    are left out: those that did least.
    """
    table = run.arrays.filter((pl.col("step") == step) & pl.col("part").is_in(["disk", "raid_set"]))
    if table.is_empty():
        return []
    named = table.with_columns(_set_of(table["array"].n_unique() > 1).alias("set")).filter(
        pl.col("state") != "spare"
    )
    busiest = (
        named.group_by("set").agg(pl.col("busy_ns").sum()).sort("busy_ns", "set", descending=[True, False])
    )
    kept = busiest["set"].to_list()[:sets_max]
    size = max(1, math.ceil(named["interval"].n_unique() / points_max))
    grouped = (
        named.filter(pl.col("set").is_in(kept))
        .with_columns((pl.col("interval") // size).alias("group"))
        .group_by("group", "set", "part", maintain_order=True)
        .agg(
            pl.col("start_s").min(),
            pl.col("end_s").max(),
            pl.col(_SUMMED).sum(),
            pl.col("name").n_unique().alias("count"),
            pl.col("done").last(),
            pl.col("task").last(),
        )
        .sort("set", "group")
    )
    return list(_points(grouped))


def _set_of(several: bool) -> pl.Expr:
    own = (
        pl.when((pl.col("part") == "disk") & (pl.col("member_of") != "")).then("member_of").otherwise("name")
    )
    return pl.concat_str("array", own, separator=".") if several else own


def _points(grouped: pl.DataFrame) -> Iterator[Point]:
    """One point per set and group, of its disks' row and its own."""
    found: dict[tuple[str, int], Point] = {}
    for row in grouped.iter_rows(named=True):
        point = found.setdefault(
            (row["set"], row["group"]),
            {
                "t": round((row["start_s"] + row["end_s"]) / 2, 3), "set": row["set"],
                "iops": None, "queue": None, "ms": None, "parity": None, "done": None,
            },
        )  # fmt: skip
        if not row["seconds"]:
            continue
        if row["part"] == "disk":
            ios = row["reads"] + row["writes"]
            # `seconds` are summed over the disks: a rate of one disk, times their number.
            point["iops"] = _short(ios / row["seconds"] * row["count"])
            point["queue"] = _short(row["response_ns"] / 1e9 / row["seconds"])
            point["ms"] = _short(row["busy_ns"] / ios / NS_PER_MS) if ios else None
        else:
            first = row["read_modify_writes"] + row["reconstruct_writes"]
            point["parity"] = _short(first / row["seconds"])
            point["done"] = _short(100 * row["done"]) if row["task"] else None
    yield from found.values()


def _short(value: float) -> float:
    return float(format(value, ".4g"))
