"""`linerate compare`: two sets of runs side by side."""

from __future__ import annotations

from dataclasses import asdict
from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from linerate.errors import UserError


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN RUN", help="Baseline and candidate; for more runs see --with."),
    ],
    more: Annotated[
        list[Path] | None,
        typer.Option("--with", metavar="RUN", help="Another run of the candidate."),
    ] = None,
    base: Annotated[
        list[Path] | None, typer.Option("--base", metavar="RUN", help="Another run of the baseline.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")] = False,
) -> None:
    """Compare a run with a baseline, step by step; several runs of both give confidence bounds."""
    if len(runs) != 2:
        raise UserError(
            f"compare takes two runs, {len(runs)} given",
            "linerate compare BASELINE CANDIDATE [--base RUN] [--with RUN]",
        )
    from linerate.analysis import compare_runs
    from linerate.report import comparison_lines
    from linerate.results import RunDirectory

    baseline = [RunDirectory.open(path) for path in (runs[0], *(base or ()))]
    candidate = [RunDirectory.open(path) for path in (runs[1], *(more or ()))]
    comparison = compare_runs(baseline, candidate)
    typer.echo(dumps(asdict(comparison)) if json else "\n".join(comparison_lines(comparison)))
