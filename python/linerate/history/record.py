"""Reads one run or study directory for a history."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from linerate.analysis import StepSummary, summarise
from linerate.analysis.compare import METRICS
from linerate.analysis.difference import host_facts, step_facts
from linerate.history.identity import digest, step_identity, workload_of
from linerate.history.model import Recorded, WorkloadResult
from linerate.results import NotARunError, RunDirectory, files

if TYPE_CHECKING:
    from linerate.study import StudyDirectory
    from linerate.study.journal import StepDone

STUDY_FILE = "study.json"
_RUN_FILES = (files.MANIFEST, files.INTERVALS, files.USAGE, files.LATENCY, files.SPOOL)
_STUDY_FILES = (STUDY_FILE, "journal.jsonl")
_NOT_COUNTED = {"host.load_average_1m"}


def signature_of(directory: Path, *, study: bool) -> str:
    """Sizes and times of the files that a record is made from."""
    parts = []
    for name in _STUDY_FILES if study else _RUN_FILES:
        try:
            stat = (directory / name).stat()
        except FileNotFoundError:
            continue
        parts.append(f"{name}:{stat.st_size}:{stat.st_mtime_ns}")
    return " ".join(parts)


def read_run(directory: Path, path: str) -> Recorded:
    """The steps of a run that ended well. Raises what the readers of its files raise."""
    signature = signature_of(directory, study=False)
    run = RunDirectory.open(directory)
    if run.state != "complete":
        final = (
            run.manifest.state != "running"
        )  # of a run whose process died, the files do not tell the state
        return Recorded(path, signature if final else "", left_out=f"the run is {run.state}")
    if run.manifest.validity is not None and run.manifest.validity.stamp == "void":
        return Recorded(path, signature, left_out="the run is void")
    if damage := run.damage():
        return Recorded(path, signature, left_out="; ".join(damage))
    host = dict(host_facts(run))
    results = tuple(
        WorkloadResult(
            identity=step_identity(record),
            title=record.key,
            source=run.manifest.workload.name,
            at=record.started_at,
            values=_values(summary),
            facts=_facts([*host.items(), *step_facts(record)]),
        )
        for record, summary in zip(run.manifest.steps, summarise(run), strict=True)
        if record.state == "complete" and summary.total.ios
    )
    return Recorded(path, signature, results, "" if results else "no step of the run has a result")


def read_study(directory: Path, path: str) -> Recorded:
    """The workloads and cases of a study that came to its end. Raises what the readers of its files raise."""
    from linerate.study import StudyDirectory

    signature = signature_of(directory, study=True)
    study = StudyDirectory.open(directory)
    if study.state not in ("complete", "incomplete"):
        return Recorded(
            path, "" if study.state == "running" else signature, left_out=f"the study is {study.state}"
        )
    groups: dict[tuple[str, str], list[StepDone]] = {}
    for step in study.measured.values():
        groups.setdefault((step.workload, step.case), []).append(step)
    results = tuple(_study_result(study, workload, case, steps) for (workload, case), steps in groups.items())
    return Recorded(path, signature, results, "" if results else "no run of the study counts")


def _study_result(
    study: StudyDirectory, workload: str, case: str, steps: Iterable[StepDone]
) -> WorkloadResult:
    """The median over the blocks, which one disturbed run does not move far."""
    done = list(steps)
    asked = study.study.workload(workload)
    san = study.study.san(asked.san)
    names = dict.fromkeys(name for step in done for name in step.values)
    load = {
        "workload": workload_of(asked.spec.model_dump(mode="json")) if asked.spec else None,
        "times_s": [asked.warmup_s, asked.elapsed_s],
        "lan": asked.lan,
        "san": san.model_dump(mode="json", exclude={"name"}),
        "settings": dict(study.study.settings(asked.san, case)),
    }
    return WorkloadResult(
        identity=digest({"study": study.study.name, "of": [workload, case], "load": load}),
        title=f"{study.study.name}: {workload}, {case}",
        source=study.record.source_name,
        at=study.record.started_at,
        values={
            name: statistics.median(step.values[name] for step in done if name in step.values)
            for name in names
        },
        facts=_facts(_study_facts(study, done)),
    )


def _study_facts(study: StudyDirectory, steps: Iterable[StepDone]) -> Iterator[tuple[str, str]]:
    """Of the first run that is still there: the runs of a case are set alike. Without any run: versions only."""
    for name, version in study.record.versions.items():
        yield f"version.{name}", version
    for step in steps:
        try:
            run = study.run(step)
        except NotARunError:
            continue
        yield from host_facts(run)
        for record in run.manifest.steps:
            yield from step_facts(record)
            settings = record.san.get("settings")
            if isinstance(settings, Mapping):
                yield from ((f"san.{name}", str(value)) for name, value in settings.items())
        return


def _values(summary: StepSummary) -> dict[str, float]:
    return {metric.name: value for metric, read in METRICS if (value := read(summary)) is not None}


def _facts(items: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Key -> value; volumes that differ are folded into one value."""
    found: dict[str, dict[str, None]] = {}
    for key, value in items:
        if key not in _NOT_COUNTED:
            found.setdefault(key, {})[value] = None
    return {key: " | ".join(sorted(values)) for key, values in found.items()}
