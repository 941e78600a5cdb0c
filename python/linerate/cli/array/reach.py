"""How a verb finds the array that it is about, and asks before it destroys something."""

from __future__ import annotations

import re
import sys
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linerate.errors import LinerateError, UserError

if TYPE_CHECKING:
    from linerate.array.control import ControlClient

TOKEN_VARIABLE = "LINERATE_ARRAY_TOKEN_FILE"

Which = Annotated[
    str | None,
    typer.Option(
        "--array",
        metavar="NAME|URL",
        help="Which array: its name, its process, or the URL of its control API elsewhere.",
        envvar="LINERATE_ARRAY",
        show_envvar=False,
    ),
]
Token = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        metavar="FILE",
        help="The token that belongs to a URL.",
        envvar=TOKEN_VARIABLE,
        show_envvar=False,
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object.")]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Stay until it is done.")]

REPLY_SCHEMA = "linerate.array-reply/1"


def reach(which: str | None, token_file: Path | None) -> ControlClient:
    """The array of this machine with that name, or the one behind a URL. Raises UserError."""
    from linerate.array.control import ControlClient, find, read_token

    if which is not None and "://" in which:
        if token_file is None:
            raise UserError(
                f"--array {which}: its token is missing", f"name its file: --token-file, or {TOKEN_VARIABLE}"
            )
        return ControlClient(which, token=read_token(token_file))
    return ControlClient.at(find(which))


def confirm(question: str, yes: bool) -> None:
    """Asks on a terminal; without one, only --yes is an answer. Raises UserError for anything but yes.

    The last sentence is the question, the ones before say what will happen.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        what = question.rpartition(". ")[0]
        raise UserError(f"{what}. No terminal to confirm on", "add --yes if that is what you want")
    if not typer.confirm(question):
        raise UserError("nothing was changed", "add --yes to do it without being asked")


def volume_and_snapshot(text: str) -> tuple[str, str]:
    """`volume@snapshot` in two. Raises UserError."""
    volume, at, snapshot = text.partition("@")
    if not (volume and at and snapshot):
        raise UserError(
            f"{text}: not a snapshot", "write VOLUME@SNAPSHOT; `linerate array show` names the snapshots"
        )
    return volume, snapshot


def amount(option: str, text: str) -> int:
    """Bytes of a size. Raises UserError."""
    from linerate.quantity import parse_size

    try:
        return parse_size(text)
    except ValueError as error:
        raise UserError(f"{option}: {error}", "see `linerate array --help`") from error


def carried_out(client: ControlClient, verb: str, fields: dict[str, Any]) -> dict[str, Any]:
    """The reply to a command, whose fields are checked before anything is sent. Raises LinerateError."""
    from linerate.array.control import parse_command

    try:
        return client.send(parse_command(verb, fields))
    except LinerateError as error:
        raise type(error)(in_options(error.message), in_options(error.hint)) from error


_OPTIONS = {
    "force": "--force",
    "lun": "--lun",
    "model": "--model",
    "overwrite": "--overwrite",
    "path": "--path",
    "power_protected": "--power-protected",
    "sector_bytes": "--sector",
    "size_bytes": "the size",
    "sparse": "--sparse",
    "target": "--target",
    "with_snapshots": "--with-snapshots",
    "write_cache": "--write-cache",
}
"""Fields of commands as the array calls them -> how they are called on the command line."""


def in_options(text: str) -> str:
    """What an array says of the fields of a command, in the words of the command line."""
    return _FIELD.sub(lambda found: _OPTIONS.get(found[1], found[0]), text)


_FIELD = re.compile(r"`(\w+)`")


def tell(reply: dict[str, Any], json: bool, text: str) -> None:
    """What a command brought, for a program or for a person."""
    typer.echo(dumps({"schema": REPLY_SCHEMA, **reply}) if json else text)
