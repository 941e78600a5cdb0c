"""Walks a plan: starts each run in the data plane, pulls its intervals, writes the run directory, tells the view.

    plan -> for each step: pause, commands, start, intervals, summary -> close, stamp, report

Whatever happens, the run directory is closed and says how it ended: complete, failed with the reason, or interrupted.
"""

from __future__ import annotations

import platform
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from linerate import _core
from linerate.analysis import check_run, summarise, summarise_interval
from linerate.cli.console import show_result
from linerate.cli.view import View
from linerate.cli.view.events import (
    Ending,
    Failed,
    Happened,
    IntervalMeasured,
    Notice,
    RunEnded,
    RunStarted,
    StepEnded,
    StepStarted,
    figures,
)
from linerate.errors import LinerateError, PeerError, UserError
from linerate.report import write_report, write_vdbench_output
from linerate.results import (
    Interval,
    RunDirectory,
    RunWriter,
    WorkloadSource,
    collect_environment,
    interval_from_core,
)
from linerate.workload import Notice as WorkloadNotice
from linerate.workload import Plan, PlannedRun, StepResult

INTERRUPTED = 130
PULL_TIMEOUT_S = 0.2
NOTES_SHOWN = 2


@dataclass(frozen=True, slots=True)
class Job:
    """What to run and where to keep it."""

    plan: Plan
    source: WorkloadSource
    directory: Path
    report: bool = True
    vdbench_output: Path | None = None


@dataclass(frozen=True, slots=True)
class _End:
    state: Ending
    reason: str = ""
    error: LinerateError | None = None


def execute(job: Job, view: View) -> int:
    """Runs the whole plan and gives the exit code.

    Raises the LinerateError that made a step fail, after the run directory was closed and stamped.
    """
    # SIGTERM ends a run as Ctrl-C does, with a closed run directory.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    writer = RunWriter.create(
        job.directory,
        name=job.plan.name,
        workload=job.source,
        environment=collect_environment(_peers(job.plan)),
        versions={"linerate": _core.__version__, "python": platform.python_version()},
        command=sys.argv,
    )
    with view, writer:
        view.show(RunStarted(name=job.plan.name, directory=str(job.directory), steps=len(job.plan)))
        if (
            view.machine_readable or job.source.format != "preset"
        ):  # how a preset is written is not the user's to mend
            _tell_notes(job.plan.warnings, view)
        end = _walk(job.plan, writer, view)
        judge = None if end.state == "interrupted" else check_run
        run = writer.close(end.state, end.reason, judge=judge)
    return _conclude(job, view, run, end)


def _conclude(job: Job, view: View, run: RunDirectory, end: _End) -> int:
    """Tells how it went. An interrupted run gets no report: the user wants the prompt, and `report` can make it."""
    report = None
    if end.state != "interrupted" and run.manifest.steps:
        report = write_report(run) if job.report else None
        if job.vdbench_output is not None:
            write_vdbench_output(run, job.vdbench_output)
    code = {"complete": 0, "failed": end.error.exit_code if end.error else 1, "interrupted": INTERRUPTED}[
        end.state
    ]
    validity = run.manifest.validity
    if end.error is not None:
        view.show(Failed.of(end.error))
    view.show(
        RunEnded(
            state=end.state,
            reason=end.reason,
            stamp=validity.stamp if validity else None,
            findings=tuple(finding.reason for finding in validity.findings) if validity else (),
            directory=str(run.path),
            report=str(report) if report else None,
            exit_code=code,
        )
    )
    if not view.machine_readable:
        _tell(run, end, report)
    if end.error is not None:
        raise end.error
    return code


def _tell(run: RunDirectory, end: _End, report: Path | None) -> None:
    if end.state != "interrupted":
        show_result(summarise(run), run.manifest.validity)
    else:
        sys.stdout.write(f"interrupted; what was measured is kept: linerate report {run.path}\n")
    if report is not None:
        sys.stdout.write(f"report: {report}\n")


def _tell_notes(notes: Sequence[WorkloadNotice], view: View) -> None:
    """How a file was read otherwise than its author may expect; people get the first few."""
    shown = notes if view.machine_readable else notes[:NOTES_SHOWN]
    for note in shown:
        view.show(Notice(message=str(note)))
    if len(shown) < len(notes):
        view.show(Notice(message=f"and {len(notes) - len(shown)} more like these; --json shows all"))


def _walk(plan: Plan, writer: RunWriter, view: View) -> _End:
    previous: StepResult | None = None
    number = 0
    try:
        _run_commands(plan.start_commands)
        while (planned := plan.next(previous)) is not None:
            number += 1
            _tell_notes(planned.warnings, view)
            previous = _Step(planned, number, len(plan), writer, view).run()
        _run_commands(plan.end_commands)
    except KeyboardInterrupt:
        return _End("interrupted", "stopped by the user")
    except LinerateError as error:
        return _End("failed", error.message, error)
    return _End("complete")


