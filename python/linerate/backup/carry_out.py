"""Carries out the phases of a backup, each a step of one run directory.

    request -> look at what is written -> for each phase: start, intervals, summary -> close

The run directory is always closed and says how the run ended: complete, failed with the reason, or interrupted.
"""

from __future__ import annotations

import contextlib
import os
import platform
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from linerate import _core
from linerate.analysis import check_run
from linerate.backup.rates import PhaseResult, data_bytes_of
from linerate.backup.request import BackupRequest
from linerate.backup.spec import BackupJobSpec
from linerate.errors import InternalError, LinerateError, UserError
from linerate.interrupt import heard
from linerate.results import (
    IntervalSample,
    RunDirectory,
    RunWriter,
    TimedEvent,
    WorkloadSource,
    collect_environment,
    interval_from_core,
)
from linerate.run import Counted, Counters
from linerate.volumes import Clearance, Consent, Look, LookAt, VolumeLock, VolumeState, clear, look_here
from linerate.workload.url import path_of, portal_of

PULL_TIMEOUT_S = 0.2


@dataclass(frozen=True, slots=True)
class PhaseProgress:
    """How far a phase is."""

    phase: str
    seconds: float
    done_bytes: int
    all_bytes: int
    """0: the phase moves no data."""


ImageState = Literal["complete", "untouched", "no image", "not finished", "partial"]
"""What is on the image's volume: all backups; what was there before; less than a new image; an image whose last phase
has not ended, as after a power cut; a valid image without the backups that did not begin."""
Tell = Callable[[PhaseProgress | PhaseResult | TimedEvent], None]


@dataclass(frozen=True, slots=True)
class BackupOutcome:
    """How it ended. `error` is what made a phase fail, if one did."""

    run: RunDirectory
    phases: tuple[PhaseResult, ...]
    state: Literal["complete", "failed", "interrupted"]
    error: LinerateError | None = None
    image: ImageState = "complete"


def carry_out(
    request: BackupRequest,
    consent: Consent,
    directory: Path,
    tell: Tell,
    *,
    look: LookAt = look_here,
    san: Mapping[str, object] | None = None,
    counters: Counters | None = None,
) -> BackupOutcome:
    """Carries out all phases. `look` finds out what volumes hold. `san` is what the run directory tells of the network
    under test. `counters` are read where each phase begins and ends. The run is stamped unless the user interrupted it.

    Before anything else the volumes are looked at. Raises RefusedError if the consent does not cover what was found
    on those that are written, UserError for a source or target that is too small, what looking raises, and
    KeyboardInterrupt; there is no run directory then.
    """
    spec = request.run_spec()
    with heard():
        clearance = clear([spec], look, consent)
        _refuse_unfit(request, (*clearance.looks, *look(spec, ["source"] if request.source else [])))
    phases = tuple(request.phases())
    peers = [portal for volume in request.volumes() if (portal := portal_of(volume.url)) is not None]
    writer = RunWriter.create(
        directory,
        name="backup-load",
        workload=WorkloadSource(name="backup-load"),
        environment=collect_environment(list(dict.fromkeys(peers))),
        versions={"linerate": _core.__version__, "python": platform.python_version()},
        command=sys.argv,
    )
    hold = VolumeLock(clearance.of(spec).free)
    results: list[PhaseResult] = []
    image: ImageState = "untouched"
    state: Literal["complete", "failed", "interrupted"] = "complete"
    error: LinerateError | None = None
    reason = ""
    try:
        with writer:
            try:
                with heard():
                    for name, job in phases:
                        permitted = job.model_copy(update={"overwrite": _may_overwrite(request, clearance)})
                        phase = _Phase(name, permitted, request, writer, tell, san, counters)
                        phase.open()
                        if job.phase != "restore":
                            image = "not finished" if results else "no image"
                        results.append(phase.run())
                        image = "complete" if len(results) >= request.writing_phases else "partial"
                        tell(results[-1])
            except KeyboardInterrupt:
                state, reason = "interrupted", "stopped by the user"
            except LinerateError as caught:
                state, reason, error = "failed", caught.message, caught
            run = writer.close(state, reason, judge=None if state == "interrupted" else check_run)
    finally:
        hold.release()
    return BackupOutcome(run, tuple(results), state, error, image)


