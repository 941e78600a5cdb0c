"""`linerate export`: the figures of a run or a study as files for other programs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linerate.errors import UserError
from linerate.filename import file_name

if TYPE_CHECKING:
    import polars as pl

    from linerate.report.export import Exported, Format

_STDOUT = Path("-")


def export(
    directory: Annotated[Path, typer.Argument(metavar="RUN|STUDY", help="A run or study directory.")],
    csv: Annotated[bool, typer.Option("--csv", help="CSV (RFC 4180), a file per table.")] = False,
    parquet: Annotated[bool, typer.Option("--parquet", help="Parquet, a file per table.")] = False,
    xlsx: Annotated[bool, typer.Option("--xlsx", help="One Excel file, a sheet per table.")] = False,
    table: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this table: intervals, usage, steps or verdicts.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE|DIR",
            help="A folder, or a file when there is one file to write; - is standard output. "
            "Without it: the current folder.",
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that exist.")] = False,
) -> None:
    """Write the figures of a run or a study as CSV, Parquet or Excel files.

    The tables are intervals, usage, steps and, of a study, verdicts. Units are in the column names; mib_s counts 2^20
    bytes per second.
    """
    kind = _format(csv=csv, parquet=parquet, xlsx=xlsx)
    exported = _exported(directory)
    for note in exported.notes:
        typer.echo(f"note: {note}", err=True)
    tables = _chosen(exported.tables, table)
    from linerate.cli.numbers.outfile import consent_to_replace, write_file

    stem = file_name(directory.resolve().name)
    files = _encoded(tables, kind, stem)
    if out == _STDOUT:
        _print(list(files.values()))
        return
    places = _places(list(files), out)
    inside = directory.resolve()
    if any(place.resolve().is_relative_to(inside) for place in places.values()):
        raise UserError(
            f"{directory}: a result does not change after its end", "give another folder with --out"
        )
    consent_to_replace(places.values(), overwrite)
    for name, place in places.items():
        write_file(place, files[name])
        typer.echo(place)


def _format(*, csv: bool, parquet: bool, xlsx: bool) -> Format:
    wanted: list[Format] = []
    wanted += ["csv"] if csv else []
    wanted += ["parquet"] if parquet else []
    wanted += ["xlsx"] if xlsx else []
    if len(wanted) != 1:
        raise UserError("export writes one format at a time", "give one of --csv, --parquet and --xlsx")
    return wanted[0]


def _exported(directory: Path) -> Exported:
    if (directory / "study.json").exists():
        from linerate.report.export.study import exported_study
        from linerate.study import StudyDirectory

        return exported_study(StudyDirectory.open(directory))
    from linerate.report.export import exported_run
    from linerate.results import RunDirectory

    return exported_run(RunDirectory.open(directory))


def _chosen(tables: Mapping[str, pl.DataFrame], name: str | None) -> Mapping[str, pl.DataFrame]:
    if name is not None and name not in tables:
        raise UserError(f"there is no table {name} here", f"--table takes {', '.join(tables) or 'nothing'}")
    if not tables:
        raise UserError("there is nothing to export yet", "no run of this study can be read")
    return tables if name is None else {name: tables[name]}


def _encoded(tables: Mapping[str, pl.DataFrame], kind: Format, stem: str) -> dict[str, bytes]:
    """File name -> content."""
    from linerate.report.export import encoded, encoded_workbook

    if kind == "xlsx":
        return {f"{stem}.xlsx": encoded_workbook(tables)}
    return {f"{stem}-{name}.{kind}": encoded(table, kind) for name, table in tables.items()}


def _print(contents: list[bytes]) -> None:
    if len(contents) != 1:
        raise UserError("standard output takes one table", "name it, for instance --table steps")
    sys.stdout.flush()
    sys.stdout.buffer.write(contents[0])
    sys.stdout.buffer.flush()


def _places(names: list[str], out: Path | None) -> dict[str, Path]:
    """Where each file goes."""
    if out is None or out.is_dir():
        return {name: (out or Path()) / name for name in names}
    if out.suffix.lower() in (".csv", ".parquet", ".xlsx"):
        if len(names) > 1:
            raise UserError(
                f"{out} is one file, and there are {len(names)} tables", "give a folder, or --table NAME"
            )
        return {names[0]: out}
    return {name: out / name for name in names}
