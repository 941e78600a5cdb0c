"""`--page`: a web page beside a command, for as long as the command lasts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Literal

import typer

Page = Annotated[
    bool, typer.Option("--page", help="Show it as a web page too, on this machine; prints the address.")
]


@contextmanager
def with_page(kind: Literal["directory", "array"], name: str, *, wanted: bool, json: bool) -> Iterator[None]:
    """Shows a directory or an array. Prints the address; beside JSON lines it goes to standard error."""
    if not wanted:
        yield
        return
    from linerate.watch.beside import page_beside

    with page_beside(kind, name) as url:
        typer.echo(f"page: {url}", err=json)
        yield
