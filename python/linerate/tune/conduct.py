"""Conducts a search: every stage is a study with a directory, a plan and a journal of its own, conducted as any other.

A point is a case of that study. To resume is to walk the stages again: those whose studies are complete are read, and
the first one that is not goes on.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from linerate.analysis.metric import find_metric
from linerate.analysis.verdict import Effect
from linerate.analysis.verdict.blocks import to_scale
from linerate.errors import HostError, UserError, quote
from linerate.study import Case, Repeat, Study, StudyDirectory
from linerate.study.conduct import Tell, conduct
from linerate.study.judgement import judgement_of
from linerate.study.laboratory import Laboratory
from linerate.tune.effects import TuneRun
from linerate.tune.factors import Point, Space
from linerate.tune.record import TuneRecord
from linerate.tune.stages import Procedure, TuneStage
from linerate.tune.words import settings_text

BASELINE, TUNED = "baseline", "tuned"


@dataclass(frozen=True, slots=True)
class Conductor:
    """What a search needs of its caller: a laboratory for a study in a directory, and who hears what happens.

    `follow` is told the events of a study as long as its context is open; `tell` each stage before it begins, with the
    runs of those before it.
    """

    laboratory: Callable[[Study, Path], Laboratory]
    follow: Callable[[StudyDirectory], AbstractContextManager[Tell]]
    tell: Callable[[TuneStage, Mapping[str, list[TuneRun]]], None]


@dataclass(frozen=True, slots=True)
class TuneOutcome:
    """A search at its end. `confirmed` is None where nothing was to be confirmed."""

    procedure: Procedure
    measured: Mapping[str, list[TuneRun]]
    confirmation: StudyDirectory | None
    confirmed: Effect | None
    skipped: Mapping[str, str]
    """Settings of a point that could not be had -> why."""


def procedure_of(record: TuneRecord) -> Procedure:
    """The stages of a search. Raises UserError for settings that no design fits."""
    (workload,) = record.study.workloads
    return Procedure(record.space, record.effort, find_metric(workload.metric).better)


def search(directory: Path, record: TuneRecord, by: Conductor) -> TuneOutcome:
    """Measures what is not measured yet, to the end.

    Raises the LinerateError that ended a stage, or KeyboardInterrupt; the same call goes on from there.
    """

    def conducted(place: Path, stage: TuneStage, measured: Mapping[str, list[TuneRun]]) -> StudyDirectory:
        by.tell(stage, measured)
        return _conducted(place, stage_study(record, stage), by)

    return _outcome(directory, record, conducted)


def ended_search(directory: Path, record: TuneRecord) -> TuneOutcome:
    """What a search found that came to its end; nothing is measured. Raises UserError for one that did not."""

    def opened(place: Path, stage: TuneStage, _: Mapping[str, list[TuneRun]]) -> StudyDirectory:
        if place.is_dir() and (found := StudyDirectory.open(place)).is_complete:
            return found
        raise UserError(
            f"{directory} has not ended: its {stage.name} is not complete",
            f"go on with: linerate tune {quote(directory)}",
        )

    return _outcome(directory, record, opened)


def _outcome(
    directory: Path,
    record: TuneRecord,
    finished: Callable[[Path, TuneStage, Mapping[str, list[TuneRun]]], StudyDirectory],
) -> TuneOutcome:
    """Walks the stages; `finished` gives the complete study of each."""
    procedure = procedure_of(record)
    measured: dict[str, list[TuneRun]] = {}
    skipped: dict[str, str] = {}
    done: StudyDirectory | None = None
    while (stage := procedure.next(measured)) is not None:
        done = finished(directory / f"{len(measured) + 1}-{stage.name}", stage, measured)
        points = dict(_names(record.space, stage))
        _refuse_factors_that_cannot_be_had(done, record.space, points)
        measured[stage.name] = list(_runs(done, stage, points))
        for (_, case), reason in done.not_applicable.items():
            skipped[settings_text(record.space.changed(points[case]))] = reason
    if done is None or "confirmation" not in measured:
        return TuneOutcome(procedure, measured, None, None, skipped)
    effects = list(judgement_of(done, BASELINE).primary())
    if not effects:
        raise HostError(
            f"{done.path}: no pair of its runs counts",
            f"see why with: linerate study status {quote(done.path)}",
        )
    return TuneOutcome(procedure, measured, done, effects[0], skipped)


def _refuse_factors_that_cannot_be_had(
    done: StudyDirectory, space: Space, points: Mapping[str, Point]
) -> None:
    """Raises UserError for a factor whose values were not set: no run tells of it."""
    skipped = {case: reason for (_, case), reason in done.not_applicable.items()}
    lacking = {name: why for name, why in done.lacking.items() if name in {one.name for one in space.factors}}
    for index, factor in enumerate(space.factors):
        changing = [case for case, point in points.items() if point[index]]
        if changing and all(case in skipped for case in changing):
            told = (part for reason in skipped.values() for part in reason.split("; "))
            own = next((part for part in told if part.startswith(f"{factor.name}: ")), None)
            if own is not None:
                lacking[factor.name] = own.removeprefix(f"{factor.name}: ")
    for name, why in lacking.items():
        raise UserError(
            f"{name} cannot be set here: {why}", f"start anew without {name}, or where it can be set"
        )


def stage_study(record: TuneRecord, stage: TuneStage) -> Study:
    """A stage as a study: each point is a case, the first one the baseline."""
    base = record.study
    (workload,) = base.workloads
    common = base.baseline.settings
    first = {**common, **record.space.settings(stage.points[0])}
    cases = []
    for name, point in _names(record.space, stage):
        settings = {**common, **record.space.settings(point)}
        changed = tuple(one for one, value in settings.items() if value != first.get(one))
        title = settings_text(record.space.changed(point)) or "baseline"
        cases.append(
            Case(name=name, title=title, settings=settings, changed=changed, workloads=(workload.name,))
        )
    return base.model_copy(
        update={
            "name": f"{base.name}-{stage.name}",
            "title": f"{base.title} ({stage.name})",
            "margin": record.effort.margin,
            "seed": random.Random(f"{base.seed}/{stage.name}").getrandbits(32),
            "cases": tuple(cases),
            "claims": (),
            "repeat": Repeat(
                blocks_min=stage.blocks,
                blocks_max=stage.blocks,
                settle_s=base.repeat.settle_s,
                baselines=stage.baselines,
            ),
        }
    )


def _names(space: Space, stage: TuneStage) -> Iterator[tuple[str, Point]]:
    """The points of a stage with the names of their cases, which are also those of run directories: short."""
    for number, point in enumerate(stage.points):
        if point == space.baseline:
            yield BASELINE, point
        else:
            yield (TUNED if stage.kind == "confirmation" else f"point {number:02d}"), point


def _conducted(place: Path, study: Study, by: Conductor) -> StudyDirectory:
    found = StudyDirectory.open(place) if place.is_dir() else StudyDirectory.create(place, study)
    if not found.is_complete:
        with by.follow(found) as tell:
            found = conduct(place, by.laboratory(study, place), tell)
    if not found.is_complete:
        raise HostError(f"{place}: {found.reason}", f"go on with: linerate tune {quote(place.parent)}")
    return found


def _runs(directory: StudyDirectory, stage: TuneStage, points: Mapping[str, Point]) -> Iterator[TuneRun]:
    metric = find_metric(directory.study.workloads[0].metric)
    for seen in directory.observations():
        value = to_scale(metric, seen.values[metric.name]) if metric.name in seen.values else None
        if value is not None:
            yield TuneRun(stage.name, seen.block, seen.position or 0, points[seen.case], value)
