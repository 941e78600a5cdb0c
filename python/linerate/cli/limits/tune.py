"""`linerate tune`: which of many settings matter, and what the best of them bring together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from linerate.cli.job import flags
from linerate.cli.place import place_of
from linerate.cli.study.kind import prepare, study_file
from linerate.errors import UserError, quote

if TYPE_CHECKING:
    from linerate.setting import Value
    from linerate.study import Study
    from linerate.tune import Exclusion, Factor, TuneEffort, TuneRun, TuneStage
    from linerate.tune.conduct import Conductor, TuneOutcome
    from linerate.tune.record import TuneRecord

File = Annotated[
    str,
    typer.Argument(
        metavar="FILE|DIR", help="A study file, the name of a shipped study, or a directory to go on with."
    ),
]
SettingLevels = Annotated[
    list[str] | None,
    Option(
        "--setting",
        metavar="NAME=V1,V2,...",
        help="A setting and its values, the baseline's first; may be repeated. Default: the file's factors.",
    ),
]
Forbid = Annotated[
    list[str] | None,
    Option("--forbid", metavar="A=V,B=V", help="Values that must not come together; may be repeated."),
]
OneWorkload = Annotated[
    str | None, Option("--workload", metavar="NAME", help="Of the file; default: its first one.")
]
TuneBlocks = Annotated[
    int,
    Option(
        "--blocks", metavar="N", min=2, max=50, help="Blocks of the screening: more find smaller effects."
    ),
]
Confirm = Annotated[
    int, Option("--confirm", metavar="N", min=5, max=100, help="Pairs of runs of the confirmation.")
]
Pilot = Annotated[
    int, Option("--pilot", metavar="N", min=0, max=20, help="Blocks of the pilot, which measures the spread.")
]
Spread = Annotated[
    float | None,
    Option("--spread", metavar="PERCENT", min=0, max=100, help="Assume this spread of runs: no pilot."),
]
Margin = Annotated[
    float, Option("--margin", metavar="PERCENT", min=0.1, max=50, help="A smaller effect does not matter.")
]
Quick = Annotated[bool, Option("--quick", help="The shorter times that the file has for it.")]
Output = Annotated[Path | None, Option("--output", metavar="DIR", help="The directory of the search.")]
Seed = Annotated[int | None, Option("--seed", metavar="N", help="Another order of the runs.")]


_OF_EACH_CALL = {"file", "overwrite", "dry_run", "wait", "json"}
"""Options that are not kept in the search's directory."""


def tune(
    context: typer.Context,
    file: File,
    setting: SettingLevels = None,
    forbid: Forbid = None,
    workload: OneWorkload = None,
    blocks: TuneBlocks = 4,
    confirm: Confirm = 8,
    pilot: Pilot = 3,
    spread: Spread = None,
    margin: Margin = 2.0,
    quick: Quick = False,
    seed: Seed = None,
    overwrite: flags.Overwrite = None,
    dry_run: flags.DryRun = False,
    wait: flags.WaitForLab = False,
    output: Output = None,
    json: flags.Json = False,
) -> None:
    """Find out which settings matter, from few runs, and confirm the best ones against the baseline.

    All settings are changed at once by a screening design. Only the confirmation, in fresh runs, is a result.

    The file's SAN, its baseline and one workload are used, not its cases. `linerate report DIR` shows the result again.
    """
    directory = Path(file)
    resumed = directory.is_dir()
    prepare(directory if resumed else study_file(file) or directory)
    from linerate.tune import TuneEffort
    from linerate.tune.record import TuneRecord

    if resumed:
        _refuse_changes(context, directory)
        record = TuneRecord.open(directory)
    else:
        effort = TuneEffort(
            blocks=blocks,
            confirm=confirm,
            pilot=pilot,
            margin=margin / 100,
            spread=None if spread is None else spread / 100,
        )
        record = _record(file, _levels(setting or []), forbid or [], workload, effort, quick, seed)
        directory = output or place_of(f"tune-{record.study.name}")
    _show_plan(record, json=json)
    if dry_run:
        return
    if not resumed:
        record.create(directory)
    _search(directory, record, overwrite, wait=wait, json=json)


def _refuse_changes(context: typer.Context, directory: Path) -> None:
    """Raises UserError for an option that would change a search which was begun."""
    for name in context.params.keys() - _OF_EACH_CALL:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            option = f"--{name.replace('_', '-')}"
            raise UserError(f"{option}: {directory} goes on as it was begun", f"leave {option} out")


