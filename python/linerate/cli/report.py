"""`linerate report`: the result table and the HTML report of a run that was made earlier."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")],
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write the HTML report here.")
    ] = None,
    vdbench: Annotated[
        Path | None,
        typer.Option("--vdbench-output", metavar="DIR", help="Write vdbench's report files here."),
    ] = None,
) -> None:
    """Show a run's result table; write its HTML report (once into the run directory, or to --html)."""
    from linerate.analysis import check_run, summarise
    from linerate.cli.console import show_result
    from linerate.report import write_report, write_vdbench_output
    from linerate.results import RunDirectory

    opened = RunDirectory.open(run)
    # The stamp is that of the day the run was closed, unless its files are no longer what they were then.
    sound = opened.manifest.validity if not opened.damage() else None
    show_result(summarise(opened), sound or check_run(opened))
    inside = opened.path / "report.html"
    path = write_report(opened, html) if html is not None or not inside.exists() else inside
    typer.echo(f"report: {path}")
    if vdbench is not None:
        write_vdbench_output(opened, vdbench)
        typer.echo(f"vdbench output: {vdbench}")
