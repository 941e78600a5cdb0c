"""`linerate advise`: a host, switches, an array, a topology or a finished study held against published practice."""

from __future__ import annotations

from enum import StrEnum
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linerate.errors import UserError

if TYPE_CHECKING:
    from linerate.advice import AuditResult, AuditSources


class FailOn(StrEnum):
    """From which severity on a broken rule makes the exit code 1."""

    MUST = "must"
    SHOULD = "should"
    MAY = "may"


_Places = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[TOPOLOGY|STUDY|ARRAY..]",
        help="Topology files, study directories, arrays (iscsi://HOST[:PORT], also with /TARGET); none: this host.",
    ),
]
_Device = Annotated[
    list[str] | None,
    typer.Option("--device", "-d", metavar="NAME", help="A port of this host to the SAN; may be repeated."),
]
_Facts = Annotated[
    list[Path] | None,
    typer.Option("--facts", metavar="FILE", help="Facts of another host: --facts-script or --show-facts."),
]
_Switch = Annotated[
    list[str] | None,
    typer.Option(
        "--switch", metavar="[KIND:]FILE", help="A `show running-config`; KIND: ios, nxos, dell, eos."
    ),
]
_Vlan = Annotated[
    int | None,
    typer.Option("--vlan", metavar="N", min=1, max=4094, help="The SAN's VLAN: check its switch ports only."),
]
_Image = Annotated[
    list[Path] | None, typer.Option("--image", metavar="FILE", help="A backup image, VHDX or VHD.")
]
_Answer = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="What no device tells, such as ups=yes; may be repeated."),
]


def advise(
    places: _Places = None,
    device: _Device = None,
    facts: _Facts = None,
    switch: _Switch = None,
    vlan: _Vlan = None,
    image: _Image = None,
    answer: _Answer = None,
    fail_on: Annotated[FailOn, typer.Option(help="Exit code 1 from this severity on.")] = FailOn.MUST,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")] = False,
    show_facts: Annotated[
        bool, typer.Option("--show-facts", help="Print the facts as JSON, without rules.")
    ] = False,
    facts_script: Annotated[
        bool,
        typer.Option("--facts-script", help="Print a PowerShell script that reads a Windows host's facts."),
    ] = False,
    apply: Annotated[
        bool,
        typer.Option("--apply", help="Change the settings of this host that mend broken rules; asks first."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --apply: change without a question.")] = False,
) -> None:
    """Check a SAN against published practice and say what to change. Exit code 1 if a must fails.

    Nothing is changed without --apply; `linerate host restore` undoes what --apply changed. What cannot be read is
    unknown, never right. docs/advise.md lists the rules.
    """
    from linerate import advice

    if facts_script:
        typer.echo(advice.facts_script(), nl=False)
        return
    sources = advice.AuditSources(
        places or (), facts or (), switch or (), image or (), device or (), vlan, answer or ()
    )
    if vlan is not None and not switch:
        raise UserError("--vlan is about the ports of a switch", "add --switch, or leave it out")
    _check_apply(sources, apply=apply, yes=yes, other=json or show_facts)
    result = advice.audit(sources)
    if show_facts:
        typer.echo(dumps(advice.facts_object(result.sheet), indent=1))
        return
    if json:
        typer.echo(dumps(advice.advice_object(result)))
    else:
        _show(result)
    if apply:
        from linerate.cli.advice.apply import mended

        result = mended(result, sources, yes=yes)
    severities = advice.SEVERITIES[: advice.SEVERITIES.index(fail_on.value) + 1]
    if advice.is_broken(result.outcomes, severities):
        raise typer.Exit(1)


def _check_apply(sources: AuditSources, *, apply: bool, yes: bool, other: bool) -> None:
    if yes and not apply:
        raise UserError("--yes is about --apply", "add --apply, or leave it out")
    if apply and other:
        raise UserError("--apply tells what it does as text", "leave out --json and --show-facts")
    if apply and not sources.reads_this_host:
        raise UserError(
            "--apply changes settings of this host, and the audit is not about it",
            "name its ports with --device, or leave the other sources out",
        )


def _show(result: AuditResult) -> None:
    """The report: coloured on a terminal and folded to its width, plain in a pipe."""
    from linerate.advice import advice_lines
    from linerate.cli.console import HANGING, console, folded

    out = console()
    for style, line in advice_lines(result):
        text = folded(line, out.width if out.is_terminal else None, HANGING)
        out.print(text, style=style or None, soft_wrap=True, markup=False)
