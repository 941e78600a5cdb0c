"""What goes between the machine that gathers and a host: runs one way, intervals as plain values the other."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

from linerate.results import CounterRow, IntervalSample, LatencySample, PathRow, TimedEvent, Usage
from linerate.results.histogram import EncodedHistogram
from linerate.workload import RunSpec
from linerate.workload.files import FilesLoadSpec

Packed = tuple[Any, ...]
_OF_FILES = "files:"


def run_text(spec: RunSpec) -> str:
    """A host's part of a run, with secrets, for its agent."""
    return f"{_OF_FILES}{spec.host_json()}" if isinstance(spec, FilesLoadSpec) else spec.seam_json()


def run_of(text: str) -> RunSpec:
    """The part again."""
    if text.startswith(_OF_FILES):
        return FilesLoadSpec.model_validate_json(text.removeprefix(_OF_FILES))
    return RunSpec.model_validate_json(text)


def packed(interval: IntervalSample) -> Packed:
    """Numbers, text and histogram bytes only."""
    latencies = [
        (one.op, one.kind, one.histogram.encode(), one.histogram.count, one.stream, one.volume)
        for one in interval.latencies
        if one.histogram.count
    ]
    return (
        interval.index,
        interval.start_s,
        interval.end_s,
        interval.warmup,
        [astuple(row) for row in interval.rows],
        astuple(interval.usage),
        latencies,
        [astuple(event) for event in interval.events],
        [astuple(row) for row in interval.paths],
    )


def unpacked(values: Packed) -> IntervalSample:
    """The interval again."""
    index, start_s, end_s, warmup, rows, usage, latencies, events, paths = values
    return IntervalSample(
        index=index,
        start_s=start_s,
        end_s=end_s,
        warmup=warmup,
        rows=tuple(CounterRow(*row) for row in rows),
        usage=Usage(*usage),
        latencies=tuple(
            LatencySample(
                op=op, kind=kind, histogram=EncodedHistogram(data, count), stream=stream, volume=volume
            )
            for op, kind, data, count, stream, volume in latencies
        ),
        events=tuple(TimedEvent(*event) for event in events),
        paths=tuple(PathRow(*row) for row in paths),
    )
