"""status.html: what happened when, for programs that watch it. Values are separated by tabs, as in vdbench."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import polars as pl

from linerate.report.vdbench.layout import later
from linerate.results import RunDirectory, StepRecord


def lines(run: RunDirectory) -> Iterator[str]:
    """The events of a run in order. vdbench's slaves are the load generator here."""
    yield "* State of the run, for programs: each line is a time and a state, and of a step its rd= and its loops."
    yield "* Values are separated by tabs."
    yield ""
    manifest = run.manifest
    for state in ("Starting slaves", "Slaves connected"):
        yield _line(manifest.started_at, state)
    for record in manifest.steps:
        yield _of_step(record.started_at, "Starting", record)
        usage = run.usage.filter(pl.col("step") == record.key).sort("interval")
        warmup_s = usage.filter(pl.col("warmup"))["end_s"].max()
        if isinstance(warmup_s, float) and not usage["warmup"].all():
            yield _of_step(later(record.started_at, warmup_s), "Warmup done", record)
        if record.ended_at is not None and record.state == "complete":
            for state in ("Workload done", "Slaves done"):
                yield _of_step(record.ended_at, state, record)
    if manifest.ended_at is not None:
        yield _line(manifest.ended_at, "Shutting down slaves")
        if run.state == "complete":
            yield _line(manifest.ended_at, "Vdbench complete")


def _line(at: datetime, *values: str) -> str:
    return "\t".join((f"{at:%m/%d/%Y-%H:%M:%S-%Z} ", *values))


def _of_step(at: datetime, state: str, record: StepRecord) -> str:
    return _line(at, state, f"rd={record.name}", f"For loops: {record.for_loops or 'None'}")
