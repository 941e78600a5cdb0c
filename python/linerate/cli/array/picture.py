"""An array as a picture for a terminal: pools, the RAID sets below them, their disks, and the volumes."""

from __future__ import annotations

import sys
import threading
import time
from json import dumps
from typing import TYPE_CHECKING

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from linerate.cli.array.disk_rows import count, disk_rows, row_of
from linerate.cli.array.layout import WIDE, PictureLayout, fitted, grid, has_blocks, text_lines
from linerate.cli.console import console
from linerate.cli.discover import size_text
from linerate.plural import plural

if TYPE_CHECKING:
    from linerate.array.control import ArrayReport, ControlClient
    from linerate.array.control.report import (
        FileSystemReport,
        PoolReport,
        RaidSetReport,
        ReplicationReport,
        StaticVolume,
        VolumeReport,
    )

_SET_STYLE = {"optimal": "green", "degraded": "yellow", "failed": "bold red"}


def show(client: ControlClient, seconds: float) -> None:
    """Draws the array once, with what its disks did in that time."""
    before, started = client.report(), time.monotonic()
    threading.Event().wait(seconds)
    now, took, out = client.report(), time.monotonic() - started, console()
    if out.is_terminal:
        layout = PictureLayout(width=out.width, blocks=has_blocks(out.encoding))
        out.print(picture(before, now, took, layout))
        return
    for line in text_lines(picture(before, now, took, _plain())):
        typer.echo(line)


def watch(client: ControlClient, seconds: float) -> None:
    """Draws it again and again until Ctrl-C: in place on a terminal, one picture after the other in a pipe."""
    before, started = client.report(), time.monotonic()
    out = console()
    if not out.is_terminal:
        while True:
            threading.Event().wait(seconds)
            now, ended = client.report(), time.monotonic()
            for line in text_lines(picture(before, now, ended - started, _plain())):
                typer.echo(line)
            typer.echo()
            sys.stdout.flush()
            before, started = now, ended
    with Live(console=out, auto_refresh=False) as live:
        live.update(fitted(lambda layout: picture(before, before, 0, layout), out), refresh=True)
        while True:
            threading.Event().wait(seconds)
            now, ended = client.report(), time.monotonic()
            took = ended - started

            def draw(
                layout: PictureLayout,
                before: ArrayReport = before,
                now: ArrayReport = now,
                took: float = took,
            ) -> RenderableType:
                return picture(before, now, took, layout)

            live.update(fitted(draw, out), refresh=True)
            before, started = now, ended


def watch_json(client: ControlClient, seconds: float) -> None:
    """One JSON object per interval and line until Ctrl-C."""
    while True:
        typer.echo(dumps(client.status()))
        sys.stdout.flush()
        threading.Event().wait(seconds)


def _plain() -> PictureLayout:
    """For a pipe, whose reader takes what its encoding has."""
    return PictureLayout(blocks=has_blocks(sys.stdout.encoding or "utf-8"))


def picture(
    before: ArrayReport, now: ArrayReport, seconds: float, layout: PictureLayout | None = None
) -> RenderableType:
    """The array as it is, and what it did between two reports that many seconds apart."""
    layout = layout or PictureLayout()
    storage = now.storage
    parts: list[RenderableType] = [_head(now)]
    if storage.pools:
        parts.append(_pools(storage.pools, layout))
    for raid in storage.raid_sets:
        disks = tuple(disk for disk in storage.disks if disk.raid_set == raid.name)
        earlier = next((one for one in before.storage.raid_sets if one.name == raid.name), raid)
        head = _raid_set(raid, layout)
        rows = disk_rows(before.storage.disks, disks, seconds, layout)
        parts.append(Group(head, Text("  ") + row_of(disks), rows, *_below(earlier, raid, seconds)))
    if unassigned := tuple(disk for disk in storage.disks if disk.raid_set is None):
        title = Text("disks in no RAID set", style="bold")
        parts.append(Group(title, disk_rows(before.storage.disks, unassigned, seconds, layout)))
    if short := [one for one in storage.file_systems if one.free_bytes < one.unallocated_bytes]:
        parts.append(Group(*map(_file_system, short)))
    parts.append(_volumes(now, layout))
    if now.replications:
        parts.append(_replications(now.replications, layout))
    if not layout.spaced:
        return Group(*parts)
    return Group(*[Padding(part, (0, 0, 1, 0)) for part in parts[:-1]], parts[-1])


