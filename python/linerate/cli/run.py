"""`linerate run`: runs a workload file, a preset or a study, shows it live, keeps its directory and writes a report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from linerate.cli.job import flags
from linerate.cli.job.machine import shared_machine
from linerate.cli.job.page import Page, with_page
from linerate.cli.job.where import Where
from linerate.cli.place import place_of
from linerate.cli.study import verbs
from linerate.cli.study.kind import study_file
from linerate.errors import UserError

if TYPE_CHECKING:
    from linerate.cli.job.fit import Fitted
    from linerate.cli.job.options import Asked
    from linerate.run import Loader
    from linerate.workload import Overrides, RunPlan


def run(
    words: flags.Words = None,
    preset: flags.Preset = None,
    target: flags.Targets = None,
    map_: flags.Maps = None,
    volumes: flags.Volumes = None,
    size: flags.Size = None,
    create: flags.Create = False,
    overwrite: flags.OverwriteOrReplace = None,
    elapsed: flags.Elapsed = None,
    warmup: flags.Warmup = None,
    interval: flags.Interval = None,
    outstanding: flags.Outstanding = None,
    time_scale: flags.TimeScale = None,
    seed: flags.Seed = None,
    verify: flags.Verify = False,
    strict: flags.Strict = False,
    set_: flags.Settings = None,
    path: flags.Paths = None,
    import_multipath: flags.ImportMultipath = None,
    io_wait: flags.WaitMode = None,
    driver: flags.DriverName = None,
    cpus: flags.Cpus = None,
    workers: flags.Workers = None,
    dry_run: flags.DryRun = False,
    quick: flags.Quick = False,
    blocks: flags.Blocks = None,
    virtual_time: flags.VirtualTime = None,
    hosts: flags.Hosts = None,
    hosts_python: flags.HostsPython = None,
    hosts_address: flags.HostsAddress = None,
    hosts_ports: flags.HostsPorts = None,
    wait: flags.WaitForLab = False,
    output: flags.Output = None,
    no_report: flags.NoReport = False,
    vdbench_output: flags.VdbenchOutput = None,
    fio_json: flags.FioJson = None,
    iometer_csv: flags.IometerCsv = None,
    diskspd_xml: flags.DiskspdXml = None,
    page: Page = False,
    json: flags.Json = False,
) -> None:
    """Run a workload file (vdbench, fio, Iometer, TOML), a trace, a preset, a study, or after -- a diskspd command."""
    if _is_study(words or [], preset, quick, blocks):
        _study(words or [], overwrite, quick, blocks, seed, output, dry_run, wait, page, json=json)
        return
    keep = Keep(output, not no_report, vdbench_output, fio_json, iometer_csv, diskspd_xml, page)
    from linerate.cli.job import options
    from linerate.workload import Overrides

    asked = options.Asked.of(words or [], preset)
    overrides = Overrides(
        elapsed_s=elapsed,
        warmup_s=warmup,
        interval_s=interval,
        outstanding=outstanding,
        trace_time_scale=time_scale,
        size_bytes=options.size_bytes(size),
        seed=seed,
        create=create or None,
        verify="on" if verify else None,
        wait=io_wait.value if io_wait else None,
        driver=driver.value if driver else None,
        cpus=options.cpu_list(cpus),
        workers=workers,
    )
    overrides = options.with_settings(overrides, set_ or [], path or [], import_multipath)
    where = Where.of(virtual_time, hosts, hosts_python, hosts_address, hosts_ports)
    fitted, where = _placed(asked, overrides, where, target or [], map_ or [], volumes, strict=strict)
    _show_or_load(fitted, asked, keep, where, overwrite, dry_run=dry_run, wait=wait, json=json)


def _placed(
    asked: Asked,
    overrides: Overrides,
    where: Where,
    targets: list[str],
    maps: list[str],
    volumes: int | None,
    *,
    strict: bool,
) -> tuple[Fitted, Where]:
    """The workload on its volumes, and where it runs. Raises UserError, also for CPUs that this process may not use."""
    from linerate.cli.job import options

    fitted = options.fitted(asked, overrides, where.targets(targets, maps), maps, volumes, strict=strict)
    where = where.of_plan(fitted.plan)
    if where.hosts is None:
        options.check_cpus(overrides.cpus)
    return fitted, where


def _is_study(words: list[str], preset: str | None, quick: bool, blocks: int | None) -> bool:
    """Whether a study is asked for. Raises UserError for options of studies with a workload."""
    if words and preset is None and study_file(words[0]):
        return True
    if quick or blocks is not None:
        named = "--quick" if quick else "--blocks"
        raise UserError(f"{named} goes with a study", "use --elapsed and --warmup for a workload")
    return False


def _show(fitted: Fitted, where: Where) -> None:
    """--dry-run. Hosts of a cluster are not asked: nothing is started there."""
    from linerate.cli.job.preview import preview

    if where.hosts is not None:
        preview(fitted.told(json=False), None, where.hosts.dealt)
        return
    with where.loader() as loader:
        preview(fitted.to_luns(loader).told(json=False), loader)


def _study(
    words: list[str],
    overwrite: list[str] | None,
    quick: bool,
    blocks: int | None,
    seed: int | None,
    output: Path | None,
    dry_run: bool,
    wait: bool,
    page: bool,
    *,
    json: bool,
) -> None:
    """Run a study. The other options are the study file's to say."""
    if len(words) > 1:
        raise UserError(f"{words[0]} is a study, and {words[1]} goes with workloads", "give the study alone")
    if dry_run:
        verbs.plan(words[0], quick=quick, blocks=blocks, seed=seed, json=json)
    else:
        verbs.run(
            words[0],
            quick=quick,
            blocks=blocks,
            seed=seed,
            overwrite=overwrite,
            output=output,
            wait=wait,
            page=page,
            json=json,
        )


