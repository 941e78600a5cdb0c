"""Renders the page of a search, and writes it."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup

from linerate.report.panels.scale import SearchShown, scale_panel
from linerate.report.panels.template import style, template
from linerate.results import files
from linerate.scale import ScaleRecord
from linerate.scale.reached import sought_text

_PACKAGE = "linerate.report.scale"


def write_scale_report(directory: Path, path: Path | None = None) -> Path:
    """Write the report of a search, by default into its directory, where it takes the place of an earlier one.

    Raises UserError for a directory that is no search, and HostError where it cannot be written.
    """
    record = ScaleRecord.open(directory)
    target = path or directory / files.REPORT
    files.write_result(target, render_scale(record).encode())
    return target


def render_scale(record: ScaleRecord) -> str:
    """The page as text."""
    procedure = record.procedure
    panel = scale_panel([SearchShown(record.name, record.axis, record.threshold, procedure)])
    return template(_PACKAGE, "page.html.j2").render(
        record=record,
        panel=panel,
        sought=sought_text(record.axis),
        ended=procedure.next() is None,
        style=Markup(style()),
    )
