"""How a study's plan and state are written: lines for people, JSON for programs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from json import dumps

import typer

from linerate.analysis.verdict import ALPHA, plan_looks, shipped_claims
from linerate.analysis.verdict.power import detectable
from linerate.cli.study.comparison import comparison_lines, decided, progress_line
from linerate.cli.study.places import host_lines, runs_here
from linerate.errors import UserError, quote
from linerate.plural import plural
from linerate.quantity import span_text
from linerate.scale import runs_planned
from linerate.scale.reached import sought_text
from linerate.study import Study, StudyDirectory, StudyPlan
from linerate.study.journal import StepDone
from linerate.study.model import Scale
from linerate.study.remaining import study_progress
from linerate.study.repeat import missing

_NOISE_PERCENT = (0.5, 2.0)
"""Scatter of runs on a quiet machine, and on a busy one."""


def certainty_text(study: Study) -> str:
    """Which change its number of blocks finds, before anything is measured."""
    if study.scale is not None:
        return "the intervals of all largest loads hold together with 95 %"
    repeat = study.repeat
    comparisons = sum(len(case.workloads) for case in study.cases[1:])
    if repeat.blocks_max == 1:
        return "1 block shows ratios and proves nothing; measure at least 3"
    share = plan_looks(repeat.blocks_min, repeat.blocks_max).shares[-1]
    spread = math.sqrt(1 + 1 / repeat.baselines)
    found = [
        f"{detectable(noise * spread, repeat.blocks_max, ALPHA * share / max(comparisons, 1)):.2g} %"
        for noise in _NOISE_PERCENT
    ]
    return (
        f"if runs scatter by {' or '.join(f'{noise:g} %' for noise in _NOISE_PERCENT)}, "
        f"{repeat.blocks_max} blocks show a change of {' or '.join(found)} in 80 of 100 studies "
        f"(1 of {comparisons} comparisons); margin {100 * study.margin:g} %"
    )


def show_plan(study: Study, *, json: bool) -> None:
    """The plan: what is compared, the runs of each block in order, and how long it takes."""
    plan = StudyPlan(study)
    duration = plan.duration()
    if json:
        blocks = [
            [
                {"key": step.key, "san": step.san, "case": step.case, "workload": step.workload}
                for step in block
            ]
            for block in plan.blocks()
        ]
        seconds = {"least_s": duration.least_s, "most_s": duration.most_s}
        typer.echo(dumps({"study": study.model_dump(mode="json"), **seconds, "blocks": blocks}))
        return
    typer.echo(f"{study.name}: {study.title}")
    for san in study.sans:
        if san.topology:
            computed = "; computed: lines and hosts have no part" if san.clock == "virtual" else ""
            typer.echo(f"  SAN {san.name}: {san.topology.description or san.topology.name}{computed}")
            continue
        typer.echo(f"  SAN {san.name}: {'this machine' if runs_here(san) else 'hosts that exist'}")
        for line in host_lines(study, san):
            typer.echo(f"    {line}")
    for workload in study.workloads:
        times = f"{workload.warmup_s:g} s warm-up, {workload.elapsed_s:g} s measured"
        typer.echo(f"  workload {workload.name} on {workload.san}: {workload.title}; {times}")
    for number, case in enumerate(study.cases):
        settings = case.settings if number == 0 else {name: case.settings[name] for name in case.changed}
        shown = ", ".join(f"{name} {_value(value)}" for name, value in settings.items())
        typer.echo(f"  {'baseline' if number == 0 else 'case'} {case.name}: {shown or 'as found'}")
    for line in needs_lines(study):
        typer.echo(f"  needs {line}")
    later = "later blocks hold the same in another order"
    if study.scale is not None:
        later = f"each is searched for {scale_text(study.scale)}"
    typer.echo(f"  order, seed {study.seed}; {later}:")
    for step in plan.block(1):
        typer.echo(f"    {step.position + 1:>4}  {step.san}  {step.case}  {step.workload}")
    repeated = blocks_text(study.repeat.blocks_min, study.repeat.blocks_max)
    if study.scale is not None:
        planned = runs_planned(study.search_limits, study.scale.parts)
        repeated = f"{planned.least} to {planned.most} runs of each"
    typer.echo(f"  {repeated}: {span_text(duration.least_s, duration.most_s)}")
    typer.echo(f"  certainty: {certainty_text(study)}")


def needs_lines(study: Study) -> Iterator[str]:
    """What the published findings need that a study tests on hosts that exist."""
    if any(san.topology is not None for san in study.sans):
        return
    known = shipped_claims()
    for name in dict.fromkeys(test.claim for test in study.claims):
        if known[name].needs == "hardware":
            yield f"hardware for {name}: {known[name].because}"


def blocks_text(least: int, most: int) -> str:
    """A number of blocks, or the two between which it will be."""
    return plural(most, "block") if least == most else f"{least} to {most} blocks"


def scale_text(scale: Scale) -> str:
    """What a search looks for: `the largest number of threads with a mean of 20 ms, from 1 to 256`."""
    return f"{sought_text(scale.over)} with a {scale.until}, from {scale.least:,} to {scale.most:,}"


def _value(value: object) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def show_status(directory: StudyDirectory, *, json: bool) -> None:
    """How far it is, block by block."""
    study = directory.study
    done = Counter(step.block for step in directory.measured.values())
    lost = directory.not_applicable
    planned = {
        block[0].block: sum((step.san, step.case) not in lost for step in block)
        for block in directory.plan.blocks()
    }
    failed = [step for step in directory.steps if step.state == "failed"]
    lacks = missing(directory) if directory.state == "incomplete" else {}
    progress = study_progress(directory)
    if json:
        blocks = [
            {"block": number, "measured": done[number], "planned": of} for number, of in planned.items()
        ]
        times = {
            "spent_s": progress.spent_s,
            "left_least_s": progress.left_s.least_s,
            "left_most_s": progress.left_s.most_s,
            "runs_left_least": progress.left_least,
            "runs_left_most": progress.left_most,
        }
        state = {"state": directory.state, "reason": directory.reason, "failed": len(failed)}
        typer.echo(dumps({"name": study.name, **state, **times, "missing": lacks, "blocks": blocks}))
        return
    typer.echo(f"{study.name}: {directory.state}" + (f" ({directory.reason})" if directory.reason else ""))
    typer.echo(f"  {progress_line(progress)}")
    for number, of in planned.items():
        if done[number] or number <= study.repeat.blocks_min:
            typer.echo(f"  block {number}: {done[number]} of {plural(of, 'run')}")
    for (san, case), reason in directory.not_applicable.items():
        typer.echo(f"  {case} on {san}: not applicable: {reason}")
    for step in failed:
        typer.echo(f"  {step.directory}: failed: {step.reason}")
    for key, reason in lacks.items():
        typer.echo(f"  missing: {key}: {reason}")
    if found := comparison_lines(decided(directory)):
        typer.echo("  so far:")
        for line in found:
            typer.echo(f"    {line}")
    if directory.state in ("interrupted", "failed", "incomplete"):
        search = directory.search
        resume = f"tune {quote(search)}" if search is not None else f"study resume {quote(directory.path)}"
        typer.echo(f"  go on with: linerate {resume}")


def show_check(directory: StudyDirectory, *, json: bool) -> bool:
    """What speaks against the study; True when it came to its end, lacks no run, and each that counts is unharmed."""
    found = _warnings(directory)
    sound = directory.is_complete and not found.harmed
    if json:
        typer.echo(
            dumps(
                {
                    "state": directory.state,
                    "runs": found.runs,
                    "undecided": found.undecided,
                    "warnings": found.warnings,
                    "damaged": found.harmed,
                }
            )
        )
        return sound
    typer.echo(f"{directory.study.name}: {directory.state}")
    if found.runs:
        typer.echo("runs: " + ", ".join(f"{count} {stamp}" for stamp, count in sorted(found.runs.items())))
    if found.undecided:
        typer.echo("undecided:")
        for line in found.undecided:
            typer.echo(f"  {line}")
    for line in found.warnings:
        typer.echo(f"warning: {line}")
    return sound


@dataclass(frozen=True, slots=True)
class _Warnings:
    """`runs` counts them by stamp; `harmed` are run directories that are gone or not as they were closed."""

    runs: Mapping[str, int]
    undecided: Sequence[str]
    warnings: Sequence[str]
    harmed: Sequence[str]


def _warnings(directory: StudyDirectory) -> _Warnings:
    from linerate.study.judge import judged, missing_runs, void_runs

    runs: Counter[str] = Counter(step.stamp or step.state for step in directory.steps)
    if not directory.measured:
        return _Warnings(runs, [], ["nothing has been measured"], [])
    open_ones, warnings = [], []
    if directory.search is None:
        verdicts = judged(directory)
        open_ones = [
            f"{one.case}, {one.workload}: {plural(one.runs, 'run')}"
            for one in verdicts.repeated
            if one.verdict == "undecided"
        ]
        warnings += [*verdicts.judgement.warnings, *verdicts.judgement.notes]
    harm = {step.directory: _harm(directory, step) for step in directory.measured.values()}
    harmed = {place: what for place, what in harm.items() if what}
    warnings += void_runs(directory)
    warnings += [f"{line}: no run of it" for line in missing_runs(directory)]
    warnings += [f"{place}: {what}" for place, what in harmed.items()]
    return _Warnings(runs, open_ones, warnings, list(harmed))


def _harm(directory: StudyDirectory, step: StepDone) -> str:
    """What became of a run since it was measured. Empty: nothing."""
    try:
        return "changed or damaged since it was measured" if directory.run(step).damage() else ""
    except UserError as error:
        return f"its run directory is gone or unreadable: {error.message}"
