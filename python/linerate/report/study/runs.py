"""The run reports that the page of a study links: of the baseline and of each case, the first run of each workload.

A run report takes one to two seconds of CPU time, and a study may have hundreds of runs. So its end writes them for a
few seconds only; `linerate report STUDY` writes those that are still missing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

from linerate.errors import HostError, UserError
from linerate.report.page import write_report
from linerate.results import files
from linerate.study import StudyDirectory
from linerate.study.journal import StepDone

AT_THE_END_S = 5.0
"""Seconds that the end of a study spends on run reports."""


def write_run_reports(directory: StudyDirectory, budget_s: float | None = None) -> None:
    """Writes the reports that are missing, until the budget (seconds) is spent; None: all of them.

    A run whose directory is gone, damaged or read-only keeps none.
    """
    ends = None if budget_s is None else time.monotonic() + budget_s
    for step in _first_runs(directory):
        if ends is not None and time.monotonic() >= ends:
            return
        try:
            if not (directory.path / step.directory / files.REPORT).exists():
                write_report(directory.run(step))
        except (UserError, HostError):
            continue


def run_links(directory: StudyDirectory, page: Path) -> Mapping[tuple[str, str], str]:
    """(case, workload) -> the address of its run report, relative to the file of the page; of those that exist."""
    links = {}
    for step in _first_runs(directory):
        report = directory.path / step.directory / files.REPORT
        if report.exists():
            relative = os.path.relpath(report.resolve(), page.parent.resolve())
            links[step.case, step.workload] = quote(Path(relative).as_posix())
    return links


def _first_runs(directory: StudyDirectory) -> Iterator[StepDone]:
    """The first run that counts of each case and workload, the baseline's first."""
    first: dict[tuple[str, str], StepDone] = {}
    for step in sorted(directory.measured.values(), key=lambda step: (step.block, step.position)):
        first.setdefault((step.case, step.workload), step)
    study = directory.study
    order = sorted(study.cases, key=lambda case: case.name != study.baseline.name)
    for case in order:
        for workload in study.workloads:
            if (case.name, workload.name) in first:
                yield first[case.name, workload.name]
