"""What `linerate backup-load` says: progress on standard error, the result as lines or as one JSON object."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from json import dumps
from typing import TYPE_CHECKING

from linerate.backup import PhaseProgress, PhaseResult
from linerate.errors import LinerateError
from linerate.volumes import size_text

if TYPE_CHECKING:
    from linerate.backup import BackupOutcome, BackupRequest
    from linerate.backup.carry_out import Tell
    from linerate.results import TimedEvent

_HEADS = ("phase", "data", "seconds", "Mbit/s", "on the wire", "GB/h", "flushes", "flush s", "grown", "CPU s")
_LEFT = {
    "no image": "its creation has not ended, so it is no image; delete it, or write over it with --overwrite image",
    "partial": "the image is valid, but without the backups that did not begin; --overwrite image makes it anew",
    "not finished": "the image is as after a power cut: its last phase is not complete, and the next program that "
    "opens it for writing replays its log; --overwrite image makes it anew",
}
"""What to know about an image that was left before its end."""


@contextmanager
def progress(*, quiet: bool) -> Iterator[Tell]:
    """What is done now: a bar on a terminal, else one line for each phase that has ended. Events are shown as lines."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    out = Console(stderr=True, highlight=False)
    if quiet or not out.is_terminal:

        def line(told: PhaseProgress | PhaseResult | TimedEvent) -> None:
            if not quiet and (text := _line(told)):
                sys.stderr.write(f"{text}\n")

        yield line
        return
    rate = TextColumn("{task.fields[rate]}")
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), rate)
    with Progress(*columns, console=out, transient=True) as bar:
        task = bar.add_task("", total=None, rate="")

        def show(told: PhaseProgress | PhaseResult | TimedEvent) -> None:
            if isinstance(told, PhaseProgress):
                bar.update(
                    task,
                    description=told.phase,
                    total=told.all_bytes or None,
                    completed=told.done_bytes,
                    rate=f"{_mbit_s(told):,.0f} Mbit/s" if told.seconds else "",
                )
            elif text := _line(told):
                bar.console.print(text, markup=False)

        yield show


def _mbit_s(told: PhaseProgress) -> float:
    return told.done_bytes * 8 / 1e6 / told.seconds


def _line(told: PhaseProgress | PhaseResult | TimedEvent) -> str:
    if isinstance(told, PhaseResult):
        data = size_text(told.data_bytes)
        return f"{told.phase}: {data} in {told.seconds:.1f} s, {told.data_mbit_s:,.0f} Mbit/s"
    if isinstance(told, PhaseProgress):
        return ""
    return f"at {told.at_s:.1f} s: {told.volume or 'all volumes'}: {told.message}"


def result_lines(request: BackupRequest, outcome: BackupOutcome, width: int | None = None) -> Iterator[str]:
    """A table of the phases, then how it ended and where all is kept. `width`: the terminal's columns; None: a pipe."""
    if outcome.phases:
        yield from _table([_HEADS, *(_row(one) for one in outcome.phases)], width)
        yield "GB/h: 10^9 bytes of data per hour; on the wire: TCP payload of both directions in Mbit/s"
    verified = sum(int(one.totals.get("verified_bytes", 0)) for one in outcome.phases)
    if verified:
        yield f"verified: {size_text(verified)} of {request.image.url} hold what the backups wrote"
    elif (
        outcome.state == "complete" and request.full and not any(one.data_bytes for one in _backups(outcome))
    ):
        yield "note: nothing on the disk was in use, so no data was backed up; raise --used or --size"
    if outcome.image in _LEFT:
        yield f"{request.image.url}: {_LEFT[outcome.image]}"
    if outcome.state == "interrupted":
        yield f"interrupted; what was measured is kept: {outcome.run.path}"
    else:
        yield f"run directory: {outcome.run.path}"


def _backups(outcome: BackupOutcome) -> list[PhaseResult]:
    return [one for one in outcome.phases if one.phase != "create"]


def _row(one: PhaseResult) -> tuple[str, ...]:
    totals = one.totals
    return (
        one.phase,
        size_text(one.data_bytes),
        f"{one.seconds:,.2f}",
        f"{one.data_mbit_s:,.0f}",
        f"{one.wire_mbit_s:,.0f}" if one.wire_bytes else "-",
        f"{one.gb_per_hour:,.0f}",
        f"{totals.get('flushes', 0):.0f}",
        f"{totals.get('flush_s', 0):.2f}",
        f"{totals.get('length_changes', 0):.0f}",
        f"{one.load_cpu_s:.2f}",
    )


def _table(rows: Sequence[Sequence[str]], width: int | None) -> Iterator[str]:
    """The first column to the left, the others to the right; the last ones are left out where the line is too short."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    gap = "  "
    while width is not None and len(widths) > 1 and sum(widths) + len(gap) * (len(widths) - 1) > width:
        widths.pop()
    for row in rows:
        cells = [cell.rjust(space) for cell, space in zip(row[1:], widths[1:], strict=False)]
        yield gap.join([row[0].ljust(widths[0]), *cells])


def result_object(request: BackupRequest, outcome: BackupOutcome) -> str:
    """For programs; units in the names."""
    return dumps(
        {
            "schema": "linerate.backup-load/1",
            "state": outcome.state,
            "error": _error(outcome.error),
            "directory": str(outcome.run.path),
            "image": request.image.url,
            "image_state": outcome.image,
            "kind": request.kind,
            "backup": request.data.model_dump(mode="json"),
            "phases": [
                {
                    **asdict(one),
                    "data_mbit_s": one.data_mbit_s,
                    "wire_mbit_s": one.wire_mbit_s,
                    "gb_per_hour": one.gb_per_hour,
                }
                for one in outcome.phases
            ],
        }
    )


def _error(error: LinerateError | None) -> dict[str, str] | None:
    return None if error is None else {"blame": error.blame, "message": error.message, "hint": error.hint}
