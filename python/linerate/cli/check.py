"""`linerate check`: doubts a result, with reasons."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linerate.errors import UserError, quote


def check(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")],
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")] = False,
) -> None:
    """Check whether a result is reliable, and say why not. Exit code 1 if it is void."""
    from linerate.analysis import check_run
    from linerate.report import validity_lines
    from linerate.results import RunDirectory

    if (run / "study.json").exists():
        raise UserError(f"{run}: a study directory", f"`linerate study check {quote(run)}` checks it")
    opened = RunDirectory.open(run)
    validity = check_run(opened)
    lines = validity_lines(validity, steps=len(opened.manifest.steps))
    typer.echo(validity.model_dump_json() if json else "\n".join(lines))
    if validity.stamp == "void":
        raise typer.Exit(1)
