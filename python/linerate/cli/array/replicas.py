"""The verbs about replication: copy now, and take over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from linerate.cli.array.reach import Json, Token, Wait, Which, Yes, carried_out, confirm, reach, tell
from linerate.errors import PeerError

if TYPE_CHECKING:
    from linerate.array.control import ControlClient
    from linerate.array.control.report import ReplicationReport

    pass

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
        _await(client, replication)


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
    """Make this array's copy the one that hosts write to; the partner's becomes the copy."""
    lost = " What the partner has not sent yet is lost." if force else ""
    confirm(f"Hosts will write to this array's copy of {replication}.{lost} Promote it?", yes)
    made = carried_out(reach(array, token_file), "promote", {"replication": replication, "force": force})
    tell(made, json, f"{replication}: hosts write here now")


def _await(client: ControlClient, name: str) -> None:
    """Tells how far the copy is. Raises PeerError when it fails."""
    from linerate.cli.array.follow import follow

    def look() -> tuple[ReplicationReport | None, tuple[str, float] | None]:
        found = next((one for one in client.report().replications if one.name == name), None)
        if found is None or found.state in ("idle", "failed"):
            return found, None
        rate = f" at {found.rate_bytes_per_s / (1 << 20):.1f} MB/s" if found.rate_bytes_per_s else ""
        return found, (f"{found.state} {name}{rate}", found.done or 0.0)

    ended = follow(look)
    if ended is not None and ended.state == "failed":
        raise PeerError(
            f"{name}: {ended.error or 'the copy failed'}",
            "it goes on where it stopped: linerate array replicate",
        )
    typer.echo(f"{name}: the partner has it all")
