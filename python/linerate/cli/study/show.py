"""How a study's plan, progress and state are written: lines for people, JSON for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from json import dumps

import typer

from linerate.analysis.verdict import find_metric
from linerate.cli.console import console
from linerate.cli.study.places import host_lines, runs_here
from linerate.errors import UserError
from linerate.study import Study, StudyDirectory, StudyPlan
from linerate.study.events import BlockBegan, StepBegan, StudyBegan, StudyEvent
from linerate.study.journal import CaseSkipped, SanFacts, StepDone, WarmUpFound
from linerate.study.repeat import missing

_NAMES_WIDTH = 44


def duration_text(seconds: float) -> str:
    """Two units at most: 45 s, 12 min, 3 h 05 min."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02d} min"


def certainty_text(study: Study) -> str:
    """What its number of blocks is good for."""
    blocks = study.repeat.blocks_max
    if blocks < 6:
        return (
            f"{blocks} blocks show large effects only: few blocks make wide intervals, and what is near the "
            f"{study.margin:.0%} margin stays undecided (6 blocks decide most of it)"
        )
    return (
        f"up to {blocks} blocks: effects of twice the {study.margin:.0%} margin are found on a quiet machine"
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
    typer.echo(f"  order, seed {study.seed}; later blocks hold the same in another order:")
    for step in plan.block(1):
        typer.echo(f"    {step.position + 1:>4}  {step.san}  {step.case}  {step.workload}")
    least, most = duration_text(duration.least_s), duration_text(duration.most_s)
    blocks_text = _blocks_text(study.repeat.blocks_min, study.repeat.blocks_max)
    typer.echo(f"  {blocks_text}: {least}" + (f" to {most}" if least != most else ""))
    typer.echo(f"  certainty: {certainty_text(study)}")


def _blocks_text(least: int, most: int) -> str:
    return f"{most} blocks" if least == most else f"{least} to {most} blocks"


def _value(value: object) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def progress(study: Study, *, json: bool) -> Callable[[StudyEvent], None]:
    """Tells a study's events: a line per step for people, every event as JSON for programs."""
    if json:
        return lambda event: typer.echo(event.model_dump_json())
    return _Lines(study).show


class _Lines:
    def __init__(self, study: Study) -> None:
        self._study = study
        self._out = console()
        self._begun: StepBegan | None = None

    def show(self, event: StudyEvent) -> None:
        """One line per event that a person wants to see."""
        match event:
            case StudyBegan():
                least, most = duration_text(event.least_s), duration_text(event.most_s)
                self._say(f"study directory {event.directory}")
                blocks = _blocks_text(event.blocks_min, event.blocks_max)
                self._say(
                    f"{event.cases} cases, {event.workloads} workloads, {blocks}: {least}"
                    + (f" to {most}" if least != most else "")
                )
                if self._study.quick:
                    self._say(f"quick: {certainty_text(self._study)}")
            case BlockBegan():
                self._say(f"\nblock {event.block}: {event.steps} runs, {duration_text(event.seconds)}")
            case SanFacts():
                fabric = event.facts.get("fabric")
                is_up = "is computed, in virtual time" if event.facts.get("clock") == "virtual" else "is up"
                self._say(f"  {event.san} {is_up}" + (f", {fabric} fabric" if fabric else ""))
                for name, reason in event.lacking.items():
                    self._say(f"  {event.san} has no {name}: {reason}")
            case WarmUpFound():
                how = "steady after" if event.steady else "not steady, and no longer waited for than"
                self._say(f"  warm-up of {event.workload}: {how} {event.seconds:g} s")
            case CaseSkipped():
                self._say(f"  {event.case} on {event.san}: not applicable: {event.reason}")
            case StepBegan():
                self._begun = event
            case StepDone():
                self._say(self._step(event))
            case _:
                pass  # the caller reports how it ended

    def _step(self, step: StepDone) -> str:
        at = f"{self._begun.number:>4}/{self._begun.of}" if self._begun else ""
        name = f"{step.case}{' (again)' if step.replica > 1 else ''}, {step.workload}"
        return f"{at}  {name:<{_NAMES_WIDTH}} {self._result(step)}"

    def _result(self, step: StepDone) -> str:
        metric = find_metric(self._study.workload(step.workload).metric)
        value = step.values.get(metric.name)
        figure = f"{value:>12,.1f} {metric.unit}" if value is not None else f"{'-':>12}"
        mark = f"  void: {step.reason}" if step.state == "void" else ""
        return f"{figure}{mark}" if step.state != "failed" else f"failed: {step.reason}"

    def _say(self, line: str) -> None:
        self._out.print(line, soft_wrap=True, markup=False)


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
    if json:
        blocks = [
            {"block": number, "measured": done[number], "planned": of} for number, of in planned.items()
        ]
        state = {"state": directory.state, "reason": directory.reason, "failed": len(failed)}
        typer.echo(dumps({"name": study.name, **state, "missing": lacks, "blocks": blocks}))
        return
    typer.echo(f"{study.name}: {directory.state}" + (f" ({directory.reason})" if directory.reason else ""))
    for number, of in planned.items():
        if done[number] or number <= study.repeat.blocks_min:
            typer.echo(f"  block {number}: {done[number]} of {of} runs")
    for (san, case), reason in directory.not_applicable.items():
        typer.echo(f"  {case} on {san}: not applicable: {reason}")
    for step in failed:
        typer.echo(f"  {step.directory}: failed: {step.reason}")
    for key, reason in lacks.items():
        typer.echo(f"  missing: {key}: {reason}")
    if directory.state in ("interrupted", "failed", "incomplete"):
        typer.echo(f"  go on with: linerate study resume {directory.path}")


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
    from linerate.study.judge import judged

    runs: Counter[str] = Counter(step.stamp or step.state for step in directory.steps)
    if not directory.measured:
        return _Warnings(runs, [], ["nothing has been measured"], [])
    verdicts = judged(directory)
    open_ones = [
        f"{one.case}, {one.workload}: {one.runs} runs"
        for one in verdicts.repeated
        if one.verdict == "undecided"
    ]
    harm = {step.directory: _harm(directory, step) for step in directory.measured.values()}
    harmed = {place: what for place, what in harm.items() if what}
    warnings = [*verdicts.judgement.warnings, *verdicts.void]
    warnings += [f"{line}: no run of it" for line in verdicts.missing]
    warnings += [f"{place}: {what}" for place, what in harmed.items()]
    return _Warnings(runs, open_ones, warnings, list(harmed))


def _harm(directory: StudyDirectory, step: StepDone) -> str:
    """What became of a run since it was measured. Empty: nothing."""
    try:
        return "changed or damaged since it was measured" if directory.run(step).damage() else ""
    except UserError as error:
        return f"its run directory is gone or unreadable: {error.message}"