def _levels(texts: list[str]) -> dict[str, tuple[Value, ...]]:
    """Settings with their levels. Raises UserError."""
    from linerate.settings import find

    levels: dict[str, tuple[Value, ...]] = {}
    for text in texts:
        name, sign, values = text.partition("=")
        if not name:
            raise UserError(f"--setting {text}: no setting", "write NAME=VALUE,VALUE")
        known = find(name)
        way_out = f"write {name}=VALUE,VALUE; `linerate settings {name}` shows its values"
        if not sign:
            raise UserError(f"--setting {text}: no values", way_out)
        if name in levels:
            raise UserError(f"--setting {name} is given twice", "give all of its values at once")
        levels[name] = tuple(known.parse(value) for value in values.split(","))
        if len(set(levels[name])) < max(len(levels[name]), 2):
            raise UserError(f"--setting {text}: needs two values that differ", way_out)
    return levels


def _record(
    file: str,
    given: Mapping[str, tuple[Value, ...]],
    forbid: list[str],
    workload: str | None,
    effort: TuneEffort,
    quick: bool,
    seed: int | None,
) -> TuneRecord:
    import sys

    from linerate.study.file.factored import load_factored
    from linerate.tune import Factor, Space
    from linerate.tune.exclusions import check_clock, excluded_by_san
    from linerate.tune.record import TuneRecord

    loaded, levels = load_factored(study_file(file) or file, given, quick=quick, seed=seed)
    study = _one_workload(loaded, workload)
    factors = tuple(Factor(name=name, levels=tuple(values)) for name, values in levels.items())
    fixed = {name for san in study.sans for name in san.settings} & set(levels)
    if fixed:
        name = min(fixed)
        raise UserError(
            f"{name}: the file's [[san]] sets it for every case", f"leave {name} out of [[san]].settings"
        )
    check_clock(study, factors)
    exclusions = (*(_exclusion(text, factors) for text in forbid), *excluded_by_san(study, factors))
    return TuneRecord(
        started_at=datetime.now(UTC),
        command=tuple(sys.argv),
        space=Space(factors=factors, exclusions=exclusions),
        effort=effort,
        study=study,
    )


def _one_workload(study: Study, name: str | None) -> Study:
    """The study with one workload. Raises UserError if there is none of that name, or its figure cannot be used."""
    from linerate.analysis.metric import find_metric

    known = [one.name for one in study.workloads]
    if name is not None and name not in known:
        raise UserError(f"--workload {name}: there is no such workload", f"there is {', '.join(known)}")
    chosen = study.workload(name or known[0])
    metric = find_metric(chosen.metric)
    if metric.scale != "ratio" or not metric.better:
        raise UserError(
            f"{chosen.name} is judged by {metric.name}, which has no ratios",
            "tune by a rate or a response time",
        )
    sans = tuple(san for san in study.sans if san.name == chosen.san)
    cases = tuple(case.model_copy(update={"workloads": (chosen.name,)}) for case in study.cases)
    return study.model_copy(update={"workloads": (chosen,), "sans": sans, "cases": cases})


def _exclusion(text: str, factors: tuple[Factor, ...]) -> Exclusion:
    from linerate.settings import find
    from linerate.tune import Exclusion

    levels = {factor.name: factor.levels for factor in factors}
    values = {}
    for part in text.split(","):
        name, sign, value = part.strip().partition("=")
        if not sign or name not in levels:
            raise UserError(f"--forbid {text}: {name} is not tuned", f"write A=V,B=V of {', '.join(levels)}")
        values[name] = find(name).parse(value)
        if values[name] not in levels[name]:
            raise UserError(f"--forbid {text}: {name} never has this value", "name one of its values")
    return Exclusion(values=values)


def _show_plan(record: TuneRecord, *, json: bool) -> None:
    from linerate.plural import plural
    from linerate.quantity import span_text
    from linerate.study import StudyPlan
    from linerate.tune.conduct import procedure_of, stage_study
    from linerate.tune.words import plan_lines, power_line

    procedure = procedure_of(record)
    sure = procedure.planned()
    sure_s = sum(StudyPlan(stage_study(record, stage)).duration().most_s for stage in sure)
    runs = sum(stage.runs for stage in sure)
    most_s = sure_s * (runs + procedure.later_most()) / runs
    if json:
        stages = [{"name": stage.name, "points": len(stage.points), "runs": stage.runs} for stage in sure]
        plan = {
            "schema": "linerate.tune.plan/1",
            "settings": {factor.name: factor.levels for factor in record.space.factors},
            "never_together": [one.model_dump(mode="json") for one in record.space.exclusions],
            "stages": stages,
            "runs_later_most": procedure.later_most(),
            "seconds": [sure_s, most_s],
        }
        typer.echo(dumps(plan))
        return
    (workload,) = record.study.workloads
    count = plural(len(record.space.factors), "setting")
    typer.echo(f"{record.study.name}: {count} under {workload.name}, by {workload.metric}")
    for line in plan_lines(procedure):
        typer.echo(line)
    typer.echo(f"  {runs} runs or more: {span_text(sure_s, most_s)}")
    typer.echo(f"  {power_line(procedure, {})}")


