"""`linerate report`: the result table and the HTML report of a run, a study or a search that was made earlier."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linerate.cli.limits.tune import show_ended
from linerate.errors import UserError

_FioJson = Annotated[
    Path | None,
    typer.Option("--fio-json", metavar="FILE", help="Write the results as fio's JSON here."),
]
_IometerCsv = Annotated[
    Path | None,
    typer.Option("--iometer-csv", metavar="FILE", help="Write the results as Iometer's CSV here."),
]
_DiskspdXml = Annotated[
    Path | None,
    typer.Option("--diskspd-xml", metavar="FILE", help="Write the results as diskspd's XML here."),
]


def report(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="The directory of a run, a study or a search (of `scale` or `tune`)."
        ),
    ],
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write the HTML report here.")
    ] = None,
    vdbench: Annotated[
        Path | None,
        typer.Option("--vdbench-output", metavar="DIR", help="Write vdbench's report files here."),
    ] = None,
    fio_json: _FioJson = None,
    iometer_csv: _IometerCsv = None,
    diskspd_xml: _DiskspdXml = None,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Replace files of these names, also in the folder of vdbench."),
    ] = False,
) -> None:
    """Show the result table of a run, the verdicts of a study, or the answer of a search; write the HTML report.

    A run's report is written once into its directory, or to --html; a study's replaces the one that is there, and the
    run reports that it links are written where they are missing.
    """
    from linerate.cli.numbers.outfile import consent_to_fill, consent_to_replace

    of_runs = _of_runs(vdbench, fio_json, iometer_csv, diskspd_xml)
    files = [path for path in (html, fio_json, iometer_csv, diskspd_xml) if path is not None]
    consent_to_replace(files, overwrite)
    if vdbench is not None:
        consent_to_fill(vdbench, overwrite)
    if _reports_several(run, html, of_runs):
        return
    from linerate import report as made
    from linerate.analysis import check_run, limit_of, summarise
    from linerate.cli.console import show_result
    from linerate.results import RunDirectory

    opened = RunDirectory.open(run)
    if of_runs is not None and opened.manifest.imported is not None:
        raise UserError(
            f"an imported run has no {of_runs}: its intervals and histograms are not known",
            f"use {opened.manifest.imported.file}, which it was read from",
        )
    # The stamp is that of the day the run was closed, unless its files are no longer what they were then.
    sound = opened.manifest.validity if not opened.damage() else None
    summaries = summarise(opened)
    show_result(summaries, sound or check_run(opened, summaries), limit_of(opened, summaries))
    inside = opened.path / "report.html"
    path = inside
    if html is not None or not inside.exists():
        from linerate.report.page import write_report

        path = write_report(opened, html)
    typer.echo(f"report: {path}")
    if vdbench is not None:
        made.write_vdbench_output(opened, vdbench)
        typer.echo(f"vdbench output: {vdbench}")
    if fio_json is not None:
        made.write_fio_json(opened, fio_json)
        typer.echo(f"JSON of fio: {fio_json}")
    if iometer_csv is not None:
        made.write_iometer_csv(opened, iometer_csv)
        typer.echo(f"CSV of Iometer: {iometer_csv}")
    if diskspd_xml is not None:
        made.write_diskspd_xml(opened, diskspd_xml)
        typer.echo(f"XML of diskspd: {diskspd_xml}")


def _reports_several(place: Path, html: Path | None, of_runs: str | None) -> bool:
    """Reports a study or a search. False: it is neither. Raises UserError for what only runs have."""
    if (place / "study.json").exists():
        if of_runs is not None:
            raise UserError(f"a study has no {of_runs}", "give one of the runs in its folder runs")
        _report_study(place, html)
        return True
    searched = next((name for name in ("scale.json", "tune.json") if (place / name).exists()), None)
    if searched is None:
        return False
    if of_runs is not None:
        raise UserError(f"a search has no {of_runs}", "give one of its runs")
    if searched == "scale.json":
        _report_scale(place, html)
    elif html is not None:
        raise UserError(f"{place} has no report of its own", "give the folder of its confirmation")
    else:
        show_ended(place)
    return True


def _of_runs(
    vdbench: Path | None, fio_json: Path | None, iometer_csv: Path | None, diskspd_xml: Path | None
) -> str | None:
    """What was asked for and only runs have."""
    asked = (
        ("vdbench output", vdbench),
        ("JSON of fio", fio_json),
        ("CSV of Iometer", iometer_csv),
        ("XML of diskspd", diskspd_xml),
    )
    return next((what for what, path in asked if path is not None), None)


def _report_study(study: Path, html: Path | None) -> None:
    from linerate.cli.console import show_verdicts
    from linerate.report.study import study_page, write_run_reports, write_study_report
    from linerate.study import StudyDirectory
    from linerate.study.judge import refuse_choosing

    opened = StudyDirectory.open(study)
    refuse_choosing(opened)
    show_verdicts(study_page(opened))
    write_run_reports(opened)
    typer.echo(f"report: {write_study_report(opened, html)}")


def _report_scale(directory: Path, html: Path | None) -> None:
    from linerate.report.scale import write_scale_report
    from linerate.scale import ScaleRecord
    from linerate.scale.words import answer_lines

    record = ScaleRecord.open(directory)
    for line in answer_lines(record.axis, record.threshold, record.procedure):
        typer.echo(line)
    typer.echo(f"report: {write_scale_report(directory, html)}")
