"""`linerate discover`: what an array or a file server offers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from json import dumps
from typing import Annotated, Any

import typer

from linerate.errors import LinerateError, UserError

_PIPE = "/IPC$/srvsvc"
"""What is asked for the list of shares."""


def discover(
    portal: Annotated[
        str,
        typer.Argument(
            metavar="HOST",
            help="HOST, HOST:PORT, iscsi://[user%secret@]HOST[:PORT], also with /TARGET, or "
            "smb://[user[%secret]@]HOST[:PORT].",
        ),
    ],
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")] = False,
    timeout: Annotated[
        float, typer.Option(metavar="S", min=0.001, max=1e6, help="Seconds for each login.")
    ] = 15.0,
) -> None:
    """List the targets behind a portal with their portals, LUNs and capacities, or the shares of a file server.

    User and secret may also be in LIBISCSI_CHAP_USERNAME and LIBISCSI_CHAP_PASSWORD, of a file server in
    LINERATE_SMB_USER and LINERATE_SMB_PASSWORD. If no target lets us in, or the server refuses the user, the command
    fails: exit code 2 for a wrong user or secret, 1 for what is the array's or the server's fault.
    """
    from linerate.volumes.targets import discovered, fail_if_shut_out
    from linerate.workload.url import parse_iscsi_portal, smb_url_meant

    if (server := smb_url_meant(portal)) is not None:
        raise UserError(f"{portal}: a file server, in another form", f"write {_server_of(server)}")
    if portal.lower().startswith("cifs:"):
        raise UserError("cifs://: no such kind of server", "write smb://user@HOST")
    if portal.lower().startswith("smb:"):
        _shares(portal, json, timeout)
        return
    place = parse_iscsi_portal(_as_url(portal), os.environ)
    targets = discovered(place.url, timeout)
    if json:
        typer.echo(dumps({"schema": "linerate.discover/1", "targets": targets}))
    else:
        for line in _lines(targets):
            typer.echo(line)
    fail_if_shut_out(targets)


def _shares(text: str, as_json: bool, timeout_s: float) -> None:
    from linerate import _core
    from linerate.workload.url import parse_smb_server

    server = parse_smb_server(text, os.environ)
    secret = server.secret.get_secret_value() if server.secret is not None else None
    try:
        shares = _core.shares(server.url, server.user, secret, dumps({"login_timeout_s": timeout_s}))
    except LinerateError as error:
        # The user named the server alone.
        raise type(error)(error.message.replace(f"{server.url}{_PIPE}", server.url), error.hint) from error
    if as_json:
        typer.echo(dumps({"schema": "linerate.shares/1", "server": server.url, "shares": shares}))
        return
    width = max((len(share["name"]) for share in shares), default=0)
    for share in shares:
        hidden = " (special)" if share["special"] else ""
        typer.echo(f"{share['name']:<{width}}  {share['type'] + hidden:<14}  {share['comment']}".rstrip())
    if not shares:
        typer.echo("no shares: the server shows none to this user")


def _server_of(url: str) -> str:
    return "/".join(url.split("/")[:3])


def _as_url(text: str) -> str:
    if "://" in text:
        return text
    is_bare_ipv6 = text.count(":") > 1 and "[" not in text
    return f"iscsi://[{text}]" if is_bare_ipv6 else f"iscsi://{text}"


def _lines(targets: Sequence[Mapping[str, Any]]) -> list[str]:
    from linerate.volumes.targets import GIVE_SECRET

    if not targets:
        return ["no targets: the array shows none to this initiator name"]
    lines = []
    for target in targets:
        lines.append(target["iqn"])
        lines.extend(f"  portal {portal}" for portal in target["portals"])
        lines.extend(f"  {_lun(lun)}" for lun in target["luns"])
        if not target["luns"]:
            lines.append(f"  no LUNs{': ' + target['failure'] if target['failure'] else ''}")
            if target["wrong_credentials"]:
                lines.append(f"  -> {GIVE_SECRET}")
    return lines


def _lun(lun: Mapping[str, Any]) -> str:
    if lun["failure"]:
        place, _, rest = lun["failure"].partition(": ")
        return f"LUN {lun['lun']:<5} {rest if place.startswith('iscsi://') else lun['failure']}"
    names = " ".join(str(lun[key]).strip() for key in ("vendor", "product", "serial") if lun.get(key))
    return (
        f"LUN {lun['lun']:<5} {size_text(lun['capacity_bytes']):>10}  {lun['block_bytes']} B blocks  {names}"
    )


def size_text(size_bytes: int) -> str:
    """A size as people say it, in units of 1024."""
    size = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} TiB"
