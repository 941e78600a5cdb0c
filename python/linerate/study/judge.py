"""The verdicts of a study. `verdicts.json` follows from what the study directory holds, and can be made again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from linerate.analysis.verdict import (
    Attribution,
    ClaimVerdict,
    Judgement,
    Observation,
    attribute,
    judge_claims,
    shipped_claims,
)
from linerate.errors import UserError, quote
from linerate.results.files import write_atomically
from linerate.study.directory import VERDICTS, VERDICTS_JSON, StudyDirectory, Verdicts
from linerate.study.judgement import judgement_of
from linerate.study.repeat import missing, repeated
from linerate.study.scaling import claim_verdicts


def refuse_choosing(directory: StudyDirectory) -> None:
    """Raises UserError for a stage of `linerate tune` whose runs only choose settings."""
    if directory.search is not None:
        raise UserError(
            f"{directory.path} is a stage of `linerate tune`: its runs choose settings, so verdicts on them would be "
            "too good",
            f"see the effects and the confirmed result with: linerate report {quote(directory.search)}",
        )


def judged(directory: StudyDirectory) -> Verdicts:
    """What the measured steps allow to say. Raises UserError when there are none, or they only choose settings."""
    refuse_choosing(directory)
    study = directory.study
    observations = directory.observations()
    if not observations:
        raise UserError(
            f"{directory.path}: nothing has been measured yet",
            f"linerate study resume {quote(directory.path)}",
        )
    judgement = judgement_of(directory, study.baseline.name)
    attributions = attribute(observations)
    not_applicable: dict[str, str] = {}
    for (_, case), reason in directory.not_applicable.items():
        if not any(one.case == case for one in observations):
            not_applicable[case] = reason
    return Verdicts(
        judgement=judgement,
        attributions=attributions,
        claims=tuple(_claims(directory, observations, judgement, attributions, not_applicable)),
        repeated=repeated(directory, judgement),
        not_applicable=not_applicable,
        void=void_runs(directory),
        missing=missing_runs(directory),
    )


def void_runs(directory: StudyDirectory) -> tuple[str, ...]:
    """The runs that do not count, each with the reason."""
    return tuple(f"{step.directory}: {step.reason}" for step in directory.steps if step.state == "void")


def missing_runs(directory: StudyDirectory) -> tuple[str, ...]:
    """The runs that the study wants and has not, each with the reason."""
    return tuple(f"{key}: {why}" for key, why in missing(directory).items())


def _claims(
    directory: StudyDirectory,
    observations: Sequence[Observation],
    judgement: Judgement,
    attributions: Sequence[Attribution],
    not_applicable: Mapping[str, str],
) -> Iterator[ClaimVerdict]:
    """The verdicts on the study's claims, each from the comparison that it speaks of."""
    known = shipped_claims()
    if directory.study.scale is not None:
        yield from claim_verdicts(directory, known, not_applicable)
        return
    virtual = any(san.topology is not None for san in directory.study.sans)
    tests: dict[tuple[str, tuple[str, ...]], dict[str, list[str]]] = {}
    for test in directory.study.claims:
        tests.setdefault((test.against, test.workloads), {}).setdefault(test.claim, []).append(test.case)
    for (against, workloads), tested in tests.items():
        if against == judgement.baseline:
            theirs = judgement
        elif any(one.case == against for one in observations):
            theirs = judgement_of(directory, against)
        else:
            theirs = replace(judgement, baseline=against, effects=())
        limits = attributions
        if workloads:
            effects = tuple(effect for effect in theirs.effects if effect.workload in workloads)
            theirs = replace(theirs, effects=effects)
            limits = [one for one in attributions if one.workload in workloads]
        yield from judge_claims(known, tested, theirs, limits, not_applicable, virtual=virtual)


def write_verdicts(directory: StudyDirectory) -> Verdicts:
    """Judges, and keeps the verdicts in the study directory."""
    verdicts = judged(directory)
    write_atomically(directory.path / VERDICTS, VERDICTS_JSON.dump_json(verdicts, indent=1) + b"\n")
    return verdicts
