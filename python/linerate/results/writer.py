"""Writes a run directory as the run proceeds.

Everything is appended and flushed interval by interval: `intervals.spool`, `latency.hlog` and `events.jsonl`
grow, and the manifest is replaced whole when a step starts or ends. Closing turns the spool into Parquet,
stamps the run, records checksums and takes write permission away.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self

from linerate.errors import HostError, InternalError, is_full_disk
from linerate.results import columns, files, hlog
from linerate.results.errors import RunClosedError, RunExistsError
from linerate.results.facts import checked_facts
from linerate.results.imported import GivenStep, ImportedRecord
from linerate.results.manifest import (
    FactValue,
    IometerRecord,
    JobRecord,
    Manifest,
    Planned,
    State,
    StepRecord,
    Validity,
    WorkloadSource,
)
from linerate.results.sample import IntervalSample, LatencySample, TimedEvent
from linerate.results.secrets import scrub, scrub_text

if TYPE_CHECKING:
    from linerate.results.reader import RunDirectory

Judge = Callable[["RunDirectory"], Validity]


def _utc_now() -> datetime:
    return datetime.now(UTC)


def _without_secrets(job: JobRecord) -> JobRecord:
    return job.model_copy(update={"options": {key: scrub_text(text) for key, text in job.options.items()}})


def _disk_error(path: Path, error: OSError) -> OSError:
    """A failed write of a run directory, with its name: a write does not know that of its file."""
    return OSError(error.errno, error.strerror or str(error), str(path))


class RunWriter:
    """A run directory being written.

    ```
    with RunWriter.create(path, name="demo", workload=source, environment=facts) as writer:
        writer.begin_step("rd1", spec=spec_json, facts=run.facts())
        writer.interval(interval)            # for every interval, warm-up included
        writer.end_step(summary)
        run = writer.close("complete", judge=check_run)
    ```
    Every call leaves the directory readable. Leaving the `with` block without `close` closes the run as
    failed, or as interrupted after Ctrl-C. After `close` the writer refuses everything and the files are
    read-only.
    """

    def __init__(self, path: Path, manifest: Manifest, now: Callable[[], datetime]) -> None:
        self.path = path
        self._manifest = manifest
        self._now = now
        self._closed = False
        self._step: StepRecord | None = None
        self._measured: tuple[float, float] | None = None
        self._spool: IO[str] = (path / files.SPOOL).open("w", encoding="utf-8")
        self._events: IO[str] = (path / files.EVENTS).open("w", encoding="utf-8")
        self._latency: IO[str] = (path / files.LATENCY).open("w", encoding="ascii")
        files.lock_for_writing(self._spool)
        self._append(self._latency, hlog.header(manifest.started_at))
        files.write_manifest(path, manifest)

    @classmethod
    def create(
        cls,
        path: Path,
        *,
        name: str,
        workload: WorkloadSource,
        environment: Mapping[str, FactValue] | None = None,
        versions: Mapping[str, str] | None = None,
        command: Sequence[str] = (),
        planned: Planned | None = None,
        imported: ImportedRecord | None = None,
        now: Callable[[], datetime] = _utc_now,
    ) -> Self:
        """Make the directory `path` (parents too) and its first manifest.

        `RunExistsError` when it is not empty.
        """
        try:
            path.mkdir(parents=True, exist_ok=True)
            if any(path.iterdir()):
                raise RunExistsError(
                    f"{path} is not empty", hint="give another directory: a run is written once"
                )
        except FileExistsError as error:
            raise RunExistsError(
                f"{path} is a file", hint="give a directory that does not exist yet"
            ) from error
        except OSError as error:
            raise HostError(
                f"cannot make the run directory {path}: {error.strerror}",
                "give another directory with --output, or change the rights of the folder above",
            ) from error
        started_at = now()
        manifest = Manifest(
            run_id=f"{started_at:%Y%m%dT%H%M%S}-{name}",
            name=name,
            started_at=started_at,
            command=tuple(scrub_text(word) for word in command),
            versions=dict(versions or {}),
            environment=checked_facts(environment or {}),
            workload=workload.model_copy(update={"text": scrub_text(workload.text)}),
            planned=planned,
            imported=imported,
        )
        try:
            return cls(path, manifest, now)
        except OSError as error:
            files.remove_unwritten(path)
            raise _disk_error(path, error) from error

    def begin_step(
        self,
        name: str,
        *,
        spec: Mapping[str, Any],
        facts: Mapping[str, Any],
        label: str = "",
        for_loops: str = "",
        requested_rate: str = "",
        histogram_us: Sequence[int] = (),
        jobs: Sequence[JobRecord] = (),
        iometer: IometerRecord | None = None,
        given: GivenStep | None = None,
        san: Mapping[str, Any] | None = None,
    ) -> str:
        """Start a step and return its key, which is unique in the run.

        `given` has the figures of a step that another tool ran; such a step has no intervals.
        `spec` is the RunSpec as JSON-like values; secrets in it are removed before anything is written. The
        key is the name, with the loop values in parentheses if there are any: the same workload file gives
        the same keys in every run.
        """
        self._check_open()
        if self._step is not None:
            raise InternalError(f"step {self._step.key} is still running")
        self._step = StepRecord(
            key=self._unique_key(f"{name} ({for_loops})" if for_loops else name),
            name=name,
            label=label,
            for_loops=for_loops,
            requested_rate=requested_rate,
            histogram_us=tuple(histogram_us),
            jobs=tuple(_without_secrets(job) for job in jobs),
            iometer=iometer and IometerRecord.model_validate(scrub(iometer.model_dump())),
            given=given and GivenStep.model_validate(scrub(given.model_dump())),
            spec=scrub(spec),
            facts=scrub(facts),
            san=scrub(san or {}),
            started_at=self._now(),
        )
        self._measured = None
        self._manifest = self._manifest.model_copy(update={"steps": (*self._manifest.steps, self._step)})
        files.write_manifest(self.path, self._manifest)
        return self._step.key

    def interval(self, interval: IntervalSample) -> None:
        """Append one interval of the current step: rows, usage, latency distributions and events."""
        step = self._running_step()
        if not interval.warmup:
            first = self._measured[0] if self._measured else interval.start_s
            self._measured = (first, interval.end_s)
        self._write_latencies(step, interval.latencies, interval.start_s, interval.seconds)
        for event in interval.events:
            self.event(event)
        self._append(self._spool, columns.spool_line(step.key, interval) + "\n")

    def event(self, event: TimedEvent) -> None:
        """Append one event.

        Without a step of its own it belongs to the current one; `at_s` counts from the step's start.
        """
        self._check_open()
        step = event.step or (self._step.key if self._step else "")
        record = {**asdict(event), "step": step, "message": scrub_text(event.message)}
        self._append(self._events, json.dumps({**record, "logged_at": self._now().isoformat()}) + "\n")

    def end_step(
        self,
        summary: IntervalSample | None = None,
        *,
        state: State = "complete",
        reason: str = "",
        counters: Mapping[str, float] | None = None,
    ) -> None:
        """End the current step. `counters` were counted around it over its measured time.

        Of the summary only the per-volume distributions are kept, because every other figure follows from the
        intervals.
        """
        step = self._running_step()
        if summary is not None and self._measured is not None:
            start_s, end_s = self._measured
            volumes = tuple(item for item in summary.latencies if item.volume)
            self._write_latencies(step, volumes, start_s, end_s - start_s)
        ended = {
            "ended_at": self._now(),
            "state": state,
            "reason": scrub_text(reason),
            "counters": dict(counters or {}),
        }
        steps = (*self._manifest.steps[:-1], step.model_copy(update=ended))
        self._manifest = self._manifest.model_copy(update={"steps": steps})
        self._step = None
        files.write_manifest(self.path, self._manifest)

    def close(self, state: State, reason: str = "", *, judge: Judge | None = None) -> RunDirectory:
        """Close the run for good and open it for reading.

        `judge` (see `analysis.check_run`) reads the finished run and its verdict becomes the stamp. A step
        that still runs ends in the same state as the run.
        """
        from linerate.results.reader import RunDirectory, read_spool, write_table

        self._end(state, reason)
        tables = read_spool(self.path / files.SPOOL)
        write_table(self.path / files.INTERVALS, tables.intervals)
        write_table(self.path / files.USAGE, tables.usage)
        sealed: tuple[str, ...] = files.DATA_FILES
        for name, table in ((files.PATHS, tables.paths), (files.ARRAYS, tables.arrays)):
            if not table.is_empty():
                write_table(self.path / name, table)
                sealed = (*sealed, name)
        self._record_end(state, reason)
        validity = judge(RunDirectory.open(self.path)) if judge else None
        records = {name: files.record_of(self.path / name) for name in sealed}
        self._manifest = self._manifest.model_copy(update={"validity": validity, "files": records})
        files.write_manifest(self.path, self._manifest)
        (self.path / files.SPOOL).unlink()
        for name in (*sealed, files.MANIFEST):
            files.seal(self.path / name)
        return RunDirectory.open(self.path)

    def leave(self, state: State, reason: str = "") -> None:
        """End the run with its spool as it is, for a host that keeps intervals until another one has them.

        The directory reads like a closed one. It has no tables and no stamp, and is not sealed.
        """
        self._end(state, reason)
        self._record_end(state, reason)

    def _end(self, state: State, reason: str) -> None:
        self._check_open()
        if self._step is not None:
            self.end_step(state=state, reason=reason)
        self._closed = True
        for file in (self._spool, self._events, self._latency):
            file.close()

    def _record_end(self, state: State, reason: str) -> None:
        ended = {"state": state, "reason": scrub_text(reason), "ended_at": self._now()}
        self._manifest = self._manifest.model_copy(update=ended)
        files.write_manifest(self.path, self._manifest)

    def __enter__(self) -> Self:
        """Start writing."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the run if it is still open, as failed or interrupted.

        Raises OSError with the name of the directory for a full disk: it ends a study, and not one run of it.
        """
        if not self._closed:
            try:
                if kind is not None and issubclass(kind, KeyboardInterrupt):
                    self.close("interrupted", "stopped by the user")
                else:
                    self.close("failed", str(error) if error else "the run was left without being closed")
            except OSError as failure:
                raise _disk_error(self.path, failure) from failure
        if isinstance(error, OSError) and is_full_disk(error) and error.filename is None:
            raise _disk_error(self.path, error) from error

    def _running_step(self) -> StepRecord:
        self._check_open()
        if self._step is None:
            raise InternalError("no step is running")
        return self._step

    def _check_open(self) -> None:
        if self._closed:
            raise RunClosedError(f"the run in {self.path} is closed", hint="start a new run")

    def _unique_key(self, key: str) -> str:
        taken = {step.key for step in self._manifest.steps}
        names = (key if number == 1 else f"{key} #{number}" for number in range(1, len(taken) + 2))
        return next(name for name in names if name not in taken)

    def _write_latencies(
        self, step: StepRecord, latencies: Sequence[LatencySample], start_s: float, length_s: float
    ) -> None:
        offset_s = (step.started_at - self._manifest.started_at).total_seconds()
        for latency in latencies:
            if latency.histogram.count:
                self._latency.write(hlog.log_line(step.key, latency, offset_s + start_s, length_s))
        self._latency.flush()

    @staticmethod
    def _append(file: IO[str], text: str) -> None:
        file.write(text)
        file.flush()
