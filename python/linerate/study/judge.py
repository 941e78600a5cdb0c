"""The verdicts of a study. `verdicts.json` follows from what the study directory holds, and can be made again."""

from __future__ import annotations

from linerate.analysis.verdict import judge
from linerate.errors import UserError
from linerate.results.files import write_atomically
from linerate.study.directory import VERDICTS, VERDICTS_JSON, StudyDirectory, Verdicts
from linerate.study.repeat import repeated


def judged(directory: StudyDirectory) -> Verdicts:
    """What the measured steps allow to say. Raises UserError when there are none."""
    study = directory.study
    observations = directory.observations()
    if not observations:
        raise UserError(
            f"{directory.path}: nothing has been measured yet", f"linerate study resume {directory.path}"
        )
    judgement = judge(
        observations,
        study.baseline.name,
        {workload.name: workload.metric for workload in study.workloads},
        margin=study.margin,
    )
    not_applicable: dict[str, str] = {}
    for (_, case), reason in directory.not_applicable.items():
        if not any(one.case == case for one in observations):
            not_applicable[case] = reason
    return Verdicts(
        judgement=judgement,
        attributions=(),
        claims=(),
        repeated=repeated(study, directory.steps),
        not_applicable=not_applicable,
        void=tuple(f"{step.directory}: {step.reason}" for step in directory.steps if step.state == "void"),
    )


def write_verdicts(directory: StudyDirectory) -> Verdicts:
    """Judges, and keeps the verdicts in the study directory."""
    verdicts = judged(directory)
    write_atomically(directory.path / VERDICTS, VERDICTS_JSON.dump_json(verdicts, indent=1) + b"\n")
    return verdicts