def _search(
    directory: Path, record: TuneRecord, overwrite: list[str] | None, *, wait: bool, json: bool
) -> None:
    import signal

    from linerate.cli.study.laboratory import machine_for
    from linerate.errors import LinerateError
    from linerate.tune.conduct import search

    # SIGTERM and a terminal that goes away end it as Ctrl-C does, with settings restored.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup wants it to go on
        signal.signal(signal.SIGHUP, signal.default_int_handler)
    try:
        with machine_for(record.study, directory, wait=wait):
            found = search(directory, record, _conductor(record, overwrite, json=json))
    except (KeyboardInterrupt, LinerateError):
        typer.echo(f"go on with: linerate tune {quote(directory)}", err=True)
        raise
    _show(directory, record, found, json=json)


def show_ended(directory: Path) -> None:
    """What a search found, again. Raises UserError for one that has not ended."""
    from linerate.tune.conduct import ended_search
    from linerate.tune.record import TuneRecord

    record = TuneRecord.open(directory)
    _show(directory, record, ended_search(directory, record), json=False)


def _conductor(record: TuneRecord, overwrite: list[str] | None, *, json: bool) -> Conductor:
    from linerate.cli.job.overwrite import consent_of
    from linerate.cli.study.laboratory import laboratory_for
    from linerate.cli.study.progress import following
    from linerate.tune.conduct import Conductor, procedure_of
    from linerate.tune.words import effect_lines, power_line

    procedure = procedure_of(record)

    def tell(stage: TuneStage, measured: Mapping[str, list[TuneRun]]) -> None:
        if json:
            typer.echo(dumps({"schema": "linerate.tune.stage/1", "stage": stage.name, "runs": stage.runs}))
            return
        if stage.kind == "screening" and "pilot" in measured:
            typer.echo(power_line(procedure, measured))
        if stage.kind in ("fold-over", "levels"):
            for line in effect_lines(record.space, procedure.effects(measured)):
                typer.echo(line)
        typer.echo(f"{stage.name}: {stage.runs} runs")

    consent = consent_of(overwrite, json=json)
    return Conductor(
        lambda study, folder: laboratory_for(study, folder, consent),
        lambda study: following(study, json=json),
        tell,
    )


def _show(directory: Path, record: TuneRecord, found: TuneOutcome, *, json: bool) -> None:
    from linerate.analysis.verdict import GAINS
    from linerate.report.study import words, write_study_report
    from linerate.study import StudyDirectory
    from linerate.study.judge import write_verdicts
    from linerate.tune.words import NO_RESULT, effect_lines, settings_text

    choice = found.procedure.choice(found.measured)
    changed = record.space.changed(choice.best.point)
    report = None
    if found.confirmation is not None:
        write_verdicts(found.confirmation)
        report = write_study_report(StudyDirectory.open(found.confirmation.path))
    if json:
        line = {
            "schema": "linerate.tune/1",
            "settings": changed,
            "confirmed": asdict(found.confirmed) if found.confirmed else None,
            "screening": {"note": NO_RESULT, **asdict(choice.effects)},
            "skipped": found.skipped,
            "directory": str(directory),
            "report": str(report) if report else None,
        }
        typer.echo(dumps(line))
        return
    for text in effect_lines(record.space, choice.effects):
        typer.echo(text)
    for settings, reason in found.skipped.items():
        typer.echo(f"  not measured: {settings}: {reason}")
    if found.confirmed is None:
        typer.echo("Result: no setting was shown to help. Keep the baseline.")
    else:
        helps = found.confirmed.verdict in GAINS
        typer.echo(f"{'Change only' if helps else 'Not confirmed'}: {settings_text(changed)}")
        typer.echo(
            f"Result: {words.change(found.confirmed)} ({words.bounds(found.confirmed)}) against the baseline, "
            f"{found.confirmed.verdict}; {found.confirmed.blocks} pairs of fresh runs"
        )
        typer.echo(f"report: {report}")
    typer.echo(f"stages: {directory}")
