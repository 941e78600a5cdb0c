"""Gathers what there is to tell about a study from its directory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import median

from linerate.analysis.verdict import Judgement, Observation, find_metric
from linerate.errors import UserError, quote
from linerate.report.study import words
from linerate.report.study.model import CasePart, SettingValue, StudyPage, WorkloadPart
from linerate.report.study.paths import paths_of
from linerate.report.study.recommend import recommend, title_of, written
from linerate.results import Finding, StepRecord, Validity
from linerate.results.manifest import Stamp
from linerate.san import picture
from linerate.study import Case, San, Study, StudyDirectory
from linerate.study.directory import Verdicts
from linerate.study.journal import StepDone
from linerate.study.judge import judged
from linerate.study.laboratory.settings import changed_topology
from linerate.study.model import Scale
from linerate.study.scaling import searches, sentences

_ALPHA = 0.05
_COMPUTED = (
    "computed in the modelled time of its disks. Each run draws I/Os of its own, and that chance is all that blocks "
    "differ by: loads without any, such as sequential ones, repeat to the bit, and intervals say how sure the model's "
    "figure is, not how close the model is to a disk."
)
_XMLNS = ' xmlns="http://www.w3.org/2000/svg"'  # not needed inside of a page


@dataclass(frozen=True, slots=True)
class _Run:
    """A step whose figures count, with what its run directory says about it."""

    done: StepDone
    record: StepRecord
    findings: tuple[Finding, ...]


def study_page(directory: StudyDirectory) -> StudyPage:
    """The view model of a study as far as it has come; run directories that are gone are left out."""
    study = directory.study
    # Verdicts that were asked for on the way know nothing of what has been measured since.
    verdicts = (directory.verdicts if directory.is_complete else None) or _judged(directory)
    judgement = (
        verdicts.judgement if verdicts else Judgement(study.baseline.name, study.margin, _ALPHA, (), ())
    )
    runs = list(_runs(directory))
    observations = directory.observations()
    layouts, faults = paths_of(directory)
    workloads = tuple(
        WorkloadPart(workload.name, workload.title, find_metric(workload.metric))
        for workload in study.workloads
    )
    return StudyPage(
        name=study.name,
        title=study.title,
        state=directory.state,
        reason=directory.reason,
        validity=_validity(directory, runs, judgement),
        void=_void(directory),
        judgement=judgement,
        cases=tuple(_case(directory, case, runs) for case in study.cases),
        workloads=workloads,
        observations=observations,
        attributions=verdicts.attributions if verdicts else (),
        claims=verdicts.claims if verdicts else (),
        recommendations=recommend(study.cases, observations, judgement, workloads),
        skipped=tuple(_skipped(directory)),
        description=study.description,
        certainty=_certainty(study, judgement),
        started_at=directory.record.started_at,
        ended_at=directory.entries[-1].at if directory.entries else None,
        topologies=tuple(_topologies(directory, observations)),
        laboratory=_laboratory(directory, observations),
        method=_method(study, verdicts),
        environment=_environment(directory),
        text=directory.record.source,
        layouts=layouts,
        faults=faults,
        searches=searches(directory),
        carries=tuple(sentences(directory, judgement)),
        place=str(directory.path),
        blocks_planned=study.repeat.blocks_max,
    )


def _judged(directory: StudyDirectory) -> Verdicts | None:
    """The verdicts of a study that is not complete, as far as it has come."""
    try:
        return judged(directory)
    except UserError:
        return None


def _runs(directory: StudyDirectory) -> Iterator[_Run]:
    backups = {workload.name for workload in directory.study.workloads if workload.backup is not None}
    for done in directory.measured.values():
        try:
            manifest = directory.run(done).manifest
        except UserError:
            continue
        if manifest.steps:
            last = manifest.steps[-1]
            found = manifest.validity.findings if manifest.validity else ()
            if done.workload in backups:  # the phases before the last one are no doubt about its figures
                found = tuple(one for one in found if one.step in ("", last.key))
            yield _Run(done, last, found)


def _void(directory: StudyDirectory) -> frozenset[tuple[str, str]]:
    counted = {(step.case, step.workload) for step in directory.measured.values()}
    void = {(step.case, step.workload) for step in directory.steps if step.state == "void"}
    return frozenset(void - counted)


def _validity(directory: StudyDirectory, runs: list[_Run], judgement: Judgement) -> Validity:
    """The doubts of every run that counts and of the judgement; what was not counted; how the study ended."""
    findings = [finding.model_copy(update={"step": run.done.key}) for run in runs for finding in run.findings]
    findings += [
        Finding(rule="judgement", severity="caution", reason=warning) for warning in judgement.warnings
    ]
    findings += [Finding(rule="judgement", severity="note", reason=note) for note in judgement.notes]
    for step in directory.steps:
        if step.state != "complete":
            reason = f"a run was not counted: {step.reason or step.state}"
            findings.append(Finding(rule="not-counted", severity="note", reason=reason, step=step.key))
    stamp: Stamp = "valid"
    if not judgement.effects:
        stamp = "void"
        findings.insert(0, _no_verdicts(directory))
    elif directory.state != "complete" or any(finding.severity != "note" for finding in findings):
        stamp = "caution"
    return Validity(stamp=stamp, findings=tuple(findings))


def _no_verdicts(directory: StudyDirectory) -> Finding:
    reason = "nothing could be judged: no block holds the baseline and a case"
    advice = f"linerate study resume {quote(directory.path)}"
    if directory.study.scale is not None:
        reason = "nothing could be compared: the largest load of the baseline or of each case is not known"
        if directory.is_complete:
            advice = "a longer elapsed time, more repeats or other loads in a new study"
    return Finding(rule="no-verdicts", severity="void", reason=reason, advice=advice)


def _case(directory: StudyDirectory, case: Case, runs: list[_Run]) -> CasePart:
    of_case = [run for run in runs if run.done.case == case.name]
    read_back = of_case[-1].record.san.get("settings", {}) if of_case else {}
    shown = case.changed or tuple(case.settings)
    sans = {directory.study.workload(name).san for name in case.workloads}
    reasons = {san: reason for (san, name), reason in directory.not_applicable.items() if name == case.name}
    return CasePart(
        name=case.name,
        title=case.title,
        settings=tuple(
            SettingValue(
                title_of(name), written(name, case.settings[name]), written(name, read_back.get(name))
            )
            for name in shown
        ),
        not_applicable="; ".join(dict.fromkeys(reasons.values())) if sans <= set(reasons) else "",
        source=case.source,
    )


def _skipped(directory: StudyDirectory) -> Iterator[tuple[str, str]]:
    several = len(directory.study.sans) > 1
    for (san, name), reason in directory.not_applicable.items():
        title = directory.study.case(name).title
        yield (f"{title}, on {san}" if several else title), reason


def _certainty(study: Study, judgement: Judgement) -> str:
    """What a shortened study gives up, in the figures of its own noise."""
    if not study.quick:
        return ""
    found = [
        f"{study.workload(floor.workload).title} {words.detectable(floor.detectable)}"
        for floor in judgement.noise_floor
        if floor.detectable is not None
        and floor.scale == "ratio"
        and floor.metric == study.workload(floor.workload).metric
    ]
    so = (
        f" The smallest changes that one comparison shows in 80 of 100 studies: {', '.join(found)}."
        if found
        else ""
    )
    return f"Quick: shorter runs and fewer blocks than the study asks for. Small effects stay undecided.{so}"


def _topologies(directory: StudyDirectory, observations: Sequence[Observation]) -> Iterator[tuple[str, str]]:
    for san in directory.study.sans:
        if san.topology is not None:
            fabric = directory.san_facts.get(san.name, {}).get("fabric")
            caption = f"{san.name}, carried by the {fabric} fabric" if fabric else san.name
            if san.clock == "virtual":
                caption = f"{san.name}, of which only the disks of the array are computed: no line or host has a part"
            # As the baseline found it, which is what the shares of the lines are of.
            settings = directory.study.settings(san.name, directory.study.baseline.name)
            topology = changed_topology(san.topology, settings)
            drawn = picture(topology, _utilisation(directory.study, san, observations))
            yield caption, drawn.replace(_XMLNS, "")


def _utilisation(study: Study, san: San, observations: Sequence[Observation]) -> dict[str, float]:
    """Link -> share of its line that the baseline used, in the busier direction, under the busiest workload."""
    used: dict[str, float] = {}
    for workload in study.workloads:
        if workload.san != san.name:
            continue
        runs: dict[str, list[float]] = {}
        for seen in observations:
            if (seen.case, seen.workload) == (study.baseline.name, workload.name):
                for figure, value in seen.values.items():
                    if figure.startswith("link.") and figure.endswith(("sent_percent", "received_percent")):
                        runs.setdefault(figure, []).append(value)
        for figure, values in runs.items():
            name = figure.removeprefix("link.").rpartition(".")[0]
            used[name] = max(used.get(name, 0.0), median(values) / 100)
    return used


def _laboratory(
    directory: StudyDirectory, observations: Sequence[Observation]
) -> tuple[tuple[str, str], ...]:
    clocks = ["virtual"] if any(san.clock == "virtual" for san in directory.study.sans) else []
    fabrics = [str(facts["fabric"]) for facts in directory.san_facts.values() if facts.get("fabric")]
    lags_ms = [seen.values["fabric_lag_ms"] for seen in observations if "fabric_lag_ms" in seen.values]
    shown = [("fabric", ", ".join(dict.fromkeys(fabrics)))] if fabrics else []
    shown += [("clock", clock) for clock in clocks]
    return (*shown, *([("largest lag", f"{max(lags_ms):.2f} ms")] if lags_ms else []))


def _method(study: Study, verdicts: Verdicts | None) -> tuple[tuple[str, str], ...]:
    repeat = study.repeat
    if study.scale is not None:
        return _search_method(study)
    counts = dict.fromkeys((repeat.blocks_min, repeat.blocks_max))
    again = "twice, which shows the noise floor" if repeat.baselines == 2 else "once"
    rows = [
        ("order", f"each block holds every case once and the baseline {again}; shuffled, seed {study.seed}"),
        (
            "repeats",
            f"{' to '.join(map(str, counts))} blocks: until the comparison of a case is decided",
        ),
        (
            "comparison",
            "t test and interval on the log-ratios to the baseline of the same block; corrected for the number of "
            f"comparisons (Holm) and of looks at the results; margin {100 * study.margin:g} %",
        ),
        ("settling", f"{repeat.settle_s:g} s after every change of settings"),
    ]
    if computed := [san.name for san in study.sans if san.clock == "virtual"]:
        rows.append(("clock", f"{', '.join(computed)}: {_COMPUTED}"))
    rows += [
        (workload.title, f"{workload.elapsed_s:g} s measured after {workload.warmup_s:g} s of warm-up")
        for workload in study.workloads
    ]
    if verdicts and verdicts.repeated:
        decided = sum(item.verdict != "undecided" for item in verdicts.repeated)
        rows.append(("decided", f"{decided} of {len(verdicts.repeated)} comparisons"))
    return tuple(rows)


def _search_method(study: Study) -> tuple[tuple[str, str], ...]:
    scale = study.scale
    assert scale is not None
    return (
        ("order", f"each case is searched once, in an order from seed {study.seed}"),
        (
            "search",
            f"the load doubles until it surely misses a {scale.until}, then the gap is halved; each load is repeated "
            f"up to {scale.repeats} times until a t interval of the logarithms decides it",
        ),
        (
            "comparison",
            "the smallest and the largest ratio of the ends of two searches; all intervals hold together with 95 %; "
            f"margin {100 * study.margin:g} %",
        ),
        *_curve_method(scale),
        ("settling", f"{study.repeat.settle_s:g} s after every change of settings"),
        *(
            (one.title, f"{one.elapsed_s:g} s measured after {one.warmup_s:g} s of warm-up")
            for one in study.workloads
        ),
    )


def _curve_method(scale: Scale) -> tuple[tuple[str, str], ...]:
    if not scale.curve:
        return ()
    loads = ", ".join(f"{load:,}" for load in scale.curve)
    return (
        (
            "growth",
            f"{loads} {scale.over}, the first {scale.curve_repeats} runs of each: the rate per unit of load against "
            "that of the first load by Welch's t interval of the logarithms; all intervals hold together with 95 %; "
            f"margin {100 * scale.linear_margin:g} %",
        ),
    )


def _environment(directory: StudyDirectory) -> tuple[tuple[str, str], ...]:
    several = len(directory.san_facts) > 1
    facts = chain.from_iterable(
        ((f"{san}: {name}" if several else name, value) for name, value in _flat(facts).items())
        for san, facts in directory.san_facts.items()
    )
    versions = directory.record.versions.items()
    return (
        *((name, str(value)) for name, value in facts),
        *((f"version: {name}", v) for name, v in versions),
    )


def _flat(facts: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Nested facts as dotted names."""
    flat: dict[str, object] = {}
    for name, value in facts.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        elif isinstance(value, list | tuple):
            flat[prefix + name] = ", ".join(map(str, value))
        else:
            flat[prefix + name] = value
    return flat
