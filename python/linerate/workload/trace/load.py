"""From a trace to a plan with one run: one stream on one volume for each device of the trace."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Literal

from linerate.errors import UserError
from linerate.workload.overrides import Overrides
from linerate.workload.plan import FileNotice, PlannedRun, PlanStep, RunPlan
from linerate.workload.problems import Problems, SourceLocation, shorten
from linerate.workload.spec import (
    RATE_IOPS_MAX,
    TIME_S_MAX,
    RunSpec,
    SizeMix,
    StreamSpec,
    TraceSpec,
    VolumeSpec,
)
from linerate.workload.trace.blkparse import read_blkparse
from linerate.workload.trace.iolog import read_iolog
from linerate.workload.trace.lines import Tell, lines_of
from linerate.workload.trace.recognise import TraceForm
from linerate.workload.trace.records import (
    BLOCK_BYTES,
    SECTOR_BYTES,
    CompiledTrace,
    DeviceTrace,
    RecordError,
    Records,
    compiled,
)
from linerate.workload.trace.snia import read_snia
from linerate.workload.url import NO_DEVICE, Target, in_dev, parse_target, path_of

Reader = Callable[[Iterator[tuple[int, str]], Records], Iterator[int]]
_READERS: Mapping[TraceForm, Reader] = {
    "iolog": read_iolog,
    "blkparse": read_blkparse,
    "snia": read_snia,
}
_NS = 1e9
_DEVICES_MAX = 1024
_IN_FLIGHT_MAX, _IN_FLIGHT_MIN, _BUFFERS_BYTES = 256, 8, 256 << 20
_TAIL, _TAIL_S = 1.1, 10.0
"""A replay that falls behind gets so much more time."""


def load_trace(
    path: Path, form: TraceForm, *, overrides: Overrides | None = None, tell: Tell | None = None
) -> RunPlan:
    """The plan of a trace; `tell` hears how much was read. Raises UserError with the line that is wrong, or with each
    device without a target."""
    wanted = overrides or Overrides()
    stat = path.stat()
    version = stat.st_mtime_ns, stat.st_size, stat.st_ino
    trace = _compiled(_TraceFile(path.resolve(), form, version, tell))
    problems = Problems()
    whole = SourceLocation(str(path), 0)
    named = {f"d{nth}": device for nth, device in enumerate(trace.devices, 1)}
    wanted.luns.check([(name, device.name) for name, device in named.items()])
    scale = wanted.trace_time_scale or 1.0
    placement = wanted.replay.placement if wanted.replay else "fold"
    volumes, streams = [], []
    for name, device in named.items():
        target = _target(name, device, wanted, problems, whole)
        if target is not None:
            volumes.append(_volume(name, device, target))
            streams.append(_stream(name, device, trace, scale, placement))
    problems.raise_if_any()
    _say(trace, whole, problems)
    seconds = trace.duration_ns * scale / _NS
    if seconds > TIME_S_MAX / 2:
        raise UserError(
            f"{path}: the replay takes {seconds / 86_400:,.0f} days", "give a smaller --time-scale"
        )
    interval_s = next((step for step in (1.0, 0.1) if seconds >= 10 * step), 0.05)
    spec = RunSpec(
        name=path.stem,
        volumes=tuple(volumes),
        streams=tuple(streams),
        elapsed_s=round(seconds * _TAIL + _TAIL_S, 3),
        interval_s=interval_s,
    )
    run = PlannedRun(
        spec=spec,
        name=spec.name,
        label=spec.name,
        rate_text="as recorded" if scale == 1 else f"recorded times x {scale:g}",
        timing_text=f"trace={seconds:.6g} elapsed={spec.elapsed_s:g} at most",
        source=str(path),
        trace=trace,
    )
    return wanted.apply(RunPlan(path.stem, [PlanStep(run)], problems.notices))


@dataclass(frozen=True, slots=True)
class _TraceFile:
    """A file as it was: `version` changes when the file does. `tell` is no part of what it is."""

    path: Path
    form: TraceForm
    version: tuple[int, int, int]
    tell: Tell | None = field(compare=False)


@lru_cache(maxsize=2)
def _compiled(file: _TraceFile) -> CompiledTrace:
    """The compiled trace of a file."""
    path, records = file.path, Records()
    reached = 0
    try:
        for number in _READERS[file.form](lines_of(path, file.tell), records):
            reached = number
            if len(records.devices) > _DEVICES_MAX:
                raise RecordError(f"more than {_DEVICES_MAX:,} devices; cut the trace")
    except RecordError as error:
        what, _, accepted = str(error).partition("; ")
        raise UserError(f"{path}:{reached}: {what}", accepted) from error
    return compiled(path, records)


def placement_notices(run: PlannedRun, sizes: Mapping[str, int]) -> list[FileNotice]:
    """What happens to offsets on volumes of these sizes in bytes, by name; empty for a run without a trace."""
    trace = run.trace
    if trace is None:
        return []
    notices = []
    for stream, device in zip(run.spec.streams, trace.devices, strict=True):
        size = sizes.get(stream.volumes[0])
        if size is None or stream.trace is None:
            continue
        where = (
            f"{stream.name} has {size:,} bytes, and {shorten(device.name)} was used up to {device.end_byte:,}"
        )
        if stream.trace.placement == "scale":
            message = f"{where}: all offsets are multiplied by {size / device.end_byte:.6g}"
        elif beyond := trace.beyond(device, size):
            message = (
                f"{where}: {beyond:,} of {device.ios:,} I/Os are beyond the end; offset modulo size is used"
            )
        else:
            continue
        notices.append(FileNotice(run.source, message))
    return notices


def _say(trace: CompiledTrace, whole: SourceLocation, problems: Problems) -> None:
    """Notices of what is not replayed as it is in the file."""
    for note in trace.notes:
        problems.notice(whole, note)
    for kind, count in trace.left_out.items():
        problems.notice(whole, f"{count:,} {kind} are left out: reads and writes are replayed")
    if trace.moved:
        problems.notice(
            whole, f"{trace.moved:,} lines were before the line above them: all I/Os are sorted by time"
        )
    for device in trace.devices:
        for block in (SECTOR_BYTES, BLOCK_BYTES):
            if count := device.unaligned[block]:
                on = "" if block == SECTOR_BYTES else f", on a volume with blocks of {block} bytes"
                what = f"{shorten(device.name)}: {count:,} I/Os are no whole blocks of {block} bytes"
                problems.notice(whole, f"{what}: they become the whole blocks that they touch{on}")
                break


def _stream(
    name: str, device: DeviceTrace, trace: CompiledTrace, scale: float, placement: Literal["fold", "scale"]
) -> StreamSpec:
    seconds = max(device.last_ns, trace.duration_ns) * scale / _NS
    rate_iops = min(max(device.ios / max(seconds, 0.001), 0.001), RATE_IOPS_MAX)
    largest = [part.largest_bytes or BLOCK_BYTES for part in (device.reads, device.writes)]
    return StreamSpec(
        name=name,
        volumes=(name,),
        rate_iops=rate_iops,
        sizes=SizeMix.one(largest[0]),
        write_sizes=SizeMix.one(largest[1]),
        read_percent=100 * device.reads.ios / device.ios,
        trace=TraceSpec(
            path=trace.path,
            first_io=device.first_io,
            ios=device.ios,
            time_scale=scale,
            placement=placement,
            span_bytes=device.end_byte,
        ),
    )


def _volume(name: str, device: DeviceTrace, target: Target) -> VolumeSpec:
    largest = device.reads.largest_bytes + device.writes.largest_bytes
    return VolumeSpec(
        name=name,
        url=target.url,
        user=target.user,
        secret=target.secret,
        mutual_user=target.mutual_user,
        mutual_secret=target.mutual_secret,
        outstanding=min(max(_BUFFERS_BYTES // largest, _IN_FLIGHT_MIN), _IN_FLIGHT_MAX),
        iscsi=target.iscsi,
    )


def _target(
    name: str, device: DeviceTrace, wanted: Overrides, problems: Problems, whole: SourceLocation
) -> Target | None:
    """Where a device's I/Os go; None after a problem was noted. The device's own name is never used as a target."""
    shown = f"device {shorten(device.name)} ({name})"
    mapped = wanted.luns.resolve(name, device.name)
    if mapped is None:
        what = f"{shown} with {device.ios:,} I/Os has no target"
        problems.error(whole, what, f"give --map {shorten(device.name)}=TARGET, or --target for each device")
        return None
    try:
        found = parse_target(mapped)
    except UserError as error:
        problems.error(whole, f"{shown}: {error.message}", error.hint)
        return None
    path = path_of(found.url)
    if found.kind != "file" or not path or os.path.exists(path) or (wanted.create and wanted.size_bytes):
        return found
    hint = NO_DEVICE if in_dev(path) else "correct the target, or give --create and --size"
    problems.error(whole, f"{shown}: {path} does not exist", hint)
    return None
