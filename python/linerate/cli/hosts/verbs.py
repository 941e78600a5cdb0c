"""The verbs of `linerate hosts`: what other machines need to load volumes for this one."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from json import dumps
from typing import TYPE_CHECKING, Annotated

import typer

from linerate.cli.job import flags
from linerate.plural import plural

if TYPE_CHECKING:
    from linerate.cluster import Endpoint
    from linerate.cluster.installation import HostDone, HostFinding

app = typer.Typer(help="Set up other machines as load hosts, over SSH.", no_args_is_help=True)

_Names = Annotated[
    list[str], typer.Argument(metavar="HOST..", help="[user@]host; keys, ports: ~/.ssh/config.")
]
_FOLDER = "The folder there for all versions; default: ~/.local/share/linerate-hosts."
_Folder = Annotated[str | None, typer.Option("--folder", metavar="DIR", help=_FOLDER)]
_PYTHON = "Python there, of the version that runs here; default: found on the search path."
_Python = Annotated[str | None, typer.Option("--python", metavar="PATH", help=_PYTHON)]
_Json = Annotated[bool, typer.Option("--json", help="One JSON object per host.")]


@app.callback()
def _hosts() -> None:
    """Set up other machines as load hosts, over SSH: no root and no internet is needed there."""


@app.command()
def install(
    hosts: _Names,
    python: _Python = None,
    folder: _Folder = None,
    again: Annotated[bool, typer.Option("--again", help="Also where these very files are already.")] = False,
    json: _Json = False,
) -> None:
    """Bring this version of Linerate, with all it needs, into a folder of its own on each host.

    `linerate run --hosts` finds it there. `linerate hosts remove` removes it.
    """
    from linerate.cluster.installation import install, pack

    places = _places(hosts, python)
    where = _folder(folder)
    with pack() as bundle:
        if not json:
            typer.echo(
                f"sending {bundle.version} to {plural(len(places), 'host')}: {bundle.files:,} files, "
                f"{bundle.packed_bytes / 1e6:,.0f} MB, {bundle.unpacked_bytes / 1e6:,.0f} MB there"
            )
        _tell("install", install(places, bundle, where, again=again), json=json)


@app.command()
def check(
    hosts: _Names,
    python: _Python = None,
    folder: _Folder = None,
    hosts_address: flags.HostsAddress = None,
    hosts_ports: flags.HostsPorts = None,
    json: _Json = False,
) -> None:
    """Try everything that a run needs: SSH, Python, version, clock, free space, sudo, ports. Nothing is changed."""
    from linerate.cluster import PortRange
    from linerate.cluster.installation import check
    from linerate.cluster.installation.pack import own_digest

    places = _places(hosts, python)
    wanted = PortRange.parse(hosts_ports) if hosts_ports is not None else None
    digest, where = own_digest(), _folder(folder)

    def one(place: Endpoint) -> list[HostFinding]:
        return list(check(place, digest, folder=where, address=hosts_address, ports=wanted))

    with ThreadPoolExecutor(len(places)) as pool:
        found = list(pool.map(one, places))
    for place, findings in zip(places, found, strict=True):
        if json:
            typer.echo(dumps(_check_object(place.name, findings)))
            continue
        typer.echo(place.name)
        for finding in findings:
            typer.echo(f"  {finding.name:9}{finding.state:6}{finding.text}")
    if any(finding.state == "fails" for findings in found for finding in findings):
        raise typer.Exit(1)


@app.command()
def remove(
    hosts: _Names,
    python: _Python = None,
    folder: _Folder = None,
    every: Annotated[bool, typer.Option("--all", help="All versions that were installed so.")] = False,
    json: _Json = False,
) -> None:
    """Remove what `linerate hosts install` has brought: this version, or all. No other folder is touched."""
    from linerate.cluster.installation import remove

    _tell("remove", remove(_places(hosts, python), _folder(folder), every=every), json=json)


def _places(hosts: Sequence[str], python: str | None) -> tuple[Endpoint, ...]:
    from linerate.cluster import ssh_endpoints

    return ssh_endpoints(hosts, python)


def _folder(given: str | None) -> str:
    """Raises UserError for one that is neither absolute nor below the home folder there."""
    from linerate.cluster.hosts import INSTALLATIONS
    from linerate.errors import UserError

    if given is not None and not given.startswith(("/", "~")):
        raise UserError(
            f"--folder {given}: relative to what?", "begin it with / or ~/ (the home folder there)"
        )
    return given or INSTALLATIONS


def _check_object(host: str, findings: Sequence[HostFinding]) -> dict[str, object]:
    lines = [{"name": one.name, "state": one.state, "text": one.text} for one in findings]
    return {"schema": "linerate.hosts.check/1", "host": host, "findings": lines}


def _tell(verb: str, done: Sequence[HostDone], *, json: bool) -> None:
    """Every host; exit code 1 if one of them failed, after all have come to their end."""
    from linerate.cli.app import tell

    for one in done:
        error = one.error
        if json:
            told = {"schema": f"linerate.hosts.{verb}/1", "host": one.host, "done": one.text}
            typer.echo(dumps(told | ({"error": error.message, "hint": error.hint} if error else {})))
        elif error is not None:
            tell(error)
        else:
            typer.echo(f"{one.host}: {one.text}")
    if any(one.error for one in done):
        raise typer.Exit(1)
