"""Disks in a picture of an array: what each of them is and does, in as much room as there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from linerate.array.figures.rates import Rates, rates
from linerate.cli.array.layout import Disks, PictureLayout, grid
from linerate.cli.discover import size_text

if TYPE_CHECKING:
    from linerate.array.control.report import DiskReport

STYLE = {
    "online": "green",
    "spare": "cyan",
    "rebuilding": "yellow",
    "failed": "bold red",
    "missing": "bold red",
    "out": "bold yellow",
}
_HEADS = ("disk", "", "size", "reads/s", "writes/s", "MB/s", "queue", "service", "busy", "")
_LEAST_WIDTH = (0, 0, 84, 48, 48, 0, 76, 60, 0, 90)
"""Columns of a terminal from which on a column of the table is shown."""
_CELL = 20


def disk_rows(
    before: tuple[DiskReport, ...], disks: tuple[DiskReport, ...], seconds: float, layout: PictureLayout
) -> Table:
    """The disks of a RAID set, and all of them together."""
    if layout.disks is Disks.CELLS:
        return _cells_of(before, disks, seconds, layout)
    shown = [number for number, least in enumerate(_LEAST_WIDTH) if layout.width >= least]
    table = grid(len(shown) + 1, right={shown.index(number) + 1 for number in shown if 2 <= number <= 8})

    def add(*cells: str | Text, style: str = "") -> None:
        table.add_row("", *[cells[number] for number in shown], style=style)

    add(*[Text(name, style="dim") for name in _HEADS])
    for disk in disks:
        if layout.disks is Disks.ODD and _is_plain(disk):
            continue
        found = _figures(rates(before, (disk,), seconds))
        size = size_text(disk.size_bytes) if disk.size_bytes else "-"
        add(disk.name, Text(disk.state, style=STYLE[disk.state]), size, *found, _note(disk))
    working = tuple(disk for disk in disks if disk.state in ("online", "rebuilding"))
    if len(working) > 1 and (total := rates(before, working, seconds)) is not None:
        add("all", "", "", *_figures(total), "", style="bold")
    return table


def row_of(disks: tuple[DiskReport, ...]) -> Text:
    """The members as boxes, then the spares."""
    row = Text()
    spares = [disk for disk in disks if disk.state == "spare"]
    for disk in [disk for disk in disks if disk.state != "spare"]:
        said = "" if disk.state == "online" else f" {disk.state}"
        row.append(f"[{disk.name}{said}]", style=STYLE[disk.state])
    if spares:
        row.append("  spare ")
        for disk in spares:
            row.append(f"[{disk.name}]", style=STYLE["spare"])
    return row


def _cells_of(
    before: tuple[DiskReport, ...], disks: tuple[DiskReport, ...], seconds: float, layout: PictureLayout
) -> Table:
    """Several disks in a row, each with its throughput and its load."""
    columns = max(1, (layout.width - 2) // (_CELL + 2))
    cells = []
    for disk in disks:
        found = rates(before, (disk,), seconds)
        figures = "-" if found is None else f"{found.mib_s:.1f} MB/s {found.busy:.0%}"
        said = figures if _is_plain(disk) else f"{disk.state} {figures if disk.state != 'missing' else ''}"
        cells.append(Text(f"{disk.name} {said}".rstrip(), style="" if _is_plain(disk) else STYLE[disk.state]))
    table = grid(columns + 1)
    for first in range(0, len(cells), columns):
        row = cells[first : first + columns]
        table.add_row("", *row, *[""] * (columns - len(row)))
    return table


def _is_plain(disk: DiskReport) -> bool:
    return disk.state in ("online", "spare") and not disk.errors and not disk.lacks_space


def _note(disk: DiskReport) -> Text:
    parts = [Text(disk.model)] if disk.model else []
    if disk.lacks_space:
        parts.append(Text("no space left", style="bold yellow"))
    if disk.errors:
        parts.append(Text(f"{disk.errors} errors", style="bold red"))
    return Text("  ").join(parts)


def _figures(found: Rates | None) -> tuple[str, ...]:
    if found is None:
        return ("-",) * 6
    service = "-" if found.service_us is None else _time(found.service_us)
    return (
        count(found.reads),
        count(found.writes),
        f"{found.mib_s:.1f}",
        f"{found.outstanding:.1f}",
        service,
        f"{found.busy:.0%}",
    )


def count(per_second: float) -> str:
    """How many per second."""
    return f"{per_second / 1000:.1f}k" if per_second >= 10_000 else f"{per_second:.0f}"


def _time(service_us: float) -> str:
    return f"{service_us / 1000:.1f} ms" if service_us >= 1000 else f"{service_us:.0f} us"
