"""Runs a plan before the eyes of the user: a view while it runs, then the result, the stamp and where all is kept."""

from __future__ import annotations

import signal
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from linerate.analysis import limit_of, summarise
from linerate.cli import INTERRUPTED
from linerate.cli.console import show_result
from linerate.cli.view import RunView
from linerate.cli.view.events import Failed, RunEnded, RunStarted
from linerate.errors import LinerateError, quote
from linerate.report import (
    write_diskspd_xml,
    write_fio_json,
    write_iometer_csv,
    write_vdbench_output,
)
from linerate.results import RunDirectory, WorkloadSource
from linerate.run import Execution, Loader, RunEvent, RunOutcome, Watcher, carry_out
from linerate.volumes import Consent
from linerate.workload import RunPlan

NOTES_SHOWN = 2


@dataclass(frozen=True, slots=True)
class Job:
    """What to run and where to keep it."""

    plan: RunPlan
    source: WorkloadSource
    directory: Path
    consent: Consent
    """What may be overwritten."""
    loader: Loader
    """Where the load runs: here, on the hosts of a cluster, or in virtual time."""
    report: bool = True
    vdbench_output: Path | None = None
    fio_json: Path | None = None
    iometer_csv: Path | None = None
    diskspd_xml: Path | None = None
    arrays: Watcher | None = None
    """Watches the disks of arrays where that is possible."""


def execute(job: Job, view: RunView) -> int:
    """Runs the whole plan and gives the exit code.

    Raises the LinerateError that made a step fail, after the run directory was closed and stamped.
    """
    # SIGTERM ends a run as Ctrl-C does, with a closed run directory.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    execution = Execution(
        job.plan,
        job.source,
        job.directory,
        job.consent,
        notes_most=None if view.machine_readable else NOTES_SHOWN,
        loader=job.loader,
        arrays=job.arrays,
    )
    with ExitStack() as terminal:

        def show(event: RunEvent) -> None:
            if isinstance(event, RunStarted):  # until now a question may have been asked there
                terminal.enter_context(view)
            try:
                view.show(event)
            except BrokenPipeError:  # the reader of our output has gone (`| head`): it ends as by Ctrl-C
                raise KeyboardInterrupt from None

        outcome = carry_out(execution, show)
    return _conclude(job, view, outcome)


def _conclude(job: Job, view: RunView, outcome: RunOutcome) -> int:
    """Tells how it went. An interrupted run gets no report: the user wants the prompt, and `report` can make it; nor
    does one that has measured nothing."""
    run, error = outcome.run, outcome.error
    report, not_written = None, None
    has_result = bool(run.manifest.steps) and bool(run.intervals["ios"].sum())
    if outcome.state != "interrupted" and has_result:
        try:
            report = _write_page(run) if job.report else None
            _write_other_forms(job, run)
        except LinerateError as refused:  # the result is there all the same, and is told first
            not_written = refused
    code = {"complete": 0, "failed": error.exit_code if error else 1, "interrupted": INTERRUPTED}[
        outcome.state
    ]
    if not_written is not None and code == 0:
        code = not_written.exit_code
    validity = run.manifest.validity
    if error is not None:
        view.show(Failed.of(error))
    view.show(
        RunEnded(
            state=outcome.state,
            reason=outcome.reason,
            stamp=validity.stamp if validity else None,
            findings=validity.findings if validity else (),
            directory=str(run.path),
            report=str(report) if report else None,
            exit_code=code,
        )
    )
    if not view.machine_readable:
        _tell(outcome, report, has_result=has_result)
    if fault := error or not_written:
        raise fault
    return code


def _write_page(run: RunDirectory) -> Path:
    from linerate.report.page import write_report  # its charts take half a second to load

    return write_report(run)


def _write_other_forms(job: Job, run: RunDirectory) -> None:
    """The results in the forms of other tools that were asked for. Raises HostError."""
    if job.vdbench_output is not None:
        write_vdbench_output(run, job.vdbench_output)
    if job.fio_json is not None:
        write_fio_json(run, job.fio_json)
    if job.iometer_csv is not None:
        write_iometer_csv(run, job.iometer_csv)
    if job.diskspd_xml is not None:
        write_diskspd_xml(run, job.diskspd_xml)


def _tell(outcome: RunOutcome, report: Path | None, *, has_result: bool) -> None:
    run = outcome.run
    if outcome.state != "interrupted":
        if has_result:
            summaries = summarise(run)
            show_result(summaries, run.manifest.validity, limit_of(run, summaries))
    else:
        sys.stdout.write(f"interrupted; what was measured is kept: linerate report {quote(run.path)}\n")
    if report is not None:
        sys.stdout.write(f"report: {report}\n")
    if has_result and outcome.state != "interrupted":
        sys.stdout.write(f"next: {_next(run)}\n")


def _next(run: RunDirectory) -> str:
    """The command that comes next."""
    if (validity := run.manifest.validity) is not None and validity.stamp == "void":
        return f"linerate check {quote(run.path)}  (why the result does not count)"
    return f"change one thing, run again, then: linerate compare {quote(run.path)} RUN"