def _head(report: ArrayReport) -> Text:
    text = Text.assemble(("array ", "dim"), (report.name, "bold"))
    text.append(f"  {', '.join(report.portals)}  {plural(len(report.by_session), 'session')}")
    if report.untouched_bytes:
        text.append(f"  touching memory: {size_text(report.untouched_bytes)} left", style="yellow")
    if report.identity:
        text.append(f"\nidentity {report.identity}", style="dim")
    return text


def _pools(pools: tuple[PoolReport, ...], layout: PictureLayout) -> RenderableType:
    table = grid(5)
    lines: list[Text] = []
    for pool in pools:
        share = pool.used_bytes / pool.size_bytes if pool.size_bytes else 0.0
        style = "bold red" if share >= 1 else "yellow" if pool.warning else "green"
        used = f"{size_text(pool.used_bytes)} of {size_text(pool.size_bytes)} used ({share:.0%})"
        times = pool.provisioned_bytes / pool.size_bytes if pool.size_bytes else 0.0
        over = f", {times:.1f} times its size" if times > 1 else ""
        provisioned = f"{size_text(pool.provisioned_bytes)} provisioned{over}"
        warning = Text("nearly full", style="bold yellow") if pool.warning else Text()
        name = Text.assemble(("pool ", "dim"), (pool.name, "bold"))
        bar = Text(layout.bar(share), style=style)
        table.add_row(name, bar, used, provisioned, warning)
        lines.append(Text("  ").join([name, bar, Text(used)]))
        lines.append(Text("  ").join([Text(f"  {provisioned}"), warning]))
    return table if layout.width >= WIDE else Group(*lines)


def _raid_set(raid: RaidSetReport, layout: PictureLayout) -> Text:
    level = raid.level.upper().replace("RAID", "RAID ")
    head = Text.assemble(("RAID set ", "dim"), (raid.name, "bold"), f"  {level}, ")
    head.append(f"{size_text(raid.size_bytes)} of {size_text(raid.raw_bytes)}  ")
    head.append(raid.state, style=_SET_STYLE[raid.state])
    if raid.task is not None:
        bar = layout.bar(raid.task.done)
        head.append(f"  {raid.task.kind} {bar} {raid.task.done:.0%}", style="yellow")
        if raid.task.lacks_space:
            head.append(" waits for space", style="bold yellow")
    return head


def _below(before: RaidSetReport, raid: RaidSetReport, seconds: float) -> list[Text]:
    """What is said below the disks of a set."""
    parts = []
    if line := _writes(before, raid, seconds):
        parts.append(Text("  " + line))
    if raid.mismatches_found:
        left = raid.mismatches_found - raid.mismatches_mended
        text = (
            f"  {raid.mismatches_found} blocks did not agree, {raid.mismatches_mended} mended since the start"
        )
        parts.append(Text(text, style="bold red" if left else "yellow"))
    return parts


def _file_system(one: FileSystemReport) -> Text:
    """A file system on which sparse disks may come to find no space."""
    free, wanted = size_text(one.free_bytes), size_text(one.unallocated_bytes)
    text = f"{one.folder}: {free} free, and sparse disks may still need {wanted}"
    return Text(text, style="bold yellow")


def _writes(before: RaidSetReport, raid: RaidSetReport, seconds: float) -> str:
    """How the set wrote in the time between two reports."""
    if seconds <= 0:
        return ""
    kinds = {
        "full stripes": raid.full_stripe_writes - before.full_stripe_writes,
        "read-modify-writes": raid.read_modify_writes - before.read_modify_writes,
        "reconstruct writes": raid.reconstruct_writes - before.reconstruct_writes,
        "degraded reads": raid.degraded_reads - before.degraded_reads,
    }
    return ", ".join(f"{count(times / seconds)} {kind}/s" for kind, times in kinds.items() if times > 0)


