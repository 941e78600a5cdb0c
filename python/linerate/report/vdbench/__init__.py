"""Reports in the shape of vdbench 5.04.06, so that parsers written for vdbench read Linerate's results.

The words, columns and units are vdbench's: rates per second, MB of 2^20 bytes, milliseconds, queue depth as
the sum of service times over elapsed time. Three things are kept better than the original: a label never
touches its timestamp, `avg` lines name exactly the intervals that were measured (nothing but warm-up is
dropped), and every file is written from the stored run, so that it can be made again. Percentiles do not
exist in these files; they are in the HTML report.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from pathlib import Path

from linerate.errors import HostError
from linerate.filename import file_names
from linerate.report.vdbench import flatfile, histogram, layout, operations, skew, status
from linerate.report.vdbench.rows import StepRows, step_rows
from linerate.results import RunDirectory, StepRecord
from linerate.results.files import OTHER_PLACE

_FILES = {"summary", "totals", "logfile", "parmfile", "flatfile", "histogram", "skew", "status"}
_Line = str | layout.ReportLink | layout.RunStart
_Steps = list[tuple[StepRecord, StepRows]]


def write_vdbench_output(run: RunDirectory, directory: Path) -> None:
    """Write summary, totals, logfile, parmfile, flatfile, histogram, skew and status .html, and one file per volume.

    Raises HostError where they cannot be written.
    """
    try:
        _write_files(run, directory)
    except OSError as error:
        raise HostError(f"{error.filename or directory}: {error.strerror}", OTHER_PLACE) from error


def _write_files(run: RunDirectory, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    steps = [(record, step_rows(run, record)) for record in run.manifest.steps]
    names = sorted({name for _, rows in steps for name in rows.volumes})
    links = [(name, f"{file}.html") for name, file in file_names(names, _FILES).items()]
    _write(directory / "summary.html", "summary", _summary(run, steps, links))
    _write(directory / "totals.html", "totals", _totals(run, steps))
    _write(directory / "logfile.html", "logfile", _log(run))
    _write(directory / "parmfile.html", "parmfile", [run.manifest.workload.text])
    of_files = any(operations.is_of_files(record) for record, _ in steps)
    flat = operations.flat_lines if of_files else flatfile.lines
    _write(directory / "flatfile.html", "flatfile", flat(run, steps))
    _write(directory / "histogram.html", "histogram", histogram.lines(run))
    _write(directory / "skew.html", "skew", _skew(run, steps))
    _write(directory / "status.html", "status", status.lines(run))
    for name, file in links:
        _write(
            directory / file, f"report for {'fsd' if of_files else 'sd'}={name}", _volume(run, steps, name)
        )


def _write(path: Path, title: str, lines: Iterable[_Line]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(f"<title>Linerate {html.escape(title)}</title><pre>\n")
        for line in lines:
            file.write((_escaped(line) if isinstance(line, str) else line.markup) + "\n")
        file.write("</pre>\n")


def _escaped(line: str) -> str:
    """Text for a browser.

    A lone ` < ` stays, because parsers of histograms look for it and it opens no tag.
    """
    return html.escape(line, quote=False).replace(" &lt; ", " < ")


def _summary(run: RunDirectory, steps: _Steps, links: list[tuple[str, str]]) -> Iterable[_Line]:
    for name in ("totals", "status", "logfile", "parmfile", "flatfile", "skew", "histogram"):
        yield layout.ReportLink(f"Link to {name}: ", f"{name}.html", name)
    for name, file in links:
        yield layout.ReportLink(f"Link to {_kind(steps)} report: ", file, name)
    yield from _index(steps)
    for number, (record, rows) in enumerate(steps, start=1):
        yield from _start(number, record)
        if operations.is_of_files(record):
            yield from _of_files(record, operations.operation_rows(run, record, rows))
            continue
        yield from layout.header(record.started_at, cpu=True)
        yield from (layout.line(row, cpu=True) for row in rows.intervals)
        if rows.total:
            yield layout.line(rows.total, cpu=True)


def _index(steps: _Steps) -> Iterable[_Line]:
    yield ""
    yield from layout.run_index([record for record, _ in steps])


def _start(number: int, record: StepRecord) -> Iterable[_Line]:
    yield ""
    yield layout.RunStart(layout.banner(record), number)
    yield ""


def _kind(steps: _Steps) -> str:
    return "FSD" if any(operations.is_of_files(record) for record, _ in steps) else "SD"


def _of_files(record: StepRecord, lines: Iterable[operations.OperationRow]) -> Iterable[str]:
    """The lines of a step of a file system workload."""
    yield from operations.summary_lines(record.started_at, lines)


def _totals(run: RunDirectory, steps: _Steps) -> Iterable[_Line]:
    yield from _index(steps)
    for number, (record, rows) in enumerate(steps, start=1):
        yield from _start(number, record)
        if operations.is_of_files(record):
            yield from _of_files(record, list(operations.operation_rows(run, record, rows))[-1:])
            continue
        yield from layout.header(record.started_at, cpu=True)
        if rows.total:
            yield layout.line(rows.total, cpu=True)


def _skew(run: RunDirectory, steps: _Steps) -> Iterable[_Line]:
    yield from _index(steps)
    for number, (record, rows) in enumerate(steps, start=1):
        yield from _start(number, record)
        yield from skew.lines(run, record, rows)


def _volume(run: RunDirectory, steps: _Steps, name: str) -> Iterable[_Line]:
    yield from _index([step for step in steps if name in step[1].volumes])
    number = 0
    for record, rows in steps:
        if name not in rows.volumes:
            continue
        number += 1
        yield from _start(number, record)
        if operations.is_of_files(record):
            yield from _of_files(record, operations.operation_rows(run, record, rows, name))
            continue
        intervals, total = rows.volumes[name]
        yield from layout.header(record.started_at, cpu=False)
        yield from (layout.line(row, cpu=False) for row in intervals)
        if total:
            yield layout.line(total, cpu=False)


def _log(run: RunDirectory) -> Iterable[str]:
    manifest = run.manifest
    yield f"{layout.clock(manifest.started_at)} Linerate {manifest.versions.get('linerate', '')} run {manifest.run_id}"
    for record in manifest.steps:
        yield f"{layout.clock(record.started_at)} {layout.banner(record).partition(' ')[2]}"
        for event in run.events:
            if event.step == record.key:
                where = f" sd={event.volume}" if event.volume else ""
                at = layout.clock(layout.later(record.started_at, event.at_s))
                yield f"{at} {event.kind}{where}: {event.message}"
        if record.ended_at:
            yield f"{layout.clock(record.ended_at)} RD={record.name} {record.state} {record.reason}".rstrip()
    if manifest.ended_at:
        yield f"{layout.clock(manifest.ended_at)} run {run.state} {manifest.reason}".rstrip()
