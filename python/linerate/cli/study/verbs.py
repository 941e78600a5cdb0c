"""The verbs of `linerate study`, and what `linerate run` does with a study file."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linerate.cli.job import flags
from linerate.cli.job.page import Page, with_page
from linerate.cli.place import place_of
from linerate.cli.study import shipped
from linerate.cli.study.kind import prepare, study_file
from linerate.errors import LinerateError, UserError, quote

if TYPE_CHECKING:
    from linerate.study import Study, StudyDirectory
    from linerate.study.laboratory import Laboratory


app = typer.Typer(name="study", help="Compare configurations of a SAN.", no_args_is_help=True)

File = Annotated[str, typer.Argument(metavar="FILE", help="A study file, or the name of a shipped study.")]
Directory = Annotated[Path, typer.Argument(metavar="DIR", help="A study directory.")]
Quick = Annotated[
    bool, typer.Option("--quick", help="Shorter times and fewer blocks; says how much precision that costs.")
]
Blocks = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Number of blocks, instead of the file's.")
]
MoreBlocks = Annotated[
    int | None,
    typer.Option("--blocks", metavar="N", min=1, help="Extend the study to this number of blocks in all."),
]
Seed = Annotated[int | None, typer.Option(metavar="N", help="Another order of the runs.")]
Overwrite = flags.Overwrite
Output = Annotated[Path | None, typer.Option(metavar="DIR", help="The study directory.")]
Json = Annotated[bool, typer.Option("--json", help="JSON instead of text, one object per line.")]
Form = Annotated[
    str | None,
    typer.Option(
        "--as",
        metavar="FORM",
        help="linux, powershell, ansible, sysctl, udev, multipath, or switch:KIND (ios, nxos, dell, eos).",
    ),
]
Ports = Annotated[
    list[str] | None,
    typer.Option(
        "--device",
        "-d",
        metavar="NAME",
        help="A port to the SAN, of the host or the switch; may be repeated.",
    ),
]
Out = Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write to this file.")]


app.command("list")(shipped.studies)


@app.command()
def plan(
    file: File, quick: Quick = False, blocks: Blocks = None, seed: Seed = None, json: Json = False
) -> None:
    """Show what a study would do and how long it takes; nothing is started."""
    from linerate.cli.study.show import show_plan
    from linerate.study import load_study

    show_plan(load_study(file, quick=quick, seed=seed, blocks=blocks), json=json)


@app.command()
def run(
    file: File,
    quick: Quick = False,
    blocks: Blocks = None,
    seed: Seed = None,
    overwrite: Overwrite = None,
    output: Output = None,
    wait: flags.WaitForLab = False,
    page: Page = False,
    json: Json = False,
) -> None:
    """Run a study file: build or find its SAN, measure every case, judge, write the report."""
    path = study_file(file) or Path(file)
    prepare(path)
    from linerate.cli.study.laboratory import machine_for
    from linerate.study import StudyDirectory, load_study

    study = load_study(file, quick=quick, seed=seed, blocks=blocks)
    place = output or place_of(study.name)
    source = path.read_text(encoding="utf-8-sig")
    with machine_for(study, place, wait=wait):
        laboratory = _laboratory(study, place, overwrite, json=json)
        directory = StudyDirectory.create(place, study, source=source, source_name=path.name)
        _conduct(directory, laboratory, page, json=json)


@app.command()
def resume(
    directory: Directory,
    blocks: MoreBlocks = None,
    overwrite: Overwrite = None,
    wait: flags.WaitForLab = False,
    page: Page = False,
    json: Json = False,
) -> None:
    """Continue a study that was interrupted: same plan, without the steps that are done.

    With --blocks also one that is complete: more blocks, where verdicts are undecided.
    """
    prepare(directory)
    from linerate.cli.study.laboratory import machine_for
    from linerate.study import StudyDirectory, extend

    opened = StudyDirectory.open(directory)
    if opened.search is not None:
        raise UserError(
            f"{directory} is a stage of `linerate tune`", f"go on with: linerate tune {quote(opened.search)}"
        )
    if opened.state == "running":
        raise UserError(f"{directory} is being run by another process", "wait for it, or stop it")
    if blocks is None and opened.is_complete:
        _judge(opened, json=json)
        return
    with machine_for(opened.study, directory, wait=wait):
        if blocks is not None:
            opened = extend(directory, blocks)
        _conduct(opened, _laboratory(opened.study, directory, overwrite, json=json), page, json=json)


@app.command()
def status(directory: Directory, json: Json = False) -> None:
    """Show the progress of a study."""
    from linerate.cli.study.show import show_status
    from linerate.study import StudyDirectory

    show_status(StudyDirectory.open(directory), json=json)


@app.command()
def check(directory: Directory, json: Json = False) -> None:
    """Check a study: its runs, settings and noise. Exit code 1 if a result is not reliable."""
    from linerate.cli.study.show import show_check
    from linerate.study import StudyDirectory

    if not show_check(StudyDirectory.open(directory), json=json):
        raise typer.Exit(1)


@app.command()
def verdict(directory: Directory, json: Json = False) -> None:
    """Judge the results so far, and write the report again. Exit code 1 if runs are missing."""
    from linerate.study import StudyDirectory

    _judge(StudyDirectory.open(directory), json=json)


@app.command()
def recommend(
    directory: Directory,
    form: Form = None,
    device: Ports = None,
    out: Out = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that exists.")] = False,
) -> None:
    """Show the settings that were shown to help, with the evidence; with --as, the text that puts them in force.

    Nothing is changed. What a form cannot express is in its comments, with the reason.
    """
    from linerate.cli.study.recommend import show_recommended
    from linerate.study import StudyDirectory

    show_recommended(StudyDirectory.open(directory), form, device or (), out, overwrite)


def _laboratory(study: Study, folder: Path, overwrite: list[str] | None, *, json: bool) -> Laboratory:
    """Where the study runs, with the user's consent to what it overwrites there."""
    from linerate.cli.job.overwrite import consent_of
    from linerate.cli.study.laboratory import laboratory_for

    return laboratory_for(study, folder, consent_of(overwrite, json=json))


