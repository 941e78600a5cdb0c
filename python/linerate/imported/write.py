"""Writes what was read as a run directory, at the time of the imported run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from linerate.imported.recognise import ReadFile
from linerate.imported.record import ToolStep
from linerate.imported.text import one_line
from linerate.results import GivenStep, ImportedRecord, RunDirectory, RunWriter, WorkloadSource
from linerate.results.writer import Judge

_OF_FIGURES = ("mean_ms", "stddev_ms", "max_ms", "errors")
_OF_STEP = ("read", "write", "outstanding", "cpu_busy_percent", "cpu_system_percent")


class _Clock:
    """Says the time that it is set to."""

    def __init__(self, at: datetime) -> None:
        self._at = at

    def set(self, at: datetime | None) -> None:
        self._at = at or self._at

    def __call__(self) -> datetime:
        return self._at


def write_imported(
    read: ReadFile, path: Path, *, now: datetime, judge: Judge, command: Sequence[str] = ()
) -> RunDirectory:
    """Write the run directory `path`, which must be empty or not there.

    `now` is the time of the run where the file tells none. A step that did not end well makes the run a failed one.
    Raises RunExistsError, HostError.
    """
    steps = [_printable(step) for step in read.run.steps]
    clock = _Clock(min((step.started_at for step in steps if step.started_at is not None), default=now))
    writer = RunWriter.create(
        path,
        name=one_line(read.source.path.stem),
        workload=WorkloadSource(
            name=one_line(read.source.path.name), format=read.kind.title, text=_load_text(steps)
        ),
        environment={"host.name": one_line(read.run.host)} if read.run.host else {},
        versions={read.run.tool: one_line(read.run.version)} if read.run.version else {},
        command=command,
        imported=_record(read),
        now=clock,
    )
    with writer:
        for step in steps:
            clock.set(step.started_at)
            writer.begin_step(step.name, spec={}, facts={}, given=step.given)
            clock.set(step.ended_at)
            writer.end_step(state="failed" if step.failed else "complete", reason=step.failed)
        failed = next((step.failed for step in steps if step.failed), "")
        return writer.close("failed" if failed else "complete", failed, judge=judge)


def _printable(step: ToolStep) -> ToolStep:
    """The step with names that files and terminals take."""
    load = {one_line(name): one_line(value) for name, value in step.given.load.items()}
    return replace(
        step,
        name=one_line(step.name),
        given=step.given.model_copy(update={"load": load}),
        failed=one_line(step.failed),
    )


def _record(read: ReadFile) -> ImportedRecord:
    given = [step.given for step in read.run.steps]
    return ImportedRecord(
        tool=read.run.tool,
        version=one_line(read.run.version),
        file=one_line(read.source.path.name),
        sha256=read.source.sha256,
        figures=("ios", "bytes", "iops", "mib_s", *_known(given)),
        percentiles=tuple(_in_all([list(step.total.percentiles_ms) for step in given])),
    )


def _known(given: Sequence[GivenStep]) -> Iterable[str]:
    for name in _OF_FIGURES:
        if all(getattr(step.total, name) is not None for step in given):
            yield name
    for name in _OF_STEP:
        if all(getattr(step, name) is not None for step in given):
            yield name


def _in_all(lists: Sequence[Sequence[str]]) -> list[str]:
    return [name for name in lists[0] if all(name in names for names in lists)] if lists else []


def _load_text(steps: Sequence[ToolStep]) -> str:
    """What the tool was asked for, as a text for reports."""
    lines = []
    for step in steps:
        lines += [f"[{step.name}]", *(f"{name}={value}" for name, value in step.given.load.items()), ""]
    return "\n".join(lines)
