"""Paths and faults of a study over all blocks: what each layout carried under each workload, what each fault cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from linerate.analysis.paths import FaultOutcome, PathLayout, explain, fault_outcomes, merged_layout
from linerate.errors import UserError
from linerate.report.panels.series import warmup_end_s
from linerate.results import RunDirectory
from linerate.study import StudyDirectory

_Key = tuple[str, str]
"""Case and workload."""


@dataclass(frozen=True, slots=True)
class LayoutPart:
    """One case under one workload: all its runs as one layout, and what it says."""

    case: str
    workload: str
    layout: PathLayout
    said: str


@dataclass(frozen=True, slots=True)
class FaultPart:
    """One fault of a case under one workload in `runs` runs: medians, and the worst of what must not happen.

    Fields are those of `FaultOutcome`, except that `at_s` counts from the end of the warm-up, as the times of the study
    file do; `failover_worst_s` is the longest of all runs, and `failed_over` the number of
    runs in which I/O was requeued at all.
    """

    case: str
    workload: str
    what: str
    runs: int
    at_s: float
    down: tuple[str, ...]
    detected_s: float | None
    failover_s: float | None
    failover_worst_s: float | None
    failed_over: int
    no_path: bool
    slow_ios: int
    response_max_ms: float
    errors: int
    iops_before: float | None
    iops_failed: float | None
    iops_after: float | None
    back_s: float | None
    failback_ios: float | None
    failback_s: float | None


def paths_of(directory: StudyDirectory) -> tuple[tuple[LayoutPart, ...], tuple[FaultPart, ...]]:
    """Paths and faults of the runs that count, in the study's order. Runs that are gone are left out."""
    runs: dict[_Key, list[tuple[RunDirectory, str]]] = {}
    for done in directory.measured.values():
        try:
            run = directory.run(done)
            if run.manifest.steps and _has_paths_or_faults(run):
                runs.setdefault((done.case, done.workload), []).append((run, run.manifest.steps[-1].key))
        except UserError:
            continue
    study = directory.study
    order = [(case.name, workload.name) for case in study.cases for workload in study.workloads]
    layouts = {key: layout for key in order if (layout := merged_layout(runs.get(key, ())))}
    return (
        tuple(_explained(layouts, study.baseline.name)),
        tuple(part for key in order for part in _faults(key, runs.get(key, ()))),
    )


def _has_paths_or_faults(run: RunDirectory) -> bool:
    """Whether a run has paths or faults. Most runs have none, and are not read."""
    step = run.manifest.steps[-1]
    return any(volume.get("paths") for volume in step.spec.get("volumes", ())) or any(
        event.kind == "fault" for event in run.events
    )


def _explained(layouts: Mapping[_Key, PathLayout], baseline: str) -> Iterator[LayoutPart]:
    for (case, workload), layout in layouts.items():
        control = layouts.get((baseline, workload)) if case != baseline else None
        yield LayoutPart(case, workload, layout, explain(layout, control))


def _faults(key: _Key, runs: Sequence[tuple[RunDirectory, str]]) -> Iterator[FaultPart]:
    """The n-th fault of every run is the same one."""
    by_place: dict[tuple[int, str], list[FaultOutcome]] = {}
    for run, step in runs:
        warmup_s = warmup_end_s(run, step)
        for place, outcome in enumerate(fault_outcomes(run, step)):
            timed = replace(outcome, at_s=outcome.at_s - warmup_s)
            by_place.setdefault((place, outcome.what), []).append(timed)
    for (_, what), seen in by_place.items():
        failovers = [one.failover_s for one in seen if one.failover_s is not None]
        yield FaultPart(
            case=key[0],
            workload=key[1],
            what=what,
            runs=len(seen),
            at_s=median(one.at_s for one in seen),
            down=tuple(dict.fromkeys(path for one in seen for path in one.down)),
            detected_s=_middle(one.detected_s for one in seen),
            failover_s=_middle(failovers),
            failover_worst_s=max(failovers, default=None),
            failed_over=len(failovers),
            no_path=any(one.no_path for one in seen),
            slow_ios=sum(one.slow_ios for one in seen),
            response_max_ms=max(one.response_max_ms for one in seen),
            errors=sum(one.errors for one in seen),
            iops_before=_middle(one.iops_before for one in seen),
            iops_failed=_middle(one.iops_failed for one in seen),
            iops_after=_middle(one.iops_after for one in seen),
            back_s=_middle(one.back_s for one in seen),
            failback_ios=_middle(one.failback_ios for one in seen),
            failback_s=_middle(one.failback_s for one in seen),
        )


def _middle(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