def _conduct(directory: StudyDirectory, laboratory: Laboratory, page: bool, *, json: bool) -> None:
    """Conducts, then judges. One that failed or was stopped is left for `resume`; `verdict` judges it as it is."""
    from linerate.cli.study.progress import following
    from linerate.study.conduct import conduct

    # SIGTERM and a terminal that goes away end a study as Ctrl-C does, with its settings restored.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup wants it to go on
        signal.signal(signal.SIGHUP, signal.default_int_handler)
    try:
        with (
            with_page("directory", str(directory.path), wanted=page, json=json),
            following(directory, json=json) as tell,
        ):
            done = conduct(directory.path, laboratory, tell)
    except (KeyboardInterrupt, LinerateError):
        typer.echo(f"go on with: linerate study resume {quote(directory.path)}", err=True)
        raise
    _judge(done, json=json)


def _judge(directory: StudyDirectory, *, json: bool) -> None:
    from json import dumps

    from linerate.cli.console import show_verdicts
    from linerate.cli.study.progress import next_line
    from linerate.report.study import (
        AT_THE_END_S,
        study_page,
        verdict_object,
        write_run_reports,
        write_study_report,
    )
    from linerate.report.study.short import deciding
    from linerate.study import StudyDirectory
    from linerate.study.journal import disk_error
    from linerate.study.judge import write_verdicts

    try:
        verdicts = write_verdicts(directory)
        judged = StudyDirectory.open(directory.path)
        write_run_reports(judged, AT_THE_END_S)
        report = write_study_report(judged)
    except OSError as error:
        raise disk_error(directory.path / "report.html", error) from error
    page = study_page(judged)
    if json:
        typer.echo(dumps({"type": "verdicts", **verdict_object(page), "missing": verdicts.missing}))
    else:
        show_verdicts(page)
        typer.echo(f"report: {report}")
        if judged.state == "complete":
            typer.echo(next_line(judged, deciding(page)))
    if judged.state == "incomplete":
        typer.echo(
            f"incomplete: {judged.reason}\ntry again: linerate study resume {quote(directory.path)}", err=True
        )
        raise typer.Exit(1)
