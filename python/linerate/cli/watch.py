"""`linerate watch`: a web page of a run, a study, an array or a lab, live or finished."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linerate.cli.array.reach import Token, reach
from linerate.cli.place import RUNS
from linerate.errors import UserError

if TYPE_CHECKING:
    from linerate.watch import Source

NICENESS = 10
"""A load on this machine comes first."""


def watch(
    directory: Annotated[
        Path | None,
        typer.Argument(metavar="[DIR]", help="A run or study directory; without it the newest in runs."),
    ] = None,
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65_535, help="Port; 0: a free one.")] = 0,
    wait: Annotated[bool, typer.Option("--wait", help="DIR may be made later.")] = False,
    array: Annotated[
        str | None,
        typer.Option("--array", metavar="NAME|URL", help="An array instead: its name, process or URL."),
    ] = None,
    token_file: Token = None,
    lab: Annotated[
        str | None,
        typer.Option("--lab", metavar="NAME", help="A virtual SAN that is up; a click pulls a cable."),
    ] = None,
) -> None:
    """Show a run, a study, an array (--array) or a lab (--lab) as a web page that moves; also /metrics for Prometheus.

    The page is for browsers on this machine; the address has a token. From elsewhere: ssh -L PORT:127.0.0.1:PORT HOST.
    """
    from linerate.watch import PageServer

    server = PageServer(_source(directory, array, token_file, lab, wait=wait), port)
    typer.echo(f"page: {server.url}\nserving until Ctrl-C")
    os.nice(NICENESS)
    server.run()


def _source(
    directory: Path | None, array: str | None, token_file: Path | None, lab: str | None, *, wait: bool
) -> Source:
    from linerate.watch import ArraySource, DirectorySource, LabSource, directory_to_watch

    for option, given in (("--array", array), ("--lab", lab)):
        if given is not None and (directory is not None or wait):
            raise UserError(f"{option} goes with no directory and no --wait", "give one of the two")
    if array is not None and lab is not None:
        raise UserError(
            "--array and --lab are two pages", "give one of them, and call `linerate watch` twice"
        )
    if lab is not None:
        return LabSource(lab)
    if array is None:
        return DirectorySource(directory_to_watch(directory, RUNS, wait=wait))
    return ArraySource(reach(array, token_file))