class _Step:
    """One planned run: from its pause to its summary."""

    def __init__(self, planned: PlannedRun, number: int, of: int, writer: RunWriter, view: View) -> None:
        self._planned = planned
        self._number = number
        self._of = of
        self._writer = writer
        self._view = view
        self._errors = 0

    def run(self) -> StepResult:
        """Raises LinerateError when the step fails and KeyboardInterrupt when the user stops it."""
        planned = self._planned
        if planned.pause_s:
            signal.sigtimedwait([], planned.pause_s)  # a sleep that Ctrl-C ends
        _run_commands(planned.start_commands)
        core = self._start()
        try:
            self._pull(core)
            summary = core.finish()
        except KeyboardInterrupt:
            core.stop()
            self._end(core.finish(), "interrupted", "stopped by the user")
            raise
        if (error := summary.error or self._too_many_errors()) is not None:
            self._end(summary, "failed", error.message)
            raise error
        measured = self._end(summary, "complete", "")
        _run_commands(planned.end_commands)
        return _step_result(measured)

    def _start(self) -> _core.Run:
        try:
            core = _core.Run.start(self._planned.spec.seam_json())
        except LinerateError as error:
            self._begin({})
            self._writer.end_step(state="failed", reason=error.message)
            raise
        facts = core.facts()
        self._begin(facts)
        spec = self._planned.spec
        self._view.show(
            StepStarted(
                step=self._planned.label,
                number=self._number,
                of=self._of,
                banner=self._planned.banner,
                warmup_s=spec.warmup_s,
                elapsed_s=spec.elapsed_s,
                interval_s=spec.interval_s,
                volumes=len(spec.volumes),
                driver=str(facts.get("driver", "")),
            )
        )
        return core

    def _begin(self, facts: Mapping[str, object]) -> None:
        planned = self._planned
        self._writer.begin_step(
            planned.name,
            spec=planned.spec.model_dump(mode="json"),
            facts=facts,
            label=planned.label,
            for_loops=" ".join(f"{keyword}={text}" for keyword, text in planned.loops),
            requested_rate=planned.rate_text,
            histogram_us=planned.histogram_us,
        )

    def _pull(self, core: _core.Run) -> None:
        while True:
            finished = core.finished  # asked first: an interval may come between the pull and the question
            pulled = core.next_interval(PULL_TIMEOUT_S)
            if pulled is not None:
                self._measured(interval_from_core(pulled))
                if self._too_many_errors():
                    core.stop()
            elif finished:
                return

    def _too_many_errors(self) -> PeerError | None:
        limit = self._planned.error_limit
        if limit is None or self._errors < limit:
            return None
        message = f"{self._planned.label}: {self._errors} I/O errors, and the workload ends at {limit}"
        return PeerError(message, "the events say which volume failed and how; data_errors= sets the limit")

    def _measured(self, interval: Interval) -> None:
        self._writer.interval(interval)
        self._errors += sum(row.errors for row in interval.rows)
        label = self._planned.label
        for event in interval.events:
            self._view.show(
                Happened(
                    step=label,
                    at_s=event.at_s,
                    kind=event.kind,
                    volume=event.volume,
                    message=event.message,
                    blame=event.blame,
                )
            )
        self._view.show(
            IntervalMeasured(
                step=label,
                index=interval.index,
                start_s=interval.start_s,
                end_s=interval.end_s,
                warmup=interval.warmup,
                figures=figures(summarise_interval(interval, label)),
            )
        )

    def _end(self, summary: _core.Summary, state: Ending, reason: str) -> Interval:
        measured = interval_from_core(summary.total)
        self._writer.end_step(measured, state=state, reason=reason)
        label = self._planned.label
        shown = figures(summarise_interval(measured, label)) if measured.ios else None
        self._view.show(StepEnded(step=label, state=state, reason=reason, figures=shown))
        return measured


def _step_result(measured: Interval) -> StepResult:
    seconds = measured.seconds or 1.0
    streams: dict[str, float] = {}
    for row in measured.rows:
        streams[row.stream] = streams.get(row.stream, 0.0) + row.ios / seconds
    waited_ns = sum(row.response_sum_ns for row in measured.rows)
    return StepResult(
        iops=measured.ios / seconds,
        response_ms_mean=waited_ns / measured.ios / 1e6 if measured.ios else 0.0,
        per_stream_iops=streams,
    )


def _run_commands(commands: Sequence[str]) -> None:
    """The commands that the workload file hooks to a run (vdbench: startcmd, endcmd), by the shell as vdbench does."""
    for command in commands:
        if code := subprocess.run(command, shell=True, check=False).returncode:
            raise UserError(
                f"the command {command!r} ended with code {code}", "correct it in the workload file"
            )


def _peers(plan: Plan) -> list[str]:
    """Addresses under test, each once, in order."""
    urls = [urlsplit(volume.url) for step in plan.steps() for volume in step.spec.volumes]
    return list(dict.fromkeys(url.netloc for url in urls if url.scheme == "iscsi"))