@dataclass(frozen=True, slots=True)
class Keep:
    """What is written besides the screen: the run directory (None: a new one under `runs`) and reports."""

    directory: Path | None = None
    report: bool = True
    vdbench_output: Path | None = None
    fio_json: Path | None = None
    iometer_csv: Path | None = None
    diskspd_xml: Path | None = None
    page: bool = False

    def __post_init__(self) -> None:
        users: dict[Path, str] = {}
        for option, path in self._result_files():
            if path.is_dir():
                raise UserError(f"{option} {path}: this is a folder", "name a file")
            if path in users:
                raise UserError(f"{users[path]} and {option} are both {path}", "name two files")
            users[path] = option

    def _result_files(self) -> list[tuple[str, Path]]:
        """Results in the form of other programs, by their option."""
        asked = {
            "--fio-json": self.fio_json,
            "--iometer-csv": self.iometer_csv,
            "--diskspd-xml": self.diskspd_xml,
        }
        return [(option, path) for option, path in asked.items() if path is not None]

    def agreed(self, overwrite: list[str] | None, *, json: bool) -> list[str] | None:
        """What --overwrite says of volumes, after the consent to replace result files. Raises UserError without it."""
        from linerate.cli.numbers.outfile import consent_to_fill, consent_to_replace

        places = [path for _, path in self._result_files()]
        named = {Path(word) for word in overwrite or ()}
        for path in places:
            consent_to_replace([path], path in named, how=f"add --overwrite {path}", asks=not json)
        if (folder := self.vdbench_output) is not None:
            consent_to_fill(folder, folder in named, how=f"add --overwrite {folder}", asks=not json)
            places.append(folder)
        return [word for word in overwrite if Path(word) not in places] if overwrite else overwrite


def _show_or_load(
    fitted: Fitted,
    asked: Asked,
    keep: Keep,
    where: Where,
    overwrite: list[str] | None,
    *,
    dry_run: bool,
    wait: bool,
    json: bool,
) -> None:
    """Shows what the workload would do, or runs it, alone on this machine."""
    if dry_run:
        _show(fitted, where)
        return
    overwrite = keep.agreed(overwrite, json=json)
    with shared_machine(f"run {fitted.plan.name}", wait=wait), where.loader() as loader:
        _run_plan(fitted.to_luns(loader).told(json=json), asked, keep, where, loader, overwrite, json=json)


def _run_plan(
    plan: RunPlan,
    asked: Asked,
    keep: Keep,
    where: Where,
    loader: Loader,
    overwrite: list[str] | None,
    *,
    json: bool,
) -> None:
    """Runs the plan, and leaves by typer.Exit when the exit code is not 0."""
    from linerate.cli.job.execute import Job, execute
    from linerate.cli.job.overwrite import consent_of
    from linerate.cli.view import open_view

    consent = consent_of(overwrite, json=json)
    consent.check_names((volume.name, volume.url) for step in plan.steps() for volume in step.spec.volumes)
    job = Job(
        plan,
        asked.workload_source(),
        keep.directory or place_of(plan.name),
        consent,
        loader,
        keep.report,
        keep.vdbench_output,
        keep.fio_json,
        keep.iometer_csv,
        keep.diskspd_xml,
        where.virtual_time.watch if where.virtual_time else None,
    )
    with with_page("directory", str(job.directory), wanted=keep.page, json=json):
        code = execute(job, open_view(json=json))
    if code:
        raise typer.Exit(code)
