"""`linerate compare`: two sets of runs side by side, and conditions that make a script fail."""

from __future__ import annotations

from dataclasses import asdict
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linerate.errors import UserError, quote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linerate.analysis import ConditionResult
    from linerate.results import RunDirectory

CONDITION_HOLDS = 3
"""Exit code: a condition of --fail-if holds."""


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
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            help='Exit code 3 if this holds in a step: METRIC OP CHANGE, for instance "iops < -5%". '
            "May be given several times.",
        ),
    ] = None,
    junit: Annotated[
        Path | None,
        typer.Option("--junit", metavar="FILE", help="Write the results of --fail-if as JUnit XML."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the file of --junit if it exists.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")] = False,
) -> None:
    """Compare a run with a baseline, step by step; several runs of both give confidence bounds.

    With --fail-if: exit code 3 if a condition holds, 1 if a condition could not be judged. With several runs on both
    sides a condition holds only if the 95 % interval of the change excludes the limit.
    """
    if len(runs) != 2:
        raise UserError(
            f"compare takes two runs, {len(runs)} given",
            "linerate compare BASELINE CANDIDATE [--base RUN] [--with RUN]",
        )
    if junit is not None and not fail_if:
        raise UserError("--junit has nothing to report without --fail-if", 'add --fail-if "iops < -5%"')
    from linerate.analysis import compare_runs, judge_conditions, parse_condition
    from linerate.cli.console import console, show_lines
    from linerate.cli.numbers.outfile import consent_to_replace, write_file
    from linerate.report import comparison_lines, condition_lines, junit_xml
    from linerate.results import RunDirectory

    conditions = [parse_condition(text) for text in fail_if or ()]
    baseline = [RunDirectory.open(path) for path in (runs[0], *(base or ()))]
    candidate = [RunDirectory.open(path) for path in (runs[1], *(more or ()))]
    _require_different([*baseline, *candidate])
    if conditions:
        _require_results([*baseline, *candidate])
    if junit is not None:
        consent_to_replace([junit], overwrite)
    comparison = compare_runs(baseline, candidate)
    results = judge_conditions(conditions, comparison)
    if junit is not None:
        write_file(junit, junit_xml(results))
    if json:
        typer.echo(dumps({**asdict(comparison), "conditions": [asdict(result) for result in results]}))
    else:
        out = console()
        width = out.width if out.is_terminal else None
        show_lines([*comparison_lines(comparison, width), *condition_lines(results)])
    if conditions:
        _end(results)


def _require_different(runs: Sequence[RunDirectory]) -> None:
    """Raises UserError for a run that is named twice: it does not differ from itself, and is no second measurement."""
    seen: dict[Path, Path] = {}
    for run in runs:
        first = seen.setdefault(run.path.resolve(), run.path)
        if first is not run.path:
            also = "" if first == run.path else f", once as {first}"
            raise UserError(
                f"{run.path} is given twice{also}: a run cannot be compared with itself",
                "give each run once: linerate compare BASELINE CANDIDATE [--base RUN] [--with RUN]",
            )


def _require_results(runs: Sequence[RunDirectory]) -> None:
    """Raises UserError for a run that did not end well: a script must not pass on it."""
    for run in runs:
        if run.state != "complete":
            raise UserError(f"{run.path} is {run.state}: no condition can be judged", "repeat the run")
        if run.manifest.validity and run.manifest.validity.stamp == "void":
            raise UserError(
                f"{run.path} is void: no condition can be judged",
                f"linerate check {quote(run.path)} says why",
            )


def _end(results: Sequence[ConditionResult]) -> None:
    if not results:
        raise UserError("the baseline has no step: no condition can be judged", "give a run with results")
    outcomes = {result.outcome for result in results}
    if "holds" in outcomes:
        raise typer.Exit(CONDITION_HOLDS)
    if "not judged" in outcomes:
        raise typer.Exit(1)
