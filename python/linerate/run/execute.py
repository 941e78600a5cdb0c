"""Walks a plan: starts each run in the data plane, pulls its intervals, writes the run directory, reports events.

    plan -> for each step: pause, commands, start, intervals, summary -> close, stamp

The run directory is always closed and says how the run ended: complete, failed with the reason, or interrupted.
"""

from __future__ import annotations

import contextlib
import platform
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from linerate import _core
from linerate.analysis import check_run, summarise_interval
from linerate.analysis.summary import rate_asked
from linerate.errors import LinerateError, PeerError, UserError
from linerate.interrupt import heard
from linerate.results import (
    IntervalSample,
    IometerRecord,
    IometerWorkerRecord,
    JobRecord,
    Planned,
    RunDirectory,
    RunWriter,
    TimedEvent,
    WorkloadSource,
    collect_environment,
)
from linerate.run.arrays import ArrayWatch, Watcher
from linerate.run.counted import Counted, Counters
from linerate.run.events import (
    Ending,
    Happened,
    IntervalMeasured,
    RunEvent,
    RunNotice,
    RunStarted,
    StepEnded,
    StepStarted,
    figures,
    path_figures,
    volumes_found,
)
from linerate.run.load import Here, Load, LoadEnd, Loader
from linerate.volumes import Clearance, Consent, RefusedError, clear
from linerate.workload import FileNotice, PlannedRun, RunPlan, RunSpec, StepResult
from linerate.workload.files import FilesLoadSpec
from linerate.workload.plan import IometerTest
from linerate.workload.url import portal_of

PULL_TIMEOUT_S = 0.2


class Beside(Protocol):
    """What happens around a load at instants of its clock, and reports its own events: pulled cables."""

    def begin(self, started_monotonic_ns: int) -> None:
        """The load's clock began at this instant of the monotonic clock."""

    def events(self) -> Iterable[TimedEvent]:
        """What happened since it was asked last; does not wait. Raises LinerateError for what could not be done."""

    def end(self) -> None:
        """Ends it, with nothing left changed. I/Os may still be in flight."""


@dataclass(frozen=True, slots=True)
class Execution:
    """What to run and where to keep it."""

    plan: RunPlan
    source: WorkloadSource
    directory: Path
    consent: Consent
    """What the plan may overwrite."""
    notes_most: int | None = None
    """The largest number of notes about the file, and about each step; None: all."""
    counters: Counters | None = None
    """Read where the measured time of every step begins and ends; the difference goes into the step's record."""
    san: Mapping[str, Any] = field(default_factory=dict)
    """The network and the settings under which the steps run, for their records."""
    loader: Loader = field(default_factory=Here)
    """Looks at volumes and starts the load of a step: in this process, or on the hosts of a cluster."""
    beside: Beside | None = None
    """What happens around each step, its warm-up included."""
    arrays: Watcher | None = None
    """Watches the disks behind the volumes, interval by interval."""


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How it ended. `error` is what made a step fail, if one did."""

    run: RunDirectory
    state: Ending
    reason: str = ""
    error: LinerateError | None = None


@dataclass(frozen=True, slots=True)
class _End:
    state: Ending
    reason: str = ""
    error: LinerateError | None = None


def carry_out(execution: Execution, tell: Callable[[RunEvent], None]) -> RunOutcome:
    """Runs the whole plan. The run directory is closed and, unless the user interrupted, stamped.

    Before anything else every volume that the plan writes to is looked at. Raises RefusedError if the consent does not
    cover what was found, and KeyboardInterrupt if the user stops it there; there is no run directory then.
    """
    plan = execution.plan
    clearance = _look(execution)
    writer = RunWriter.create(
        execution.directory,
        name=plan.name,
        workload=execution.source,
        environment=collect_environment(_peers(plan)),
        versions={"linerate": _core.__version__, "python": platform.python_version()},
        command=sys.argv,
        planned=_planned(plan),
    )
    with writer:
        tell(
            RunStarted(
                name=plan.name,
                directory=str(execution.directory),
                steps=len(plan),
                planned_s=plan.seconds,
            )
        )
        _tell_notes(plan.warnings, execution.notes_most, tell)
        if isinstance(clearance, Clearance):
            if clearance.looks:
                tell(volumes_found(clearance))
            end = _walk(execution, clearance, writer, tell)
        else:
            end = _End("failed", clearance.message, clearance)
        judge = None if end.state == "interrupted" else check_run
        run = writer.close(end.state, end.reason, judge=judge)
    return RunOutcome(run, end.state, end.reason, end.error)


def _planned(plan: RunPlan) -> Planned:
    """For how long the run will load; a curve may leave steps out."""
    steps = tuple(plan.steps())
    seconds = sum(step.pause_s + step.spec.warmup_s + step.spec.elapsed_s for step in steps)
    return Planned(steps=len(steps), seconds=seconds)


def _look(execution: Execution) -> Clearance | LinerateError:
    """Gives the plan's volumes free, or what kept it from looking at them: a failed run, whose directory says so."""
    try:
        with heard():
            specs = [step.spec for step in execution.plan.steps()]
            return clear(specs, execution.loader.look, execution.consent, execution.loader.hosts_of)
    except RefusedError:
        raise
    except LinerateError as error:
        return error