def _volumes(report: ArrayReport, layout: PictureLayout) -> Group:
    """The volumes below the target that shows them: with several targets a LUN alone names none."""
    parts: list[RenderableType] = []
    left = list(report.storage.volumes)
    for target in report.targets:
        mine = {volume.name for volume in target.volumes if volume.kind == "pool"}
        thin = [one for one in left if one.target == target.name or (one.target is None and one.name in mine)]
        left = [one for one in left if one not in thin]
        heading = Text.assemble(("target ", "dim"), target.name, " (CHAP)" if target.chap else "")
        if len(report.targets) == 1:
            thin, left = [*thin, *left], []
        parts.append(Group(heading, _volume_rows(report, target.volumes, thin, layout)))
    if left:
        parts.append(Group(Text("volumes of no target", style="dim"), _volume_rows(report, (), left, layout)))
    return Group(*parts)


def _volume_rows(
    report: ArrayReport, named: tuple[StaticVolume, ...], thin: list[VolumeReport], layout: PictureLayout
) -> Table:
    """Volumes that the array file names, and those of pools."""
    heads = ("volume", "where", "LUN", "size", "used", "snapshots")
    shown = [number for number in range(6) if layout.width >= 60 or number not in (1, 5)]
    table = grid(len(shown), right={shown.index(number) for number in (2, 3, 4)})

    def add(*cells: str | Text) -> None:
        table.add_row(*[cells[number] for number in shown])

    add(*[Text(name, style="dim") for name in heads])
    for volume in named:
        if volume.kind != "pool":
            size_bytes = volume.size_in(report.storage)
            size = size_text(size_bytes) if size_bytes else ""
            add(Text(volume.name, style="bold"), volume.where, str(volume.lun), size, "", "")
    luns = {volume.name: volume.lun for volume in named}
    for made in thin:
        lun = made.lun if made.lun is not None else luns.get(made.name)
        add(
            Text(made.name, style="bold"),
            f"pool {made.pool}",
            "-" if lun is None else str(lun),
            size_text(made.size_bytes),
            size_text(made.used_bytes),
            _snapshots(made),
        )
    return table


def _replications(replications: tuple[ReplicationReport, ...], layout: PictureLayout) -> Table:
    table = grid(4)
    for one in replications:
        way = f"{_WAY[one.role]} {one.partner}"
        state = Text(one.state, style=_REPLICATION_STYLE[one.state])
        if one.done is not None:
            state.append(f" {layout.bar(one.done)} {one.done:.0%}")
        if one.rate_bytes_per_s:
            state.append(f", {one.rate_bytes_per_s / (1 << 20):.1f} MB/s")
        if one.error:
            state.append(f": {one.error}")
        newest = "no whole copy yet" if one.lag_s is None else f"newest copy {_age(one.lag_s)}"
        name = Text.assemble(("replication ", "dim"), (one.name, "bold"))
        table.add_row(name, way, newest, state)
    return table


_WAY = {"primary": "to", "replica": "from", "promoting": "taking over from", "none": "not begun, with"}
_REPLICATION_STYLE = {"idle": "green", "copying": "yellow", "waiting": "bold yellow", "failed": "bold red"}


def _snapshots(volume: VolumeReport) -> str:
    names = [f"{one.name} ({_age(time.time() - one.at_s)})" for one in volume.snapshots]
    more = f"{len(names) - _SNAPSHOTS_SHOWN} older, " if len(names) > _SNAPSHOTS_SHOWN else ""
    return more + ", ".join(names[-_SNAPSHOTS_SHOWN:])


_SNAPSHOTS_SHOWN = 4


def _age(seconds: float) -> str:
    """How long ago something was, to one figure that matters."""
    for unit, length_s in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length_s:
            return f"{seconds / length_s:.0f} {unit} old"
    return f"{max(seconds, 0):.0f} s old"
