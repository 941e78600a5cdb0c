"""`linerate scale`: the largest load that keeps a threshold of response time."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from typer import Option

from linerate.cli.job import flags
from linerate.cli.job.machine import shared_machine
from linerate.cli.job.where import Where
from linerate.cli.place import place_of
from linerate.errors import UserError, quote

if TYPE_CHECKING:
    from linerate.cli.job.fit import Fitted
    from linerate.cli.job.options import Asked
    from linerate.cluster import Cluster
    from linerate.run import Loader
    from linerate.scale import Climb, Parts, Procedure, Reached
    from linerate.scale.laws import Laws

_DOWN = "Measure a few loads once more after the highest one: do they differ from the way up?"
_HEADROOM = "Also measure 70, 80 and 90 % of the rate at the largest load, with Poisson arrivals."


class Over(StrEnum):
    """What grows."""

    THREADS = "threads"
    VOLUMES = "volumes"
    RATE = "rate"
    HOSTS = "hosts"


def scale(
    words: flags.Words = None,
    over: Annotated[
        Over,
        Option(
            "--over", help="What grows: I/Os in flight per volume, volumes, I/Os per second, or load hosts."
        ),
    ] = Over.THREADS,
    until: Annotated[
        str, Option("--until", metavar="METRIC=TIME", help="Threshold of response time: mean=20ms, p99=20ms.")
    ] = "mean=20ms",
    least: Annotated[int, Option("--least", metavar="N", min=1, help="Smallest load.")] = 1,
    most: Annotated[
        int | None,
        Option("--most", metavar="N", min=1, help="Largest load; default: 256, all volumes, or all hosts."),
    ] = None,
    repeats: Annotated[
        int,
        Option("--repeats", metavar="N", min=2, max=50, help="Most runs of a load that is hard to decide."),
    ] = 6,
    resolution: Annotated[
        float, Option("--resolution", metavar="PERCENT", min=0, max=50, help="Gap at which the search ends.")
    ] = 0.0,
    down: Annotated[bool, Option("--down/--no-down", help=_DOWN)] = True,
    headroom: Annotated[bool, Option("--headroom/--no-headroom", help=_HEADROOM)] = True,
    preset: flags.Preset = None,
    target: flags.Targets = None,
    map_: flags.Maps = None,
    volumes: flags.Volumes = None,
    size: flags.Size = None,
    overwrite: flags.Overwrite = None,
    elapsed: flags.Elapsed = None,
    warmup: flags.Warmup = None,
    set_: flags.Settings = None,
    virtual_time: flags.VirtualTime = None,
    hosts: flags.Hosts = None,
    hosts_python: flags.HostsPython = None,
    hosts_address: flags.HostsAddress = None,
    hosts_ports: flags.HostsPorts = None,
    dry_run: flags.DryRun = False,
    wait: flags.WaitForLab = False,
    output: flags.Output = None,
    json: flags.Json = False,
) -> None:
    """Find the largest load that keeps a threshold of response time: threads, volumes, I/Os per second, hosts.

    Each load is a run with a directory of its own, repeated until it is decided; the answer is an interval.
    """
    from linerate.cli.job import options
    from linerate.scale import Parts

    growth = _Growth(over, until, least, most, repeats, resolution / 100, Parts(down, headroom))
    where = Where.of(virtual_time, hosts, hosts_python, hosts_address, hosts_ports)
    place = _Place(
        options.Asked.of(words or [], preset), target or [], map_ or [], volumes, set_ or [], where, output
    )
    fitted = _fitted(place, elapsed, warmup, size)
    place = replace(place, where=_where(growth, where, fitted))
    with place.where.loader() if not (dry_run and place.where.hosts) else nullcontext() as loader:
        request = _request(growth, place, fitted, loader, overwrite, json=json)
        _search(request, dry_run=dry_run, wait=wait, json=json)


def _search(request: Climb, *, dry_run: bool, wait: bool, json: bool) -> None:
    from linerate.scale import check, climb

    check(request)
    if not json:
        typer.echo(_plan_text(request))
    if dry_run:
        return

    def tell(reached: Reached) -> None:
        typer.echo(_run_text(reached, json=json))

    try:
        with shared_machine(f"scale {request.plan.name}", wait=wait):
            procedure = climb(request, tell, lambda _event: None)
    except KeyboardInterrupt:
        if not json:
            typer.echo(_interrupted_text(request.directory))
        raise
    _show(request, procedure, json=json)


def _interrupted_text(directory: Path) -> str:
    """What an interrupted search leaves."""
    from linerate.scale import SCALE

    if (directory / SCALE).exists():
        return f"interrupted; the runs so far are kept: linerate report {quote(directory)}"
    return f"interrupted; no run of the search has ended: {directory}"


@dataclass(frozen=True, slots=True)
class _Growth:
    """What grows, how far, and until when."""

    over: Over
    until: str
    least: int
    most: int | None
    repeats: int
    resolution: float
    parts: Parts


@dataclass(frozen=True, slots=True)
class _Place:
    """The workload, and where its volumes and its runs are."""

    asked: Asked
    targets: list[str]
    maps: list[str]
    volumes: int | None
    settings: list[str]
    where: Where
    output: Path | None


def _fitted(place: _Place, elapsed_s: float | None, warmup_s: float | None, size: str | None) -> Fitted:
    """The workload on its volumes. Raises UserError."""
    from linerate.cli.job import options
    from linerate.workload import Overrides

    overrides = Overrides(elapsed_s=elapsed_s, warmup_s=warmup_s, size_bytes=options.size_bytes(size))
    overrides = options.with_settings(overrides, place.settings, [], None)
    targets = place.where.targets(place.targets, place.maps)
    return options.fitted(place.asked, overrides, targets, place.maps, place.volumes, strict=False)


def _where(growth: _Growth, where: Where, fitted: Fitted) -> Where:
    """With the hosts that the workload file names. Raises UserError if their number is to grow."""
    if growth.over == Over.HOSTS and fitted.plan.hosts is not None:
        raise UserError(
            f"--over hosts, and {fitted.plan.name} says itself what each of its hosts does",
            "leave the hd= lines out and name the hosts: --hosts load1,load2,...",
        )
    return where.of_plan(fitted.plan)


def _request(
    growth: _Growth,
    place: _Place,
    fitted: Fitted,
    loader: Loader | None,
    overwrite: list[str] | None,
    *,
    json: bool,
) -> Climb:
    """All that was asked for, read and checked. Raises UserError. Without a loader nothing can be run."""
    from linerate.cli.job.overwrite import consent_of
    from linerate.run import Here
    from linerate.scale import LOAD_MOST, Climb, SearchLimits, Threshold
    from linerate.workload.fewer import volume_names

    threshold = Threshold.parse(growth.until)
    where = place.where
    plan = (fitted.to_luns(loader) if loader is not None else fitted).told(json=json)
    bounds = {Over.VOLUMES: len(volume_names(plan)), Over.HOSTS: _hosts_most(growth, where)}
    most = growth.most or bounds.get(growth.over, LOAD_MOST)
    return Climb(
        plan,
        place.asked.workload_source(),
        growth.over.value,
        threshold,
        SearchLimits(
            threshold.limit_ms,
            growth.least,
            most,
            repeats_most=growth.repeats,
            resolution=growth.resolution,
        ),
        place.output or place_of(f"scale-{plan.name}"),
        consent_of(overwrite, json=json),
        loader or Here(),
        where.virtual_time.watch if where.virtual_time else None,
        growth.parts,
        cast("Cluster", loader).first if growth.over == Over.HOSTS and loader is not None else None,
    )


def _hosts_most(growth: _Growth, where: Where) -> int:
    """How many there are. Raises UserError if that is not enough."""
    if growth.over != Over.HOSTS:
        return 0
    if where.hosts is None:
        raise UserError("--over hosts has no hosts", "name them: --hosts load1,load2,...")
    there = len(where.hosts.places)
    if growth.most is not None and growth.most > there:
        raise UserError(f"up to {growth.most} hosts, and --hosts names {there}", f"--most {there}")
    return there


def _plan_text(request: Climb) -> str:
    from linerate.plural import plural
    from linerate.quantity import span_text
    from linerate.scale import runs_planned
    from linerate.scale.reached import sought_text

    planned = runs_planned(request.limits, request.parts)
    runs = plural(planned.most, "run")
    if planned.least < planned.most:
        runs = f"{planned.least} to {runs}"
    seconds = request.plan.seconds
    counts = ((planned.down_most, "on the way down"), (planned.headroom_most, "for headroom"))
    parts = ", ".join(f"up to {count} {what}" for count, what in counts if count)
    beside = f", of these {parts}" if parts else ""
    return (
        f"{request.plan.name}: {sought_text(request.axis)} with a {request.threshold}, from "
        f"{request.limits.least:,} to {request.limits.most:,}; {runs}{beside}; "
        f"{span_text(planned.least * seconds, planned.most * seconds)}"
    )


def _run_text(reached: Reached, *, json: bool) -> str:
    """A line for a run."""
    from linerate.scale.words import run_text

    if json:
        return dumps({"schema": "linerate.scale.run/1", **reached.model_dump(mode="json")})
    return run_text(reached)


def _show(request: Climb, procedure: Procedure, *, json: bool) -> None:
    from linerate.report.scale import write_scale_report
    from linerate.scale.headroom import headroom
    from linerate.scale.laws import laws_of
    from linerate.scale.way_down import compared
    from linerate.scale.words import answer_lines

    found, runs = procedure.capacity(), procedure.runs
    report = write_scale_report(request.directory)
    if json:
        line = {
            "schema": "linerate.scale/1",
            "over": request.axis,
            "until": str(request.threshold),
            "limit_ms": request.threshold.limit_ms,
            **asdict(found),
            "runs": len(runs),
            "down": [asdict(one) for one in compared(runs)],
            "headroom": [asdict(row) for row in headroom(runs, request.limits)],
            "laws": _laws_object(laws_of(request.axis, runs)),
            "directory": str(request.directory),
            "report": str(report),
        }
        typer.echo(dumps(line))
        return
    for text in answer_lines(request.axis, request.threshold, procedure):
        typer.echo(text)
    typer.echo(f"report: {report}")
    typer.echo(f"runs: {request.directory}")


def _laws_object(laws: Laws) -> dict[str, object]:
    """The laws for programs."""
    from linerate.scale.laws.universal import peak

    errors = {
        name: {"typical_error": law.typical_error, "largest_error": law.largest_error}
        for name, law in laws.all.items()
    }
    found: dict[str, object] = {"chosen": laws.chosen}
    if laws.universal is not None:
        model = laws.universal.model
        found["universal"] = {**asdict(model), "peak": peak(laws.universal), **errors["universal"]}
    if laws.network is not None:
        network = laws.network.model
        demands_s = dict(zip(network.stations, map(float, network.demands_s[-1]), strict=True))
        found["network"] = {"delay_s": network.delay_s, "demands_s": demands_s, **errors["network"]}
    expected = laws.furthest()
    return {**found, "expected": asdict(expected) if expected else None}
