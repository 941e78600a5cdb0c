"""`linerate history`: the same workloads over months."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import Annotated

import typer


def history(
    folder: Annotated[
        Path, typer.Argument(metavar="[FOLDER]", help="A folder with run and study directories.")
    ] = Path("runs"),
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A metric to show, instead of iops, mib_s, response_ms and p99_ms. May be given several times.",
        ),
    ] = None,
    confidence: Annotated[
        float, typer.Option(metavar="PERCENT", min=80, max=99.9, help="Confidence of a change of level.")
    ] = 99.0,
    report: Annotated[
        Path | None, typer.Option("--report", metavar="FILE", help="Write an HTML page with charts.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the file of --report if it exists.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")] = False,
) -> None:
    """Show the results of the same workloads over time: first, last, changes of level and of the environment.

    Runs and studies that cannot be read, failed or are void are named and left out. The file .linerate-history.json in
    the folder makes the next call fast; it can be deleted at any time.
    """
    from linerate.cli.console import show_lines
    from linerate.cli.numbers.outfile import consent_to_replace, write_file
    from linerate.errors import UserError
    from linerate.history import DEFAULT_METRICS, INDEX, gather, judge_history
    from linerate.report.history import history_lines, history_object, render_history

    if report is not None:
        consent_to_replace([report], overwrite)
    gathered = gather(folder)
    if not gathered.entries:
        raise UserError(f"{folder}: no run or study in it", "give the folder that holds your runs")
    found = judge_history(str(folder), gathered.entries, metric or DEFAULT_METRICS, confidence / 100)
    if report is not None:
        write_file(report, render_history(found).encode())
    if json:
        typer.echo(dumps(history_object(found)))
    else:
        show_lines(history_lines(found))
    if not gathered.saved:
        typer.echo(
            f"note: {folder / INDEX} cannot be written: the next call reads everything again", err=True
        )
    if report is not None and not json:
        typer.echo(f"report: {report}")