def _refuse_unfit(request: BackupRequest, looks: Iterable[Look]) -> None:
    """Raises UserError for a volume that a phase could not use: the phases before it may take hours."""
    volumes = {volume.name: volume for volume in request.volumes()}
    least = request.data.image_bytes
    for look in looks:
        volume = volumes[look.volume]
        # What the image needs is known when it is created.
        is_fixed = volume is not request.image and not volume.create
        if is_fixed and look.size_bytes is not None and look.size_bytes < least:
            raise UserError(
                f"volume {volume.name}: {look.where} has {look.size_bytes} bytes, fewer than the {least} of the disk",
                "use a smaller --size, or a larger volume",
            )
        path = path_of(volume.url)
        if look.state is VolumeState.NEW and path is not None and not os.path.isdir(os.path.dirname(path)):
            raise UserError(
                f"volume {volume.name}: {path} has no folder yet",
                "correct the path, or make the folder first",
            )


def _may_overwrite(request: BackupRequest, clearance: Clearance) -> bool:
    """What was found on the image's volume was given free. A file that was not there is still not overwritten."""
    return any(
        look.volume == request.image.name and look.state is not VolumeState.NEW for look in clearance.looks
    )


class _Phase:
    """One phase: from the opening of its volumes to its result."""

    def __init__(
        self,
        name: str,
        job: BackupJobSpec,
        request: BackupRequest,
        writer: RunWriter,
        tell: Tell,
        san: Mapping[str, object] | None,
        counters: Counters | None,
    ) -> None:
        self._san = san
        self._counters = counters
        self._name = name
        self._job = job
        self._request = request
        self._writer = writer
        self._tell = tell
        self._done_bytes = 0
        self._opened: tuple[_core.BackupJob, Counted] | None = None

    def open(self) -> None:
        """Opens the volumes, and starts. Raises LinerateError; then nothing was written."""
        try:
            # Before the start: the load works from then on.
            counted = Counted(self._counters, warms_up=False)
            self._opened = _core.BackupJob.start(self._job.seam_json()), counted
        except LinerateError as error:
            self._begin({})
            self._writer.end_step(state="failed", reason=error.message)
            raise

    def run(self) -> PhaseResult:
        """Until the end. Raises LinerateError if the phase fails, and KeyboardInterrupt if the user stops it."""
        if self._opened is None:
            raise InternalError(f"the phase {self._name} was not opened")
        core, counted = self._opened
        self._begin(core.facts())
        self._tell(PhaseProgress(self._name, 0.0, 0, core.data_bytes))
        try:
            with heard():
                self._pull(core)
                counters = counted.difference()
            ended = core.finish()
        except KeyboardInterrupt:
            core.stop()
            self._writer.end_step(
                interval_from_core(core.finish().total), state="interrupted", reason="stopped by the user"
            )
            raise
        except BaseException:
            # A full disk below the run directory: the phase must not outlive its step.
            core.stop()
            with contextlib.suppress(Exception):  # what went wrong first is what counts
                core.finish()
            raise
        total = interval_from_core(ended.total)
        if ended.error is not None:
            self._writer.end_step(total, state="failed", reason=ended.error.message, counters=counters)
            raise ended.error
        self._writer.end_step(total, counters=counters)
        return PhaseResult.of(self._name, total, core.totals())

    def _begin(self, facts: dict[str, object]) -> None:
        spec = self._request.run_spec(self._job.phase).model_dump(mode="json")
        del spec["elapsed_s"]  # a phase takes as long as it takes
        job = self._job.model_dump(mode="json", exclude={"image", "source", "target"})
        self._writer.begin_step(self._name, spec=spec, facts={**facts, "backup": job}, san=self._san)

    def _pull(self, core: _core.BackupJob) -> None:
        while True:
            finished = core.finished  # asked first: an interval may come between the pull and the question
            pulled = core.next_interval(PULL_TIMEOUT_S)
            if pulled is not None:
                self._measured(interval_from_core(pulled), core.data_bytes)
            elif finished:
                return

    def _measured(self, interval: IntervalSample, all_bytes: int) -> None:
        self._writer.interval(interval)
        for event in interval.events:
            self._tell(event)
        self._done_bytes += data_bytes_of(interval)
        self._tell(PhaseProgress(self._name, interval.end_s, self._done_bytes, all_bytes))
