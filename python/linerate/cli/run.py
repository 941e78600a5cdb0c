"""`linerate run`: runs a workload file, a preset or a study, shows it live, keeps its directory and writes a report."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from linerate.cli.job import flags
from linerate.cli.place import place_of
from linerate.cli.study import verbs
from linerate.cli.study.kind import study_file
from linerate.errors import UserError

if TYPE_CHECKING:
    from linerate.cli.job.ahead import Ahead
    from linerate.cli.job.options import Asked, Lenient
    from linerate.run import LoadStarter, Watcher
    from linerate.workload import Overrides


def run(
    words: flags.Words = None,
    preset: flags.Preset = None,
    target: flags.Targets = None,
    map_: flags.Maps = None,
    size: flags.Size = None,
    create: flags.Create = False,
    elapsed: flags.Elapsed = None,
    warmup: flags.Warmup = None,
    interval: flags.Interval = None,
    outstanding: flags.Outstanding = None,
    seed: flags.Seed = None,
    verify: flags.Verify = False,
    strict: flags.Strict = False,
    set_: flags.Settings = None,
    path: flags.Paths = None,
    import_multipath: flags.ImportMultipath = None,
    wait: flags.WaitMode = None,
    driver: flags.DriverName = None,
    cpus: flags.Cpus = None,
    workers: flags.Workers = None,
    dry_run: flags.DryRun = False,
    quick: flags.Quick = False,
    blocks: flags.Blocks = None,
    virtual_time: flags.VirtualTime = None,
    hosts: flags.Hosts = None,
    hosts_python: flags.HostsPython = "python3",
    hosts_address: flags.HostsAddress = None,
    output: flags.Output = None,
    no_report: flags.NoReport = False,
    vdbench_output: flags.VdbenchOutput = None,
    json: flags.Json = False,
) -> None:
    """Run a workload file (vdbench, Linerate TOML), a preset or a study: on iSCSI LUNs, files or block devices."""
    if words and preset is None and study_file(words[0]):
        _study(words, dry_run=dry_run, quick=quick, blocks=blocks, seed=seed, output=output, json=json)
        return
    if quick or blocks is not None:
        named = "--quick" if quick else "--blocks"
        raise UserError(f"{named} goes with a study", "use --elapsed and --warmup for a workload")
    from linerate.cli.job import options
    from linerate.cli.job.ahead import Ahead
    from linerate.workload import Overrides

    lenient: Lenient = False if strict else "auto"
    asked = options.Asked.of(words or [], preset)
    overrides = Overrides(
        elapsed_s=elapsed,
        warmup_s=warmup,
        interval_s=interval,
        outstanding=outstanding,
        size_bytes=options.size_bytes(size),
        seed=seed,
        create=create or None,
        verify="on" if verify else None,
        wait=wait.value if wait else None,
        driver=driver.value if driver else None,
        cpus=options.cpu_list(cpus),
        workers=workers,
    )
    overrides = options.with_settings(overrides, set_ or [], path or [], import_multipath)
    ahead = Ahead.of(virtual_time, hosts)
    targets = ahead.targets(target or [], map_ or []) if ahead else target or []
    overrides = options.with_targets(asked, overrides, targets, map_ or [], lenient)
    keep = Keep(output, not no_report, vdbench_output)
    if dry_run:
        _show_runs(asked, overrides, lenient)
    else:
        with _load(ahead, hosts, hosts_python, hosts_address) as (start, arrays):
            run_plan(asked, overrides, keep, lenient=lenient, json=json, start=start, arrays=arrays)


@contextmanager
def _load(
    ahead: Ahead | None, hosts: str | None, python: str, address: str | None
) -> Iterator[tuple[LoadStarter | None, Watcher | None]]:
    """What starts the load of a step, and what watches the disks: None for this process, and for nobody."""
    if ahead is not None:
        yield ahead.start, ahead.watch
    elif hosts is None:
        yield None, None
    else:
        from linerate.cluster import Cluster, ssh_places

        with Cluster(ssh_places(hosts.split(","), python), address=address) as cluster:
            yield cluster.start, None


def _study(
    words: list[str],
    *,
    dry_run: bool,
    quick: bool,
    blocks: int | None,
    seed: int | None,
    output: Path | None,
    json: bool,
) -> None:
    """Run a study. The other options are the study file's to say."""
    if len(words) > 1:
        raise UserError(f"{words[0]} is a study, and {words[1]} goes with workloads", "give the study alone")
    if dry_run:
        verbs.plan(words[0], quick=quick, blocks=blocks, seed=seed, json=json)
    else:
        verbs.run(words[0], quick=quick, blocks=blocks, seed=seed, output=output, json=json)


def _show_runs(asked: Asked, overrides: Overrides, lenient: Lenient) -> None:
    """The runs of a workload in order, and how long they take together."""
    from linerate.workload import load_workload

    plan = load_workload(
        asked.source, substitutions=asked.substitutions, lenient=lenient, overrides=overrides
    )
    total_s = 0.0
    for run in plan.steps():
        total_s += run.pause_s + run.spec.warmup_s + run.spec.elapsed_s
        typer.echo(run.banner)
    typer.echo(f"{len(plan)} runs, {total_s:g} s")


@dataclass(frozen=True, slots=True)
class Keep:
    """What is written besides the screen: the run directory (None: a new one under `runs`) and reports."""

    directory: Path | None = None
    report: bool = True
    vdbench_output: Path | None = None


def run_plan(
    asked: Asked,
    overrides: Overrides,
    keep: Keep,
    *,
    lenient: Lenient = "auto",
    json: bool = False,
    start: LoadStarter | None = None,
    arrays: Watcher | None = None,
) -> None:
    """Loads the workload, runs it, and leaves by typer.Exit when the exit code is not 0.

    `start` starts the load of a step; in this process if not given. `arrays` watches the disks of its arrays.
    """
    from linerate.cli.job.execute import Job, execute
    from linerate.cli.view import open_view
    from linerate.run import LocalLoad
    from linerate.workload import load_workload

    plan = load_workload(
        asked.source, substitutions=asked.substitutions, lenient=lenient, overrides=overrides
    )
    directory = keep.directory or place_of(plan.name)
    job = Job(
        plan,
        asked.workload_source(),
        directory,
        keep.report,
        keep.vdbench_output,
        start or LocalLoad,
        arrays,
    )
    if code := execute(job, open_view(json=json)):
        raise typer.Exit(code)
