"""The verbs about replication: copy now, and take over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from linerate.cli.array.reach import Json, Token, Wait, Which, Yes, carried_out, confirm, reach, tell
from linerate.errors import PeerError

if TYPE_CHECKING:
    from linerate.array.control import ControlClient
    from linerate.array.control.report import ReplicationReport

_Name = Annotated[str, typer.Argument(metavar="REPLICATION", help="Its name in the array file.")]


def replicate(
    replication: _Name,
    wait: Wait = True,
    array: Which = None,
    token_file: Token = None,
    json: Json = False,
) -> None:
    """Copy the volumes of a replication to its partner, all of them as they are at this instant."""
    client = reach(array, token_file)
    made = carried_out(client, "replicate", {"replication": replication})
    tell(made, json, f"{replication} is being copied")
    if wait and not json:
        _await(client, replication, f"{replication}: the partner has it all")


def promote(
    replication: _Name,
    force: Annotated[
        bool,
        typer.Option("--force", help="Although the partner does not answer; what has not arrived is lost."),
    ] = False,
    yes: Yes = False,
    array: Which = None,
    token_file: Token = None,
    json: Json = False,
) -> None:
    """Make this array's copy the one that hosts use; the partner's becomes the copy.

    The partner sends what is missing and keeps its hosts out before hosts are let in here.
    """
    lost = "What the partner has not sent yet is lost" if force else "The partner's hosts lose it"
    confirm(f"Hosts will use {replication} here. {lost}. Promote it?", yes)
    client = reach(array, token_file)
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
    """
    lost = "Hosts lose it here, and what they wrote here since the last common point will be lost"
    confirm(f"{replication} becomes the copy. {lost}. Demote it?", yes)
    made = carried_out(reach(array, token_file), "demote", {"replication": replication})
    tell(made, json, f"{replication}: this array holds the copy now")


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
        raise PeerError(
            f"{name}: {ended.error}", "what was copied counts: linerate array replicate goes on there"
        )
    typer.echo(done)
