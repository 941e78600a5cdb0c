"""Writes a run directory as the run proceeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from linerate.results.manifest import FactValue, State, Validity, WorkloadSource
from linerate.results.reader import RunDirectory
from linerate.results.sample import Event, Interval


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
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> Self:
        """Make the directory `path` (parents too) and its first manifest.

        `RunExistsError` when it is not empty.
        """
        raise NotImplementedError

    def begin_step(
        self,
        name: str,
        *,
        spec: Mapping[str, Any],
        facts: Mapping[str, Any],
        label: str = "",
        for_loops: str = "",
        requested_rate: str = "",
    ) -> None:
        """Start a step.

        `spec` is the RunSpec as JSON-like values; secrets in it are removed before anything is written.
        """
        raise NotImplementedError

    def interval(self, interval: Interval) -> None:
        """Append one interval of the current step: rows, usage, latency distributions and events."""
        raise NotImplementedError

    def event(self, event: Event) -> None:
        """Append one event that belongs to no interval."""
        raise NotImplementedError

    def end_step(
        self, summary: Interval | None = None, *, state: State = "complete", reason: str = ""
    ) -> None:
        """End the current step.

        Of the summary only the per-volume distributions are kept; sums come from the intervals.
        """
        raise NotImplementedError

    def close(
        self, state: State, reason: str = "", *, judge: Callable[[RunDirectory], Validity] | None = None
    ) -> RunDirectory:
        """Close the run for good and open it for reading. `judge` (see `analysis.check_run`) stamps it."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        """Start writing."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the run if nobody did, as failed or interrupted."""
        raise NotImplementedError