def _tell_notes(notes: Sequence[FileNotice], most: int | None, tell: Callable[[RunEvent], None]) -> None:
    """How a file was read otherwise than its author may expect."""
    shown = notes[:most]
    for note in shown:
        tell(RunNotice(message=str(note)))
    if len(shown) < len(notes):
        tell(RunNotice(message=f"and {len(notes) - len(shown)} more like these; --json shows all"))


def _walk(
    execution: Execution, clearance: Clearance, writer: RunWriter, tell: Callable[[RunEvent], None]
) -> _End:
    plan = execution.plan
    previous: StepResult | None = None
    number = 0
    try:
        with heard():
            _run_commands(plan.start_commands)
            while (planned := plan.next(previous)) is not None:
                number += 1
                _tell_notes(planned.warnings, execution.notes_most, tell)
                previous = _Step(planned, number, execution, clearance, writer, tell).run()
            if plan.stopped:
                tell(RunNotice(message=plan.stopped))
            _run_commands(plan.end_commands)
    except KeyboardInterrupt:
        return _End("interrupted", "stopped by the user")
    except LinerateError as error:
        return _End("failed", error.message, error)
    return _End("complete")


class _Step:
    """One planned run: from its pause to its summary."""

    def __init__(
        self,
        planned: PlannedRun,
        number: int,
        execution: Execution,
        clearance: Clearance,
        writer: RunWriter,
        tell: Callable[[RunEvent], None],
    ) -> None:
        self._planned = planned
        self._number = number
        self._execution = execution
        self._clearance = clearance
        self._writer = writer
        self._tell = tell
        self._ios = 0
        self._errors = 0
        self._arrays: ArrayWatch | None = None

    def run(self) -> StepResult:
        """Raises LinerateError when the step fails and KeyboardInterrupt when the user stops it."""
        planned = self._planned
        if planned.pause_s:
            signal.sigtimedwait([], planned.pause_s)  # a sleep that Ctrl-C ends
        _run_commands(planned.start_commands)
        load, counted = self._start()
        try:
            self._arrays = self._execution.arrays(load) if self._execution.arrays else None
            with heard(), self._beside(load):
                self._pull(load, counted)
                counters = counted.difference()
            ended = load.finish()
        except KeyboardInterrupt:
            load.stop()
            self._end(load.finish(), "interrupted", "stopped by the user", {})
            raise
        except BaseException:
            # A counter that cannot be read, a full disk: the load must not outlive its step.
            load.stop()
            with contextlib.suppress(Exception):  # what went wrong first is what counts
                load.finish()
            raise
        for event in ended.events:
            self._happened(event)
            self._writer.event(event)
        if (error := ended.error or self._too_many_errors() or self._no_io(ended.total)) is not None:
            self._end(ended, "failed", error.message, counters)
            raise error
        measured = self._end(ended, "complete", "", counters)
        _run_commands(planned.end_commands)
        return _step_result(measured)

    def _start(self) -> tuple[Load, Counted]:
        try:
            # Before the start: without a warm-up the load is measured from then on.
            counted = Counted(self._execution.counters, warms_up=self._planned.spec.warmup_s > 0)
            load = self._execution.loader.start(self._clearance.of(self._planned.spec))
        except LinerateError as error:
            self._begin(self._planned.spec, {})
            self._writer.end_step(state="failed", reason=error.message)
            raise
        facts, spec = load.facts(), load.spec
        self._begin(spec, facts)
        self._tell(
            StepStarted(
                step=self._planned.label,
                number=self._number,
                of=len(self._execution.plan),
                banner=self._planned.banner,
                warmup_s=spec.warmup_s,
                elapsed_s=spec.elapsed_s,
                interval_s=spec.interval_s,
                volumes=len(spec.volumes),
                driver=str(facts.get("driver", "")),
                paced=rate_asked(spec.model_dump(mode="json")) is not None,
            )
        )
        return load, counted

    def _begin(self, spec: RunSpec, facts: Mapping[str, Any]) -> None:
        planned = self._planned
        self._writer.begin_step(
            planned.name,
            spec=spec.model_dump(mode="json"),
            facts=facts,
            label=planned.label,
            for_loops=" ".join(f"{keyword}={text}" for keyword, text in planned.loops),
            requested_rate=planned.rate_text,
            histogram_us=planned.histogram_us,
            jobs=[
                JobRecord(name=job.name, options=dict(job.options), streams=job.streams)
                for job in planned.jobs
            ],
            iometer=_iometer_record(planned.iometer),
            san=self._execution.san,
        )

    @contextmanager
    def _beside(self, load: Load) -> Iterator[None]:
        """What happens around the load ends before the load does: its last I/Os may wait for a path to come back."""
        beside = self._execution.beside
        if beside is None:
            yield
            return
        beside.begin(int(load.facts()["started_monotonic_ns"]))
        try:
            yield
        finally:
            beside.end()
            self._tell_beside()

    def _tell_beside(self) -> None:
        if self._execution.beside is not None:
            for event in self._execution.beside.events():
                self._happened(event)
                self._writer.event(event)

    def _pull(self, load: Load, counted: Counted) -> None:
        spec = self._planned.spec
        while True:
            finished = load.finished  # asked first: an interval may come between the pull and the question
            interval = load.next_interval(PULL_TIMEOUT_S)
            self._tell_beside()
            if interval is not None:
                counted.after_warmup(interval, spec.warmup_s, spec.interval_s)
                self._measured(interval)
                if self._too_many_errors():
                    load.stop()
            elif finished:
                return

    def _too_many_errors(self) -> PeerError | None:
        limit = self._planned.error_limit
        if limit is None or self._errors < limit:
            return None
        message = f"{self._planned.label}: {self._errors} I/O errors, and the workload ends at {limit}"
        return PeerError(message, "the events say which volume failed and how; data_errors= sets the limit")

    def _no_io(self, total: IntervalSample) -> PeerError | None:
        """A step in which nothing was done has failed, however quietly; the warm-up counts here too.

        A format may find that all is as it should be.
        """
        spec = self._planned.spec
        is_format = isinstance(spec, FilesLoadSpec) and spec.files.format is not None
        if self._ios or total.ios or (is_format and not self._errors):
            return None
        failed = f", and {self._errors} failed" if self._errors else ""
        return PeerError(
            f"{self._planned.label}: no I/O was completed in {spec.warmup_s + spec.elapsed_s:g} s{failed}",
            "see the events and the array's log; a rate or a volume that is so slow needs a longer --elapsed",
        )

    def _measured(self, interval: IntervalSample) -> None:
        if self._arrays is not None:
            interval = replace(interval, arrays=self._arrays.rows())
        self._writer.interval(interval)
        self._ios += interval.ios
        self._errors += sum(row.errors for row in interval.rows)
        label = self._planned.label
        for event in interval.events:
            self._happened(event)
        self._tell(
            IntervalMeasured(
                step=label,
                index=interval.index,
                start_s=interval.start_s,
                end_s=interval.end_s,
                warmup=interval.warmup,
                figures=figures(summarise_interval(interval, label)),
                paths=path_figures(interval),
            )
        )

    def _happened(self, event: TimedEvent) -> None:
        self._tell(
            Happened(
                step=self._planned.label,
                at_s=event.at_s,
                kind=event.kind,
                volume=event.volume,
                path=event.path,
                message=event.message,
                blame=event.blame,
            )
        )

    def _end(
        self, ended: LoadEnd, state: Ending, reason: str, counters: Mapping[str, float]
    ) -> IntervalSample:
        measured = ended.total
        self._writer.end_step(measured, state=state, reason=reason, counters=counters)
        label = self._planned.label
        shown = figures(summarise_interval(measured, label)) if measured.ios else None
        paths = path_figures(measured) if measured.ios else ()
        self._tell(StepEnded(step=label, state=state, reason=reason, figures=shown, paths=paths))
        return measured


def _iometer_record(test: IometerTest | None) -> IometerRecord | None:
    if test is None:
        return None
    workers = tuple(
        IometerWorkerRecord(
            stream=worker.stream,
            specification=worker.specification,
            lines=worker.lines,
            targets=dict(worker.targets),
        )
        for worker in test.workers
    )
    return IometerRecord(
        test_type=test.test_type, description=test.description, manager=test.manager, workers=workers
    )


def _step_result(measured: IntervalSample) -> StepResult:
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


def _peers(plan: RunPlan) -> list[str]:
    """Addresses under test, each once, in order."""
    portals = (portal_of(volume.url) for step in plan.steps() for volume in step.spec.volumes)
    return list(dict.fromkeys(portal for portal in portals if portal is not None))
