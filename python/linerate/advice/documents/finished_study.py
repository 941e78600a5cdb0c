"""Facts of a study directory: its SANs with the baseline's settings, its loads, its faults, and what it found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from linerate.advice.documents.topology import read_topology
from linerate.advice.facts import AuditSubject, FactValue, SanFactSheet, joined
from linerate.settings import FAULTS
from linerate.study import StudyDirectory
from linerate.study.laboratory.settings import changed_topology

_ERRORS = "io_errors"


@dataclass(frozen=True, slots=True)
class StudyFacts:
    """The facts of a study, and by published finding what it measured."""

    sheet: SanFactSheet
    evidence: dict[str, str]


def read_study(path: Path, now: datetime | None = None) -> StudyFacts:
    """The facts of a study directory. Raises UserError when it is none, or not finished."""
    directory = StudyDirectory.open(path)
    study = directory.study
    several = len(study.sans) > 1
    sheets = []
    for san in study.sans:
        if san.topology is not None:
            settings = study.settings(san.name, study.baseline.name)
            topology = changed_topology(san.topology, settings)
            sheets.append(read_topology(topology, settings, f"{san.name}/" if several else ""))
    about = [_of_faults(directory, now or datetime.now(UTC)), *_of_workloads(directory)]
    notes = (
        () if directory.is_complete else (f"{path}: the study is not finished; what it found is left out",)
    )
    sheets.append(SanFactSheet(tuple(about), notes=notes))
    return StudyFacts(joined(sheets), _evidence(directory) if directory.is_complete else {})


def _of_faults(directory: StudyDirectory, now: datetime) -> AuditSubject:
    cases = {case.name for case in directory.study.cases if case.settings.get(FAULTS)}
    steps = [step for step in directory.measured.values() if step.case in cases]
    facts: dict[str, FactValue] = {"faults_tested": bool(steps)}
    unknown: dict[str, str] = {}
    if steps:
        facts["fault_test_age_days"] = max(0, (now - max(step.at for step in steps)).days)
        if all(_ERRORS in step.values for step in steps):
            facts["fault_errors"] = int(sum(step.values[_ERRORS] for step in steps))
        else:
            unknown["fault_errors"] = "a run with faults has no count of errors"
    return AuditSubject("study", directory.study.name, "study", facts, unknown)


def _of_workloads(directory: StudyDirectory) -> Iterator[AuditSubject]:
    for workload in directory.study.workloads:
        if workload.spec is None:
            continue
        depths = sorted({volume.outstanding for volume in workload.spec.volumes})
        for depth in depths:
            name = workload.name if len(depths) == 1 else f"{workload.name} ({depth})"
            yield AuditSubject("workload", name, "study", {"outstanding": depth})


def _evidence(directory: StudyDirectory) -> dict[str, str]:
    """Finding -> what this study measured and whether that agrees."""
    verdicts = directory.verdicts
    if verdicts is None:
        return {}
    return {
        one.claim: f"{one.measured} ({one.verdict})"
        for one in verdicts.claims
        if one.verdict not in ("not tested", "needs hardware") and one.measured
    }
