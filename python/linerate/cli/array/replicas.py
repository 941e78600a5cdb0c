"""The verbs about replication: who this array is, copy now, take over, and put roles right."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linerate.cli.array.reach import Json, Token, Wait, Which, Yes, carried_out, confirm, reach, tell
from linerate.errors import PeerError, UserError

if TYPE_CHECKING:
    from linerate.array.control import ControlClient
    from linerate.array.control.report import ReplicationReport

_Name = Annotated[str, typer.Argument(metavar="REPLICATION", help="Its name in the array file.")]


def identity(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="The array file.")],
    json: Json = False,
) -> None:
    """Print the array's certificate for its partners. It makes an identity if there is none.

    Partners need it in a file that `certificate` of their [[partners]] table names. It is no secret; the
    identity file is.
    """
    from linerate.array import load_array_file
    from linerate.array.control.identity import own_identity

    config = load_array_file(file)
    if config.control.identity is None:
        raise UserError(
            f"{file}: the array has no identity", 'name its file: identity = "..." under [control]'
        )
    own = own_identity(Path(config.control.identity), config.name)
    if json:
        tell({"name": config.name, "identity": own.identity, "certificate": own.pem}, json, "")
        return
    typer.echo(own.pem, nl=False)
    typer.echo(f"{config.name} is {own.identity}", err=True)


def replicate(
    replication: _Name,
    wait: Wait = True,
    array: Which = None,
    token_file: Token = None,
    json: Json = False,
) -> None:
    """Copy the volumes of a replication to its partner, all at the same instant."""
    client = reach(array, token_file)
    made = carried_out(client, "replicate", {"replication": replication})
    tell(made, json, f"{replication} is being copied")
    if wait and not json:
        _await(client, replication, f"{replication}: the partner has it all")


def promote(
    replication: _Name,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Even if the partner does not answer; data that have not arrived are lost."
        ),
    ] = False,
    yes: Yes = False,
    array: Which = None,
    token_file: Token = None,
    json: Json = False,
) -> None:
    """Make this array's copy the one that hosts use; the partner's becomes the copy.

    The partner sends what is missing, keeps its hosts out and consents before hosts are let in here.
    """
    lost = "What the partner has not sent yet is lost" if force else "The partner's hosts lose it"
    client = _reach_with(replication, array, token_file)
    confirm(f"Hosts will use {replication} here. {lost}. Promote it?", yes)
    made = carried_out(client, "promote", {"replication": replication, "force": force})
    if json:
        tell(made, json, "")
        return
    _await(client, replication, f"{replication}: hosts use it here now")


def demote(
    replication: _Name,
    yes: Yes = False,
    array: Which = None,
    token_file: Token = None,
    json: Json = False,
) -> None:
    """Make this array's volumes the copy again, after the partner was promoted by force.

    What hosts wrote here since the last point that both arrays have is lost with the partner's next copy.
    Also gives up a promotion that waits for the partner.
    """
    client = _reach_with(replication, array, token_file)
    lost = "Hosts lose it here, and what they wrote here since the last common point will be lost"
    if any(one.name == replication and one.lag_s is None for one in client.report().replications):
        lost += ". The partner has no whole copy of it yet"
    confirm(f"{replication} becomes the copy. {lost}. Demote it?", yes)
    made = carried_out(client, "demote", {"replication": replication})
    tell(made, json, f"{replication}: this array holds the copy now")


def forget(
    replication: _Name,
    force: Annotated[
        bool, typer.Option("--force", help="Also the copy, although its volumes may be copied half.")
    ] = False,
    yes: Yes = False,
    array: Which = None,
    token_file: Token = None,
    json: Json = False,
) -> None:
    """End a replication on this array. Its volumes stay, as volumes like any other; the other array keeps its
    part."""
    lost = "Its volumes may be copied half" if force else "The next copy will be a first one"
    client = _reach_with(replication, array, token_file)
    confirm(f"{replication} is not replicated any more. {lost}. Forget it?", yes)
    made = carried_out(client, "forget", {"replication": replication, "force": force})
    tell(made, json, f"{replication}: this array does not know it any more")


def rejoin(
    replication: _Name,
    yes: Yes = False,
    array: Which = None,
    token_file: Token = None,
    json: Json = False,
) -> None:
    """Continue a replication after this array or its partner got a new identity.

    From then on only the partner that the array file names now takes part, with the certificate that it names
    now. To be done at both arrays, unless the partner is a new one.
    """
    client = _reach_with(replication, array, token_file)
    confirm(f"{replication} goes on with the array that the file names as its partner now. Rejoin?", yes)
    made = carried_out(client, "rejoin", {"replication": replication})
    tell(made, json, f"{replication}: its partner is {made['partner']} now")


def _reach_with(name: str, array: str | None, token_file: Path | None) -> ControlClient:
    """The array, if it has this replication, before any question is asked. Raises UserError."""
    client = reach(array, token_file)
    names = [one.name for one in client.report().replications]
    if name not in names:
        known = ", ".join(names) or "none"
        raise UserError(f"there is no replication {name}", f"replications of the array file: {known}")
    return client


def _await(client: ControlClient, name: str, done: str) -> None:
    """Tells how far the work on a replication is. Raises PeerError when it fails."""
    from linerate.cli.array.follow import follow

    def look() -> tuple[ReplicationReport | None, tuple[str, float] | None]:
        found = next((one for one in client.report().replications if one.name == name), None)
        if found is None or found.state in ("idle", "failed"):
            return found, None
        rate = f", {found.rate_bytes_per_s / (1 << 20):.1f} MB/s" if found.rate_bytes_per_s else ""
        why = f": {found.error}" if found.error else ""
        return found, (f"{found.state} {name}{rate}{why}", found.done or 0.0)

    ended = follow(look)
    if ended is not None and ended.state == "failed":
        error, _, hint = (ended.error or "").partition(" -> ")
        raise PeerError(
            f"{name}: {error}", hint or "what was copied counts: linerate array replicate goes on there"
        )
    typer.echo(done)
