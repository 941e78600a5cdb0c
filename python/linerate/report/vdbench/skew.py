"""skew.html: for each step its workloads with the shares that were asked for and seen, its volumes, and its hosts.

A table has more than one line and their total, as in vdbench. A host has one load process, so there is no table of
slaves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from linerate.report.vdbench import layout, operations
from linerate.report.vdbench.rows import ReportRow, StepRows
from linerate.results import RunDirectory, StepRecord

_DELTA_PERCENT = 0.1
"""Smaller differences are not shown."""
_EXTRA = (("skew", "requested", 9), ("skew", "observed", 8), ("skew", "delta", 7))


def lines(run: RunDirectory, record: StepRecord, rows: StepRows) -> Iterator[str]:
    """The tables of one step. Its warm-up is left out."""
    if operations.is_of_files(record):
        yield from _of_files(run, record, rows)
        return
    if rows.total is None:
        return
    streams = {name: row for name, row in rows.streams.items() if row is not None}
    if len(streams) > 1:
        yield from ("", f"Shares of the workloads. A delta is shown from {_DELTA_PERCENT:.2f} % on.")
        if record.spec.get("shares", "uncontrolled") == "uncontrolled" and not _is_paced(record):
            yield "Shares are not kept in an Uncontrolled MAX run."
        yield from _shares(record, streams, rows.total)
    volumes = {name: row for name, (_, row) in rows.volumes.items() if row is not None}
    yield from _parts("SD:", volumes, rows.total)
    yield from _parts("Host:", {name: row for name, row in rows.hosts.items() if row is not None}, rows.total)


def _parts(kind: str, parts: Mapping[str, ReportRow], total: ReportRow) -> Iterator[str]:
    """The table of several parts with their total."""
    if len(parts) < 2:
        return
    width = _width(kind, parts)
    yield from ("", *layout.table_header(kind, width))
    yield from (layout.table_line(name, row, width) for name, row in parts.items())
    yield layout.table_line("Total", total, width)


def _shares(record: StepRecord, streams: Mapping[str, ReportRow], total: ReportRow) -> Iterator[str]:
    asked = _asked_percent(record.spec.get("streams", ()))
    width = _width("WD:", streams)
    first, second = layout.table_header("WD:", width)
    yield from (
        "",
        first + "".join(f" {one:>{size}}" for one, _, size in _EXTRA),
        second + "".join(f" {two:>{size}}" for _, two, size in _EXTRA),
    )
    for name, row in streams.items():
        requested, observed = asked.get(name, 0.0), 100 * row.rate / total.rate if total.rate else 0.0
        delta = requested - observed
        shown = f" {delta:>6.2f}%" if abs(delta) >= _DELTA_PERCENT else ""
        yield f"{layout.table_line(name, row, width)} {requested:>8.2f}% {observed:>7.2f}%{shown}"
    yield f"{layout.table_line('Total', total, width)} {100:>8.2f}% {100:>7.2f}%"


def _asked_percent(streams: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The share of each stream; those without one divide the rest, and one with a rate of its own has none."""
    given = {one["name"]: one.get("share_percent") for one in streams if not one.get("rate_iops")}
    open_ = [name for name, share in given.items() if share is None]
    rest = max(100 - sum(share for share in given.values() if share is not None), 0.0)
    return {name: rest / len(open_) if share is None else float(share) for name, share in given.items()}


def _is_paced(record: StepRecord) -> bool:
    return bool(record.spec.get("arrival", {}).get("kind", "closed") != "closed")


def _width(kind: str, names: Mapping[str, object]) -> int:
    return max(len(name) for name in (*names, "Total", kind))


def _of_files(run: RunDirectory, record: StepRecord, rows: StepRows) -> Iterator[str]:
    """The structures of a file system workload."""
    if rows.total is None:
        return
    names = list(rows.volumes)
    width = _width("FSD:", rows.volumes)
    first, second = operations.short_header()
    yield from ("", f"{'':<{width}}{first}", f"{'FSD:':<{width}}{second}")
    for name in [*names, *([None] if len(names) > 1 else [])]:
        *_, average = operations.operation_rows(run, record, rows, name)
        yield f"{name or 'Total':<{width}}{operations.short_line(average)}"
