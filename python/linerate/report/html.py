"""The HTML report: one self-contained file that opens offline."""

from __future__ import annotations

from pathlib import Path

from linerate.results import RunDirectory


def write_report(run: RunDirectory, path: Path | None = None) -> Path:
    """Write the report of a run and return its path.

    Without `path` it goes to `report.html` in the run directory; `RunClosedError` when that exists already,
    for then it belongs to the closed run: give another path.
    """
    raise NotImplementedError
