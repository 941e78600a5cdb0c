"""`linerate studies`: the studies that come with Linerate."""

from __future__ import annotations

from json import dumps
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from linerate.study import Study

SCHEMA = "linerate.studies/1"
_HEADINGS = ("study", "takes", "with --quick", "needs", "what it compares")


def studies(json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False) -> None:
    """List the studies: what they compare, how long they take, and what they need."""
    from linerate.quantity import span_text
    from linerate.study import StudyPlan, load_study, shipped_studies
    from linerate.volumes import columns

    rows: list[tuple[str, ...]] = []
    objects = []
    for name in shipped_studies():
        study = load_study(name)
        whole = StudyPlan(study).duration()
        quick = StudyPlan(load_study(name, quick=True)).duration()
        rows.append(
            (
                name,
                span_text(whole.least_s, whole.most_s),
                span_text(quick.least_s, quick.most_s),
                needs(study),
                study.title,
            )
        )
        times = {"least_s": whole.least_s, "most_s": whole.most_s, "quick_most_s": quick.most_s}
        objects.append({"name": name, "title": study.title, "needs": needs(study), **times})
    if json:
        typer.echo(dumps({"schema": SCHEMA, "studies": objects}))
        return
    for line in columns([_HEADINGS, *rows], most=None):
        typer.echo(line.removeprefix("  "))
    typer.echo(
        "run one: linerate run NAME --dry-run; a copy of its file with other hosts runs on your own SAN"
    )


def needs(study: Study) -> str:
    """What it runs on."""
    kinds = []
    for san in study.sans:
        if san.topology is None:
            kinds.append("your hosts")
        elif san.clock == "virtual":
            kinds.append("nothing (computed)")
        else:
            kinds.append("virtual SAN")
    return ", ".join(dict.fromkeys(kinds))
