"""`linerate study recommend`: the recommended configuration of a study, as a table or in a form that sets it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from linerate.cli.console import show_lines
from linerate.cli.numbers.outfile import consent_to_replace, write_file
from linerate.errors import UserError
from linerate.recommend import Configuration, configuration_text, recommended_configuration, table_lines
from linerate.study import StudyDirectory
from linerate.study.judge import refuse_choosing


def show_recommended(
    directory: StudyDirectory, form: str | None, ports: Sequence[str], out: Path | None, overwrite: bool
) -> None:
    """Prints the table, or the text of a form, or writes it to a file that is not replaced unasked."""
    refuse_choosing(directory)
    configuration = recommended_configuration(directory)
    if out is None and form is None:
        show_lines(table_lines(configuration))
        return
    text = _text(configuration, form, ports)
    if out is None:
        typer.echo(text, nl=False)
        return
    if out.resolve().is_relative_to(directory.path.resolve()):
        raise UserError(f"{out}: a result does not change after its end", "name a file in another folder")
    consent_to_replace([out], overwrite)
    write_file(out, text.encode())
    typer.echo(out)


def _text(configuration: Configuration, form: str | None, ports: Sequence[str]) -> str:
    if form is None:
        return "\n".join(table_lines(configuration)) + "\n"
    return configuration_text(configuration, form, ports)
