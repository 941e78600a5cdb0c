"""`--dry-run`: the volumes of a workload with what is on them, and its runs in order. Nothing is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import typer

from linerate.errors import LinerateError, UserError
from linerate.plural import plural
from linerate.quantity import duration_text
from linerate.run import Loader
from linerate.volumes import Look, columns, refuse_shared, size_text
from linerate.volumes.identity import shown
from linerate.workload import PlannedRun, RunPlan, RunSpec, VolumeSpec
from linerate.workload.fewer import only
from linerate.workload.hosts import LoadHosts
from linerate.workload.url import is_remote

_HOST_HEADINGS = ("host", "system", "runs", "threads", "makes")
_HEADINGS = ("volume", "target", "size", "threads", "reads", "found")


@dataclass(slots=True)
class _Volume:
    """What the runs of a plan do with a volume."""

    spec: VolumeSpec
    outstanding: set[int] = field(default_factory=set)
    read_percents: set[float] = field(default_factory=set)


def preview(plan: RunPlan, loader: Loader | None, dealt: LoadHosts | None = None) -> None:
    """Writes it. No loader: the volumes are on hosts that are not asked. `dealt`: what each of them gets.

    Raises UserError for volumes that are one, and for a run that cannot be dealt.
    """
    runs = list(plan.steps())
    for notice in (*plan.warnings, *(notice for run in runs for notice in run.warnings)):
        typer.echo(f"note: {notice}")
    specs = [run.spec for run in runs]
    if dealt is not None:
        specs = _dealt(specs, dealt)
    for line in columns([_HEADINGS, *_rows(specs, loader)], most=None):
        typer.echo(line)
    for run in runs:
        typer.echo(run.banner)
        for line in _trace_lines(run):
            typer.echo(line)
    typer.echo(f"{plural(len(plan), 'run')}, {_length_text(runs, plan.seconds)}")


def _length_text(runs: Sequence[PlannedRun], seconds: float) -> str:
    """How long the runs take; those that end when their work is done are named apart."""
    open_ended = sum(run.ends_when_done for run in runs)
    if not open_ended:
        return duration_text(seconds)
    unknown = f"{open_ended} of unknown length" if open_ended > 1 or len(runs) > 1 else "of unknown length"
    return f"{unknown}, the others {duration_text(seconds)}" if open_ended < len(runs) else unknown


def _trace_lines(run: PlannedRun) -> list[str]:
    """What the trace of a run holds, by device and direction; empty without a trace."""
    trace = run.trace
    if trace is None:
        return []
    rows: list[tuple[str, ...]] = [("stream", "device", "direction", "I/Os", "bytes", "from byte", "to byte")]
    for stream, device in zip(run.spec.streams, trace.devices, strict=True):
        for direction, part in (("read", device.reads), ("write", device.writes)):
            if part.ios:
                places = (f"{part.ios:,}", f"{part.bytes:,}", f"{part.first_byte:,}", f"{part.end_byte:,}")
                rows.append((stream.name, device.name, direction, *places))
    seconds = trace.duration_ns / 1e9
    mean = f"{trace.ios / seconds:,.1f}" if seconds else "all at once,"
    peak = f"mean {mean} IOPS, at most {trace.peak_ios:,} I/Os in a second"
    return [*columns(rows, most=None), f"recorded: {trace.ios:,} I/Os in {seconds:,.6g} s, {peak}"]


def _dealt(specs: Sequence[RunSpec], hosts: LoadHosts) -> list[RunSpec]:
    """Writes what each host gets, and gives the runs with the volumes of all hosts."""
    from linerate.cluster import deal

    dealt = [deal(spec, hosts) for spec in specs]
    rows: list[tuple[str, ...]] = [_HOST_HEADINGS]
    for host in hosts.hosts:
        parts = [parts[host.label] for parts, _ in dealt if host.label in parts]
        threads = {sum(volume.outstanding for volume in part.volumes) for part in parts}
        runs = f"{len(parts)} of {len(specs)}"
        streams = dict.fromkeys(stream.name for part in parts for stream in part.streams)
        shown = (runs, _range(threads), ", ".join(streams)) if parts else (runs, "0", "nothing")
        rows.append((host.label, host.address or "this machine", *shown))
    for line in columns(rows, most=None):
        typer.echo(line)
    return [whole for _, whole in dealt]


def _rows(specs: Sequence[RunSpec], loader: Loader | None) -> list[tuple[str, ...]]:
    volumes: dict[tuple[str, str], _Volume] = {}
    found: dict[tuple[str, str], list[Look] | str] = {}
    for spec in specs:
        if loader is not None:
            refuse_shared(spec)
        for volume in spec.volumes:
            key = (volume.name, volume.url)
            one = volumes.setdefault(key, _Volume(volume))
            one.outstanding.add(volume.outstanding)
            one.read_percents.add(_read_percent(spec, volume.name))
        fresh = [volume for volume in spec.volumes if (volume.name, volume.url) not in found]
        found |= _found(spec, fresh, loader)
    return [
        (
            one.spec.name,
            shown(one.spec.url),
            _size(one.spec, found[key]),
            _range(one.outstanding),
            f"{_range(one.read_percents)} %",
            _words(found[key]),
        )
        for key, one in volumes.items()
    ]


def _found(
    spec: RunSpec, fresh: Sequence[VolumeSpec], loader: Loader | None
) -> dict[tuple[str, str], list[Look] | str]:
    """What is on volumes. LUNs are looked at together: an array that is down is waited for once."""
    luns = [volume for volume in fresh if is_remote(volume.url)]
    groups = [luns, *([volume] for volume in fresh if volume not in luns)]
    found: dict[tuple[str, str], list[Look] | str] = {}
    for group in filter(None, groups):
        keys = {volume.name: (volume.name, volume.url) for volume in group}
        if loader is None:
            found |= dict.fromkeys(keys.values(), "not looked at: hosts load it")
            continue
        try:
            for look in loader.look(spec, list(keys)):
                of_volume = found.setdefault(keys[look.volume], [])
                assert isinstance(of_volume, list)
                of_volume.append(look)
        except UserError as error:
            if len(group) == 1:
                found |= dict.fromkeys(keys.values(), f"not looked at: {error.message}")
            else:  # one of them is wrong; the others are there
                for volume in group:
                    found |= _found(only(spec, volume.name), [volume], loader)
        except LinerateError as error:
            found |= dict.fromkeys(keys.values(), f"not looked at: {error.message}")
    return found


def _size(volume: VolumeSpec, found: list[Look] | str) -> str:
    """The part that is used, and the whole."""
    used = size_text(volume.size_bytes)
    whole = "" if isinstance(found, str) else size_text(found[0].size_bytes)
    return f"{used} of {whole}" if used and whole and used != whole else used or whole or "all of it"


def _words(found: list[Look] | str) -> str:
    return found if isinstance(found, str) else "; ".join(dict.fromkeys(look.words for look in found))


def _read_percent(spec: RunSpec, volume: str) -> float:
    """Of the volume's I/Os, by the shares of its streams; streams without one count alike."""
    streams = [stream for stream in spec.streams if volume in stream.volumes]
    weights = [stream.share_percent or stream.rate_iops or 1.0 for stream in streams]
    total = sum(weights)
    if not total:
        return 100.0
    return sum(stream.read_percent * weight for stream, weight in zip(streams, weights, strict=True)) / total


def _range(values: set[int] | set[float]) -> str:
    least, most = min(values), max(values)
    return f"{least:.3g}" if least == most else f"{least:.3g}-{most:.3g}"
