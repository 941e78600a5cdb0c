"""An array as a picture for a terminal: pools, the RAID sets below them, their disks, and the volumes."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from linerate.cli.array.rates import Rates, rates
from linerate.cli.console import console
from linerate.cli.discover import size_text

if TYPE_CHECKING:
    from linerate.array.control import ArrayReport, ControlClient
    from linerate.array.control.report import (
        DiskReport,
        PoolReport,
        RaidSetReport,
        ReplicationReport,
        VolumeReport,
    )

_FULL, _EMPTY = "\u2588", "\u2591"
_BAR = 20
_PIPE_WIDTH = 160
_LINES_BESIDE = 20
"""Lines that a picture has beside those of its disks, about."""
_STYLE = {
    "online": "green",
    "spare": "cyan",
    "rebuilding": "yellow",
    "failed": "bold red",
    "missing": "bold red",
}
_SET_STYLE = {"optimal": "green", "degraded": "yellow", "failed": "bold red"}


def show(client: ControlClient, seconds: float) -> None:
    """Draws the array once, with what its disks did in that time."""
    before, started = client.report(), time.monotonic()
    threading.Event().wait(seconds)
    drawn, out = picture(before, client.report(), time.monotonic() - started), console()
    if out.is_terminal:
        out.print(drawn)
        return
    wide = Console(width=_PIPE_WIDTH, highlight=False, color_system=None)
    with wide.capture() as captured:
        wide.print(drawn)
    for line in captured.get().splitlines():
        typer.echo(line.rstrip())


def watch(client: ControlClient, seconds: float) -> None:
    """Draws it anew until Ctrl-C."""
    before, started = client.report(), time.monotonic()
    out = console()
    with Live(picture(before, before, 0), console=out, auto_refresh=False) as live:
        while True:
            threading.Event().wait(seconds)
            now, ended = client.report(), time.monotonic()
            few = len(now.storage.disks) + _LINES_BESIDE <= out.height
            live.update(picture(before, now, ended - started, every_disk=few), refresh=True)
            before, started = now, ended


def picture(
    before: ArrayReport, now: ArrayReport, seconds: float, *, every_disk: bool = True
) -> RenderableType:
    """The array as it is, and what it did between two reports that many seconds apart.

    Without `every_disk` only those have a line that are not simply online.
    """
    storage = now.storage
    parts: list[RenderableType] = [_head(now)]
    if storage.pools:
        parts.append(_pools(storage.pools))
    for raid in storage.raid_sets:
        disks = tuple(disk for disk in storage.disks if disk.raid_set == raid.name)
        earlier = next((one for one in before.storage.raid_sets if one.name == raid.name), raid)
        rows = _disks(before.storage.disks, disks, seconds, every_disk)
        parts.append(_raid_set(earlier, raid, disks, rows, seconds))
    if loose := tuple(disk for disk in storage.disks if disk.raid_set is None):
        parts.append(
            Group(
                Text("disks in no RAID set", style="bold"),
                _disks(before.storage.disks, loose, seconds, every_disk),
            )
        )
    parts.append(_volumes(now))
    if now.replications:
        parts.append(_replications(now.replications))
    return Group(*[Padding(part, (0, 0, 1, 0)) for part in parts[:-1]], parts[-1])


def _head(report: ArrayReport) -> Text:
    sessions = len(report.by_session)
    text = Text.assemble(("array ", "dim"), (report.name, "bold"))
    text.append(f"  {', '.join(report.portals)}  {sessions} session{'' if sessions == 1 else 's'}")
    if report.identity:
        text.append(f"\nidentity {report.identity}", style="dim")
    return text


def _pools(pools: tuple[PoolReport, ...]) -> Table:
    grid = _grid(5)
    for pool in pools:
        share = pool.used_bytes / pool.size_bytes if pool.size_bytes else 0.0
        style = "bold red" if share >= 1 else "yellow" if pool.warning else "green"
        used = f"{size_text(pool.used_bytes)} of {size_text(pool.size_bytes)} used ({share:.0%})"
        promised = f"{size_text(pool.promised_bytes)} promised"
        times = pool.promised_bytes / pool.size_bytes if pool.size_bytes else 0.0
        over = f", {times:.1f} times its size" if times > 1 else ""
        warning = Text("nearly full", style="bold yellow") if pool.warning else Text()
        name = Text.assemble(("pool ", "dim"), (pool.name, "bold"))
        grid.add_row(name, Text(_bar(share), style=style), used, promised + over, warning)
    return grid


def _raid_set(
    before: RaidSetReport, raid: RaidSetReport, disks: tuple[DiskReport, ...], rows: Table, seconds: float
) -> Group:
    level = raid.level.upper().replace("RAID", "RAID ")
    head = Text.assemble(("RAID set ", "dim"), (raid.name, "bold"), f"  {level}, ")
    head.append(f"{size_text(raid.size_bytes)} of {size_text(raid.raw_bytes)}  ")
    head.append(raid.state, style=_SET_STYLE[raid.state])
    if raid.task is not None:
        head.append(f"  {raid.task.kind} {_bar(raid.task.done)} {raid.task.done:.0%}", style="yellow")
    parts: list[RenderableType] = [head, Text("  ") + _row_of(disks), rows]
    if line := _writes(before, raid, seconds):
        parts.append(Text("  " + line))
    if raid.mismatches_found:
        left = raid.mismatches_found - raid.mismatches_mended
        text = (
            f"  {raid.mismatches_found} blocks did not agree, {raid.mismatches_mended} mended since the start"
        )
        parts.append(Text(text, style="bold red" if left else "yellow"))
    return Group(*parts)


def _row_of(disks: tuple[DiskReport, ...]) -> Text:
    """The members as boxes, then the spares."""
    row = Text()
    spares = [disk for disk in disks if disk.state == "spare"]
    for disk in [disk for disk in disks if disk.state != "spare"]:
        said = "" if disk.state == "online" else f" {disk.state}"
        row.append(f"[{disk.name}{said}]", style=_STYLE[disk.state])
    if spares:
        row.append("  spare ")
        for disk in spares:
            row.append(f"[{disk.name}]", style=_STYLE["spare"])
    return row


def _disks(
    before: tuple[DiskReport, ...], disks: tuple[DiskReport, ...], seconds: float, every_disk: bool
) -> Table:
    grid = _grid(10, right={2, 3, 4, 5, 6, 7, 8})
    grid.add_row(*[Text(name, style="dim") for name in _HEADS])
    for disk in disks:
        if not every_disk and disk.state in ("online", "spare") and not disk.errors:
            continue
        style = _STYLE[disk.state]
        errors = Text(f"{disk.errors} errors", style="bold red") if disk.errors else Text()
        grid.add_row(
            f"  {disk.name}",
            Text(disk.state, style=style),
            size_text(disk.size_bytes),
            *_cells(rates(before, (disk,), seconds)),
            Text.assemble(disk.model or "", "  " if disk.errors and disk.model else "", errors),
        )
    working = tuple(disk for disk in disks if disk.state in ("online", "rebuilding"))
    if len(working) > 1 and (total := rates(before, working, seconds)) is not None:
        grid.add_row("  all", "", "", *_cells(total), "", style="bold")
    return grid


_HEADS = ("  disk", "", "size", "reads/s", "writes/s", "MB/s", "queue", "service", "busy", "")


def _cells(found: Rates | None) -> tuple[str, ...]:
    if found is None:
        return ("-",) * 6
    service = "-" if found.service_us is None else _time(found.service_us)
    return (
        _count(found.reads),
        _count(found.writes),
        f"{found.mib_s:.1f}",
        f"{found.outstanding:.1f}",
        service,
        f"{found.busy:.0%}",
    )


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
    return ", ".join(f"{_count(times / seconds)} {kind}/s" for kind, times in kinds.items() if times > 0)


def _volumes(report: ArrayReport) -> Group:
    grid = _grid(6, right={2, 3, 4})
    grid.add_row(
        *[Text(name, style="dim") for name in ("volume", "where", "LUN", "size", "used", "snapshots")]
    )
    thin = {volume.name: volume for volume in report.storage.volumes}
    sets = {raid.name: raid.size_bytes for raid in report.storage.raid_sets}
    for volume in (volume for target in report.targets for volume in target.volumes):
        if volume.kind != "pool":
            where = f"RAID set {volume.raid_set}" if volume.raid_set else volume.path or "memory"
            size_bytes = volume.size_bytes or sets.get(volume.raid_set or "")
            size = size_text(size_bytes) if size_bytes else ""
            grid.add_row(Text(volume.name, style="bold"), where, str(volume.lun), size, "", "")
    luns = {volume.name: volume.lun for target in report.targets for volume in target.volumes}
    for made in thin.values():
        lun = made.lun if made.lun is not None else luns.get(made.name)
        grid.add_row(
            Text(made.name, style="bold"),
            f"pool {made.pool}",
            "-" if lun is None else str(lun),
            size_text(made.size_bytes),
            size_text(made.used_bytes),
            _snapshots(made),
        )
    targets = ", ".join(f"{one.name}{' (CHAP)' if one.chap else ''}" for one in report.targets)
    return Group(Text.assemble(("target ", "dim"), targets), grid)


def _replications(replications: tuple[ReplicationReport, ...]) -> Table:
    grid = _grid(4)
    for one in replications:
        way = f"{_WAY[one.role]} {one.partner}"
        state = Text(one.state, style=_REPLICATION_STYLE[one.state])
        if one.done is not None:
            state.append(f" {_bar(one.done)} {one.done:.0%}")
        if one.rate_bytes_per_s:
            state.append(f", {one.rate_bytes_per_s / (1 << 20):.1f} MB/s")
        if one.error:
            state.append(f": {one.error}")
        newest = "no whole copy yet" if one.lag_s is None else f"newest copy {_age(one.lag_s)}"
        name = Text.assemble(("replication ", "dim"), (one.name, "bold"))
        grid.add_row(name, way, newest, state)
    return grid


_WAY = {"primary": "to", "replica": "from", "promoting": "taking over from", "none": "not begun, with"}
_REPLICATION_STYLE = {"idle": "green", "copying": "yellow", "waiting": "bold yellow", "failed": "bold red"}


def _snapshots(volume: VolumeReport) -> str:
    names = [f"{one.name} ({_age(time.time() - one.at_s)})" for one in volume.snapshots]
    more = f"{len(names) - _SNAPSHOTS_SHOWN} older, " if len(names) > _SNAPSHOTS_SHOWN else ""
    return more + ", ".join(names[-_SNAPSHOTS_SHOWN:])


_SNAPSHOTS_SHOWN = 4


def _grid(columns: int, right: set[int] | None = None) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    for column in range(columns):
        grid.add_column(
            justify="right" if column in (right or set()) else "left", no_wrap=column < columns - 1
        )
    return grid


def _bar(share: float) -> str:
    full = round(max(0.0, min(1.0, share)) * _BAR)
    return _FULL * full + _EMPTY * (_BAR - full)


def _count(per_second: float) -> str:
    return f"{per_second / 1000:.1f}k" if per_second >= 10_000 else f"{per_second:.0f}"


def _time(service_us: float) -> str:
    return f"{service_us / 1000:.1f} ms" if service_us >= 1000 else f"{service_us:.0f} us"


def _age(seconds: float) -> str:
    """How long ago something was, to one figure that matters."""
    for unit, length_s in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length_s:
            return f"{seconds / length_s:.0f} {unit} old"
    return f"{max(seconds, 0):.0f} s old"
