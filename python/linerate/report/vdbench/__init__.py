"""Reports in the shape of vdbench 5.04.06, so that parsers written for vdbench read Linerate's results."""

from __future__ import annotations

from pathlib import Path

from linerate.results import RunDirectory


def write_vdbench_output(run: RunDirectory, directory: Path) -> None:
    """Write summary, totals, logfile, parmfile, flatfile and histogram .html, and one file per volume."""
    raise NotImplementedError
