"""Reads a run directory: finished, failed, or left behind by a killed process.

Tables are of polars, which is not installed on a load host: what only writes does without this module.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self, cast

import polars as pl
from pydantic import ValidationError

from linerate.results import columns, files, hlog
from linerate.results.errors import NotARunError, RunDamagedError
from linerate.results.histogram import LatencyHistogram, decode, merged
from linerate.results.manifest import FORMAT, FORMAT_VERSION, Manifest, State, StepRecord
from linerate.results.sample import KINDS, LatencyKind, Op, TimedEvent

_TIME_SLACK_S = 0.0015  # the log rounds to a millisecond


def _example_in(folder: Path) -> str:
    """A run directory of a folder, the last by name; empty if it has none."""
    runs = sorted(path.parent for path in folder.glob(f"*/{files.MANIFEST}"))
    return f", for example {runs[-1]}" if runs else ""


_ROWS_PER_FRAME = 100_000
_TYPES: dict[str, pl.DataType] = {
    "str": pl.String(),
    "Op": pl.String(),
    "ArrayPart": pl.String(),
    "bool": pl.Boolean(),
    "int": pl.Int64(),
    "float": pl.Float64(),
}


def _typed(names: Mapping[str, str]) -> dict[str, pl.DataType]:
    """Behind the key of a line."""
    return {name: _TYPES[kind] for name, kind in {**columns.KEY, **names}.items()}


_INTERVALS_SCHEMA = _typed(columns.ROW_COLUMNS)
_USAGE_SCHEMA = _typed(columns.USAGE_COLUMNS)
_PATHS_SCHEMA = _typed(columns.PATH_COLUMNS)
_ARRAYS_SCHEMA = _typed(columns.ARRAY_COLUMNS)


class Tables(NamedTuple):
    """The interval tables of a run."""

    intervals: pl.DataFrame
    usage: pl.DataFrame
    paths: pl.DataFrame
    arrays: pl.DataFrame


class RunDirectory:
    """A run directory opened for reading.

    `manifest` is the typed manifest; `intervals` has one row per (step, interval, stream, volume, op), `usage`
    one per (step, interval), `paths` one per (step, interval, volume, path), `arrays` one per (step, interval, array,
    part, name). All have the columns of `columns.py`, units in the names. A run that was killed reads like a finished
    one, up to the last interval it completed; its `state` is then "interrupted".
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest
        self._merged: dict[str, dict[hlog.Tag, LatencyHistogram]] = {}

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open `path`. `NotARunError` when it is no run directory or of a newer format."""
        try:
            text = (path / files.MANIFEST).read_bytes()
        except OSError as error:
            raise NotARunError(
                f"{path} is not a run directory: {files.MANIFEST}: {error.strerror}",
                hint=f"give a directory that `linerate run` wrote{_example_in(path)}",
            ) from error
        try:
            manifest = Manifest.model_validate_json(text)
        except ValidationError as error:
            problem = error.errors()[0]
            where = ".".join(str(part) for part in problem["loc"]) or "the file"
            raise NotARunError(
                f"{path / files.MANIFEST}: {where}: {problem['msg']}",
                hint="take the run directory from a backup, or give one that `linerate run` wrote",
            ) from error
        if manifest.format != FORMAT or manifest.format_version > FORMAT_VERSION:
            raise NotARunError(
                f"{path} has run format {manifest.format_version}; this version reads up to {FORMAT_VERSION}",
                hint="read it with the Linerate that wrote it, or a newer one",
            )
        return cls(path, manifest)

    @property
    def state(self) -> State:
        """How the run ended; "interrupted" as well when its process died without a word."""
        if self.manifest.state == "running" and not files.is_being_written(self.path):
            return "interrupted"
        return self.manifest.state

    @property
    def intervals(self) -> pl.DataFrame:
        """Counters per step, interval, stream, volume and operation."""
        return self._tables.intervals

    @property
    def usage(self) -> pl.DataFrame:
        """CPU, TCP and generator figures per step and interval."""
        return self._tables.usage

    @property
    def paths(self) -> pl.DataFrame:
        """Counters per step, interval, volume and path, of volumes with several paths; else empty."""
        return self._tables.paths

    @property
    def arrays(self) -> pl.DataFrame:
        """What each disk, RAID set, pool and volume of the arrays did per step and interval, where that was read; else
        empty.
        """
        return self._tables.arrays

    @cached_property
    def events(self) -> Sequence[TimedEvent]:
        """What happened, in order."""
        known = {item.name for item in fields(TimedEvent)}
        lines = columns.complete_lines(self.path / files.EVENTS)
        return tuple(
            TimedEvent(**{key: value for key, value in line.items() if key in known}) for line in lines
        )

    def step(self, key: str) -> StepRecord:
        """The record of a step. `KeyError` when the run has no such step."""
        return self._steps[key]

    def measured_rows(self, step: str) -> pl.DataFrame:
        """The rows of `intervals` of one step, without warm-up."""
        return self.intervals.filter((pl.col("step") == step) & ~pl.col("warmup"))

    def measured_usage(self, step: str) -> pl.DataFrame:
        """The rows of `usage` of one step, without warm-up, in order."""
        return self.usage.filter((pl.col("step") == step) & ~pl.col("warmup")).sort("interval")

    def latency(
        self,
        step: str,
        *,
        stream: str | None = None,
        volume: str | None = None,
        op: Op | None = None,
        kind: LatencyKind = "service",
    ) -> LatencyHistogram | None:
        """The merged distribution of a step's measured time, of everything that the filters leave;

        None without I/O.
        """
        if volume is not None:
            parts = [
                decode(line.data)
                for line in self._measured_lines(step, op, kind)
                if line.tag.volume == volume
            ]
        else:
            parts = [
                histogram
                for tag, histogram in self._by_stream(step).items()
                if tag.kind == kind and op in (None, tag.op) and stream in (None, tag.stream)
            ]
        return merged(parts)

    def latency_by_volume(self, step: str) -> Iterator[tuple[str, Op, LatencyHistogram]]:
        """Volume, operation and service times over the measured time, one after the other.

        Only a step that ended has them. A thousand distributions are large: keep few at a time.
        """
        for line in self._measured_lines(step, None, "service"):
            if line.tag.volume:
                yield line.tag.volume, cast("Op", line.tag.op), decode(line.data)

    def latency_over_time(
        self, step: str, *, op: Op | None = None, kind: LatencyKind = "service"
    ) -> list[tuple[float, LatencyHistogram]]:
        """Of each measured interval with I/O: start in seconds of the step, distribution over all streams."""
        offset = self._offset_s(step)
        intervals: dict[float, list[LatencyHistogram]] = {}
        for line in self._measured_lines(step, op, kind):
            if not line.tag.volume:
                intervals.setdefault(line.start_s, []).append(decode(line.data))
        merged_intervals = ((start_s, merged(parts)) for start_s, parts in sorted(intervals.items()))
        return [(start_s - offset, total) for start_s, total in merged_intervals if total is not None]

    def damage(self) -> list[str]:
        """What is missing or was changed since the run was closed; empty for a sound or an unclosed run."""
        found = []
        for name, record in self.manifest.files.items():
            try:
                if files.record_of(self.path / name) != record:
                    found.append(f"{name} was changed after the run was closed")
            except OSError as error:
                found.append(f"{name} cannot be read: {error.strerror}")
        return found

    def _measured_lines(self, step: str, op: Op | None, kind: LatencyKind) -> Iterator[hlog.LogLine]:
        usage = self.measured_usage(step)
        if usage.is_empty():
            return
        first = self._offset_s(step) + float(usage["start_s"][0]) - _TIME_SLACK_S
        for line in self._log.get(step, ()):
            if line.tag.kind == kind and op in (None, line.tag.op) and line.start_s >= first:
                yield line

    def _by_stream(self, step: str) -> dict[hlog.Tag, LatencyHistogram]:
        """The measured distributions of each (stream, operation, kind); merged once, asked for many times."""
        if step not in self._merged:
            found: dict[hlog.Tag, LatencyHistogram] = {}
            for line in (line for kind in KINDS for line in self._measured_lines(step, None, kind)):
                if line.tag.volume:
                    continue
                if line.tag in found:
                    found[line.tag].merge(decode(line.data))
                else:
                    found[line.tag] = decode(line.data)
            self._merged[step] = found
        return self._merged[step]

    def _offset_s(self, step: str) -> float:
        return (self.step(step).started_at - self.manifest.started_at).total_seconds()

    @cached_property
    def _steps(self) -> dict[str, StepRecord]:
        return {step.key: step for step in self.manifest.steps}

    @cached_property
    def _tables(self) -> Tables:
        spool = self.path / files.SPOOL
        if spool.exists():  # not closed, or killed while closing: the spool is removed last
            return read_spool(spool)
        try:
            return Tables(
                _with_schema(pl.read_parquet(self.path / files.INTERVALS, glob=False), _INTERVALS_SCHEMA),
                _with_schema(pl.read_parquet(self.path / files.USAGE, glob=False), _USAGE_SCHEMA),
                _if_there(self.path / files.PATHS, _PATHS_SCHEMA),
                _if_there(self.path / files.ARRAYS, _ARRAYS_SCHEMA),
            )
        except (OSError, pl.exceptions.PolarsError) as error:
            raise RunDamagedError(
                f"{self.path}: the interval tables cannot be read: {error}",
                hint="take the run directory from a backup",
            ) from error

    @cached_property
    def _log(self) -> dict[str, list[hlog.LogLine]]:
        by_step: dict[str, list[hlog.LogLine]] = {}
        for line in hlog.read_log(self.path / files.LATENCY):
            by_step.setdefault(line.tag.step, []).append(line)
        return by_step


def _if_there(path: Path, schema: dict[str, Any]) -> pl.DataFrame:
    """The table of a file that not every run has."""
    return (
        _with_schema(pl.read_parquet(path, glob=False), schema)
        if path.exists()
        else pl.DataFrame(schema=schema)
    )


def _with_schema(frame: pl.DataFrame, schema: dict[str, Any]) -> pl.DataFrame:
    """`frame` with exactly the columns of `schema`:

    absent ones (an older writer) are null, unknown ones (a newer) are left out.
    """
    wanted = (
        pl.col(name).cast(kind) if name in frame.columns else pl.lit(None, dtype=kind).alias(name)
        for name, kind in schema.items()
    )
    return frame.select(*wanted)


class _Table:
    """A table that grows line by line."""

    def __init__(self, schema: Mapping[str, pl.DataType]) -> None:
        self._schema = dict(schema)
        self._frames = [pl.DataFrame(schema=self._schema)]
        self._rows: dict[str, list[Any]] = {name: [] for name in schema}

    def add(self, line: Mapping[str, Any], rows: Mapping[str, Sequence[Any]]) -> None:
        """Rows as columns, behind the key of their line."""
        count = len(next(iter(rows.values())))
        for name in self._schema:
            self._rows[name].extend([line[name]] * count if name in columns.KEY else rows[name])
        if len(self._rows["step"]) >= _ROWS_PER_FRAME:  # Python lists cost ten times a frame's memory
            self._flush()

    def frame(self) -> pl.DataFrame:
        """All of it."""
        self._flush()
        return pl.concat(self._frames)

    def _flush(self) -> None:
        self._frames.append(pl.DataFrame(self._rows, schema=self._schema))
        self._rows = {name: [] for name in self._schema}


def read_spool(path: Path) -> Tables:
    """The tables of a spool file."""
    intervals, usage = _Table(_INTERVALS_SCHEMA), _Table(_USAGE_SCHEMA)
    paths, arrays = _Table(_PATHS_SCHEMA), _Table(_ARRAYS_SCHEMA)
    for line in columns.complete_lines(path):
        intervals.add(line, line["rows"])
        usage.add(line, {name: (value,) for name, value in line["usage"].items()})
        if "paths" in line:
            paths.add(line, line["paths"])
        if "arrays" in line:
            arrays.add(line, line["arrays"])
    return Tables(intervals.frame(), usage.frame(), paths.frame(), arrays.frame())


def write_table(path: Path, table: pl.DataFrame) -> None:
    """Write a table as Parquet. By way of memory, so that a full disk is an OSError as it is of every other file."""
    data = io.BytesIO()
    table.write_parquet(data, compression="zstd")
    path.write_bytes(data.getbuffer())
