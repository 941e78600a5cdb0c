"""One run of a study: places a workload's volumes, carries it out, draws its figures. Shared by all laboratories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from linerate.analysis.arrays import array_figures
from linerate.analysis.faults import fault_figures
from linerate.analysis.figures import LINE_RATES
from linerate.analysis.summary import StepSummary, summarise_step
from linerate.analysis.verdict import figures_of
from linerate.errors import UserError
from linerate.lab.lan import lan_mib_s
from linerate.results import RunDirectory, WorkloadSource
from linerate.run import Beside, Counters, Execution, Loader, RunEvent, Watcher, carry_out
from linerate.scale.laws import demands_s
from linerate.study.laboratory.backup import carry_out_backup, measured_of
from linerate.study.laboratory.base import Measured
from linerate.study.laboratory.settings import loaded
from linerate.study.model import Settings, Workload
from linerate.volumes import Consent
from linerate.workload import PlannedRun, RunPlan, RunSpec, SessionSpec, StreamSpec, VolumeSpec
from linerate.workload.plan import PlanStep
from linerate.workload.spec import OpenArrival, PathSpec, SizeMix

IDLE_IOPS = 20.0
IDLE_VOLUME_BYTES = 1 << 20
STORAGE_FIGURES = ("iops", "mib_s", "response_ms", "p50_ms", "p95_ms", "p99_ms", "cycles_per_byte")


@dataclass(frozen=True, slots=True)
class Placed:
    """A volume where the load finds it: its URL and, on a virtual SAN, the network namespace of its host.

    `paths` are those that it has where it has several; else the URL is its only one, from `source_address`.
    """

    url: str
    netns: str | None = None
    source_address: str | None = None
    iscsi: SessionSpec = field(default_factory=SessionSpec)
    """What its URL asks of the session."""
    access: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the volume: users and secrets."""
    paths: tuple[PathSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class LaboratoryRun:
    """What is run and what is watched meanwhile."""

    workload: Workload
    settings: Settings
    volumes: Sequence[Placed]
    directory: Path
    record: Mapping[str, Any]
    consent: Consent
    """What it may overwrite."""
    loader: Loader
    """Starts the load: in this process, or on the hosts of a cluster."""
    counters: Counters | None = None
    line_rates: Mapping[str, float] | None = None
    """Port -> bits per second, to tell how full a line was."""
    beside: Beside | None = None
    """What happens around it."""
    arrays: Watcher | None = None
    """Watches the disks of its arrays."""


def measure(run: LaboratoryRun) -> Measured:
    """Carries the run out. Raises the LinerateError that made it fail, or KeyboardInterrupt."""
    workload = run.workload
    spec = idle(workload) if workload.spec is None else placed(workload, run)
    if workload.backup is not None:
        backed_up = carry_out_backup(
            workload.backup,
            spec,
            run.settings,
            run.consent,
            run.loader.look,
            run.directory,
            _recorded(run),
            run.counters,
        )
        return measured_of(backed_up, _figures(run, backed_up.run, -1)[1])
    plan = RunPlan(workload.name, [PlanStep(PlannedRun(spec=spec, name=workload.name, label=workload.name))])
    execution = Execution(
        plan,
        WorkloadSource(name=workload.name, format="study"),
        run.directory,
        run.consent,
        counters=run.counters,
        san=_recorded(run),
        loader=run.loader,
        beside=run.beside,
        arrays=run.arrays,
    )
    outcome = carry_out(execution, _unheard)
    if outcome.error is not None:
        raise outcome.error
    if outcome.state == "interrupted":
        raise KeyboardInterrupt
    step = outcome.run.manifest.steps[0]
    summary, figures = _figures(run, outcome.run, 0)
    if workload.spec is None:
        figures = {name: value for name, value in figures.items() if name not in STORAGE_FIGURES}
    figures |= fault_figures(outcome.run, step.key) | array_figures(outcome.run, step.key)
    validity = outcome.run.manifest.validity
    stamp = validity.stamp if validity else None
    grave = [one.reason for one in validity.findings if one.severity == "void"] if validity else []
    rates = (
        outcome.run.measured_rows(step.key).group_by("interval", maintain_order=True).agg(pl.col("ios").sum())
    )
    demands = {} if summary.paced else demands_s(outcome.run, summary)
    return Measured(figures, stamp, "; ".join(grave), rates["ios"].to_list(), spec.interval_s, demands)


def _figures(run: LaboratoryRun, ran: RunDirectory, number: int) -> tuple[StepSummary, dict[str, float]]:
    """Summary and figures of a step of the run directory, by its place among the steps."""
    step = ran.manifest.steps[number]
    summary = summarise_step(ran, step)
    return summary, figures_of(summary, step.counters, run.line_rates, lan_mib_s(step.counters))


def _recorded(run: LaboratoryRun) -> dict[str, Any]:
    """What the run directory tells of its SAN: the record, and the line rates that the run's links had."""
    rates = {LINE_RATES: dict(run.line_rates)} if run.line_rates else {}
    return {**run.record, **rates}


def placed(workload: Workload, run: LaboratoryRun) -> RunSpec:
    """The workload's run on the volumes of the SAN, in their order, as the settings want it.

    Raises UserError when the SAN has fewer volumes than the workload names.
    """
    spec = workload.spec
    assert spec is not None
    if len(run.volumes) < len(spec.volumes):
        raise UserError(
            f"{workload.name} needs {len(spec.volumes)} volumes and {workload.san} has {len(run.volumes)}",
            "give the arrays of the topology more volumes, or take a workload with fewer",
        )
    volumes = tuple(
        volume.model_copy(
            update={
                "url": place.url,
                "netns": place.netns,
                **place.access,
                "iscsi": volume.iscsi.merged(place.iscsi).model_copy(
                    update={"source_address": place.source_address}
                ),
                "paths": place.paths,
            }
        )
        for volume, place in zip(spec.volumes, run.volumes, strict=False)
    )
    return loaded(spec.model_copy(update={"volumes": volumes}), run.settings)


def idle(workload: Workload) -> RunSpec:
    """A run without storage traffic, which keeps time and counts CPU while LAN traffic has the network to itself."""
    return RunSpec(
        name=workload.name,
        warmup_s=workload.warmup_s,
        elapsed_s=workload.elapsed_s,
        interval_s=min(1.0, workload.elapsed_s / 4),
        volumes=(VolumeSpec(name="none", url=f"null:{IDLE_VOLUME_BYTES}"),),
        streams=(StreamSpec(name="idle", volumes=("none",), sizes=SizeMix.one(512)),),
        arrival=OpenArrival(process="deterministic", rate_iops=IDLE_IOPS),
    )


def _unheard(event: RunEvent) -> None:
    """A study shows its steps, not their intervals; those are in the run directory."""
