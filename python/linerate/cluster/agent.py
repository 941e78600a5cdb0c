"""LoadAgent: what runs on each host. An actor of dask.distributed; every method is one question of the protocol.

Intervals are written to a run directory on the host first, then announced; the gathering machine fetches them. If the
network or the gathering machine fails, the measurements of this host are still in its spool.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from distributed import get_worker

from linerate import _core
from linerate.cluster.wire import Packed, packed, run_of
from linerate.errors import HostError, InternalError, is_full_disk
from linerate.filename import file_name
from linerate.results import IntervalSample, RunWriter, WorkloadSource, interval_from_core
from linerate.results.manifest import State
from linerate.volumes import VolumeLock, look_here, refuse_shared
from linerate.workload import RunSpec
from linerate.workload.files import FilesLoadSpec

TOPIC = "linerate-load"
_PULL_TIMEOUT_S = 0.5


def _spools() -> Path:
    return Path(tempfile.gettempdir()) / f"linerate-spool-{os.getuid()}"


class LoadAgent:
    """The load of one host."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._worker = get_worker()
        self._spool: Path | None = None
        self._writer: RunWriter | None = None
        self._hold = VolumeLock(())
        self._prepared: _core.PreparedRun | _core.PreparedFilesRun | None = None
        self._run: _core.Run | _core.FilesRun | None = None
        self._written = _core.WrittenFiles()
        self._puller: threading.Thread | None = None
        self._unwritten: HostError | None = None
        self._intervals: dict[int, Packed] = {}
        self._id = ""

    def about(self) -> dict[str, Any]:
        """Versions and what the host gives."""
        return {"linerate": _core.__version__, **_core.host_probe()}

    def clock_ns(self) -> int:
        """The clock by which `start_at` starts."""
        return time.monotonic_ns()

    def wall_clock_ns(self) -> int:
        """The clock by which its logs are dated."""
        return time.time_ns()

    def look(self, run: str, names: list[str]) -> list[dict[str, Any]]:
        """The contents of the named volumes of a part (`run_text`); see `linerate.volumes.Look`."""
        return [look.model_dump(mode="json") for look in look_here(run_of(run), names)]

    def prepare(self, run_id: str, run: str, spool: str, free: list[str]) -> dict[str, Any]:
        """Opens the volumes of a part (`run_text`) and gives what was negotiated; announcements carry `run_id`, `spool`
        names a folder.

        Block devices among `free` are held until the load has ended. Raises HostError if the spool cannot be written.
        """
        self.stop()
        spec = run_of(run)
        self._prepared = self._prepare(spec, free)
        facts = self._prepared.facts()
        self._intervals = {}
        self._id = run_id
        self._unwritten = None
        self._spool = _spools() / spool / f"{run_id}-{file_name(self._host)}"
        try:
            with self._writing(self._spool):
                self._spool.mkdir(parents=True)
                self._writer = RunWriter.create(
                    self._spool,
                    name=spec.name,
                    workload=WorkloadSource(name=spec.name),
                    versions={"linerate": _core.__version__},
                )
                self._writer.begin_step(spec.name, spec=spec.model_dump(mode="json"), facts=facts)
        except HostError:
            self.stop()
            raise
        return {**facts, "spool": str(self._spool)}

    def _prepare(self, spec: RunSpec, free: list[str]) -> _core.PreparedRun | _core.PreparedFilesRun:
        if isinstance(spec, FilesLoadSpec):
            return _core.FilesRun.prepare(spec.seam_json(), self._written)
        refuse_shared(spec)
        self._hold = VolumeLock(free)
        return _core.Run.prepare(spec.seam_json())

    def start_at(self, monotonic_ns: int) -> None:
        """Starts the load at an instant of this host's clock. Raises HostError if it is over."""
        if self._prepared is None:
            raise InternalError(f"{self._host}: no run is prepared")
        prepared, self._prepared = self._prepared, None
        self._run = prepared.start_at(monotonic_ns)
        self._puller = threading.Thread(target=self._pull, args=(self._run,), name="pull", daemon=True)
        self._puller.start()

    def interval(self, index: int) -> Packed:
        """An interval that was announced; it is forgotten here and kept in the spool."""
        return self._intervals.pop(index)

    def stop(self) -> None:
        """Starts no more I/Os; closes a run that was only prepared, and removes its spool."""
        if self._prepared is not None:
            self._prepared.discard()
            self._prepared = None
            self._hold.release()
            self._writer = None
            self.forget()
        if self._run is not None:
            self._run.stop()

    def finish(self) -> tuple[Packed, Exception | None]:
        """Waits for the end: the measured time as one interval, and what made the load fail."""
        if self._run is None or self._puller is None:
            raise InternalError(f"{self._host}: nothing was started")
        summary = self._run.finish()
        self._hold.release()
        self._puller.join()
        total = interval_from_core(summary.total)
        self._close_spool(total, summary.error)
        self._run = self._puller = None
        if self._unwritten is not None:
            self.forget()
        return packed(total), summary.error or self._unwritten

    def forget(self) -> None:
        """Removes the spool: everything has arrived."""
        if self._spool is not None:
            shutil.rmtree(self._spool, ignore_errors=True)
            with contextlib.suppress(OSError):  # others' spools may lie beside it
                self._spool.parent.rmdir()
                self._spool.parent.parent.rmdir()
            self._spool = None

    def _pull(self, run: _core.Run | _core.FilesRun) -> None:
        while True:
            finished = run.finished  # asked first: an interval may come between the pull and the question
            pulled = run.next_interval(_PULL_TIMEOUT_S)
            if pulled is not None:
                self._keep(interval_from_core(pulled))
            elif finished:
                self._tell(None)
                return

    def _keep(self, interval: IntervalSample) -> None:
        if self._writer is not None:
            try:
                with self._writing(self._writer.path):
                    self._writer.interval(interval)
            except HostError as error:
                self._unwritten, self._writer = error, None
                self.stop()
        self._intervals[interval.index] = packed(interval)
        self._tell(interval.index)

    @staticmethod
    @contextlib.contextmanager
    def _writing(spool: Path) -> Iterator[None]:
        """Names the spool if this host cannot write it."""
        try:
            yield
        except OSError as error:
            why = "no space left on its disk" if is_full_disk(error) else error.strerror or error
            raise HostError(
                f"{spool}: {why}",
                f"make room for its intervals in {tempfile.gettempdir()} there, or give it another TMPDIR",
            ) from error

    def _tell(self, index: int | None) -> None:
        """Announces an interval; None: the last one was."""
        self._worker.log_event(TOPIC, {"host": self._host, "run": self._id, "index": index})

    def _close_spool(self, total: IntervalSample, error: Exception | None) -> None:
        """Its intervals have been fetched: a disk that is full now costs nothing."""
        if self._writer is None:
            return
        state: State = "failed" if error else "complete"
        with contextlib.suppress(OSError):
            self._writer.end_step(total, state=state, reason=str(error or ""))
            self._writer.leave(state, str(error or ""))
        self._writer = None
