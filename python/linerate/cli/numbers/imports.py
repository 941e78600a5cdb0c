"""`linerate import`: results of other tools as run directories."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linerate.errors import UserError

if TYPE_CHECKING:
    from linerate.imported import ReadFile


class FileKind(enum.StrEnum):
    """What --as takes."""

    FIO = "fio"
    VDBENCH = "vdbench"
    IOMETER = "iometer"
    DISKSPD = "diskspd"


def import_results(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Result files: fio's JSON, vdbench's flatfile.html, Iometer's CSV, diskspd's XML.",
        ),
    ],
    kind: Annotated[
        FileKind | None,
        typer.Option(
            "--as", metavar="KIND", help="fio, vdbench, iometer or diskspd; else the content tells it."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="DIR",
            help="The run directory; of several files, the folder for one run directory each. "
            "Without it: a new folder under runs.",
        ),
    ] = None,
) -> None:
    """Read results of fio, vdbench, Iometer or diskspd, and write a run directory for each file.

    compare, history, report, check and export read these directories. What a tool does not give is shown as "-".
    """
    from linerate.analysis import check_run, limit_of, summarise
    from linerate.cli.console import show_result
    from linerate.imported import read_file, write_imported
    from linerate.imported.text import one_line

    read = [read_file(path, kind) for path in files]
    for one, place in zip(read, _places(read, output), strict=True):
        path = place if place is not None else _new_place(one)
        run = write_imported(
            one,
            path,
            now=datetime.now().astimezone(),
            judge=check_run,
            command=("linerate", "import", one_line(one.source.path.name)),
        )
        for note in one.run.notes:
            typer.echo(f"note: {one.source.path}: {one_line(note)}", err=True)
        summaries = summarise(run)
        typer.echo(f"{one.source.path}: {one.kind.title}")
        show_result(summaries, run.manifest.validity, limit_of(run, summaries))
        typer.echo(f"results: {run.path}")


def _places(read: Sequence[ReadFile], output: Path | None) -> list[Path | None]:
    """Where each run goes; None: a new folder under runs. Nothing is written if one of them is in use."""
    from linerate.filename import file_name

    if output is None:
        return [None] * len(read)
    several = len(read) > 1
    places = [output / file_name(one.source.path.stem) if several else output for one in read]
    if len(set(places)) < len(places):
        raise UserError(
            "two of the files have the same name, and so would their run directories",
            "import them one by one, each with --output",
        )
    for place in places:
        if place.exists() and not (place.is_dir() and not any(place.iterdir())):
            raise UserError(f"{place} exists", "give another directory: a run is written once")
    return list(places)


def _new_place(read: ReadFile) -> Path:
    from linerate.cli.place import place_of

    return place_of(f"{read.run.tool}-{read.source.path.stem}")
