"""The verbs of `linerate host`: a host's settings shown, planned, applied and put back."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linerate.cli.host.show import joined, show_applied
from linerate.errors import HostError, UserError

if TYPE_CHECKING:
    from linerate.host import HostTarget, Refusal
    from linerate.setting import Value

app = typer.Typer(help="Show and change this host's settings.", no_args_is_help=True)

_Device = Annotated[
    list[str] | None,
    typer.Option("--device", "-d", metavar="NAME", help="A port to the SAN (eth2); may be repeated."),
]
_Values = Annotated[
    list[str], typer.Argument(metavar="NAME=VALUE..|STUDY", help="Settings, or a study file with hosts.")
]
_Case = Annotated[
    str | None,
    typer.Option("--case", metavar="NAME", help="A case of a study; default: its baseline."),
]
_Journal = Annotated[Path | None, typer.Option("--journal", metavar="FILE", help="The journal of changes.")]
_Json = Annotated[bool, typer.Option("--json", help="One JSON object.")]

_NO_PORT = "name the port: --device eth2"
_WAY_OUT = "leave it out, or mend the reason that is given"


@app.callback()
def _host() -> None:
    """Show and change this host's settings: adapter, TCP stack, iSCSI sessions. Everything can be put back."""


@app.command()
def show(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME..]", help="Settings to explain; none: a table of all."),
    ] = None,
    device: _Device = None,
    json: _Json = False,
) -> None:
    """Show settings: value, usual default, where the value comes from; with a name, what the setting does."""
    from linerate.cli.host.show import as_object, explanations, overview
    from linerate.host import HostTarget, read

    target = HostTarget(socket.gethostname(), tuple(device or _ports()))
    found = read(target, names or None)
    if json:
        settings = [as_object(one) for one in found]
        typer.echo(dumps({"schema": "linerate.host/1", "host": target.name, "settings": settings}))
    else:
        typer.echo(explanations(found) if names else overview(found))


@app.command()
def plan(
    values: _Values,
    device: _Device = None,
    case: _Case = None,
    windows: Annotated[bool, typer.Option("--windows", help="PowerShell, for a Windows host.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Print the commands that undo the change.")] = False,
) -> None:
    """Print the commands that set the values, or with --undo the commands that put everything back.

    Nothing is changed. With --windows it is a script: save it, read it, run it on the host as administrator.
    """
    from linerate.host import apply_script, parse_settings, plan, undo_script

    target, wanted = _wanted(values, device, case)
    if windows:
        checked = parse_settings(wanted)
        script = undo_script if undo else apply_script
        typer.echo(script(checked, target.devices), nl=False)
        return
    made = plan(target, wanted)
    for command in made.undo if undo else made.commands:
        typer.echo(command)
    if made.records and not undo:
        typer.echo("# sessions of open-iscsi, from their next login on")
        for record in made.records:
            typer.echo(record)
    if made.refused:
        raise HostError("not possible on this host: " + joined(made.refused), _way_out(made.refused))


def _way_out(refused: Sequence[Refusal]) -> str:
    """What a user can do: a setting of a port that has no port needs one named."""
    from linerate.host import named

    without = any(not one.device and named(one.setting).scope == "port" for one in refused)
    return _NO_PORT if without else _WAY_OUT


@app.command()
def apply(
    values: _Values, device: _Device = None, case: _Case = None, journal: _Journal = None, json: _Json = False
) -> None:
    """Set values on this host, all or none, and read them back. `linerate host restore` puts everything back.

    Of a study, what its sessions ask for at login is left to its run.
    """
    from linerate.host import HostJournal, apply, default_journal, named, restore

    target, wanted = _wanted(values, device, case)
    if "=" not in values[0]:
        wanted = {name: value for name, value in wanted.items() if named(name).where != "session"}
    path = journal or default_journal()
    with HostJournal(path) as opened:
        before = opened.mark
        try:
            applied = apply(target, wanted, opened)
        except KeyboardInterrupt:
            restore(opened, since=before)
            raise
        if journal is None and not opened.pending:
            path.unlink()
    if applied.refused:
        raise HostError("nothing was changed: " + joined(applied.refused), _way_out(applied.refused))
    if json:
        show_applied(target.name, applied, path)
        return
    for name, value in applied.readback.items():
        text = named(name).text
        typer.echo(f"{name}: {text(value)} (was {text(applied.before[name])})")
    typer.echo(f"to put it back: linerate host restore{f' {path}' if journal else ''}")


@app.command()
def restore(
    journal: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="A journal; default: all journals of this host.")
    ] = None,
    json: _Json = False,
) -> None:
    """Undo the changes of `host apply` or of a study on this host, also after a crash."""
    from linerate.cli.host.back import put_back

    if journal is not None and not journal.exists():
        raise UserError(
            f"{journal}: there is no such journal", "a study keeps settings.jsonl in its directory"
        )
    put_back([journal] if journal else None, json=json)


@app.command()
def hold() -> None:
    """Machine interface: change settings over stdin and stdout as JSON lines; see docs/host.md.

    Everything is put back when standard input ends. A study does this on each of its hosts, by SSH.
    """
    from linerate.host import serve

    serve()


def _wanted(
    given: Sequence[str], devices: Sequence[str] | None, case: str | None
) -> tuple[HostTarget, dict[str, Value]]:
    """The host and the values that a command line names: NAME=VALUE, or a case of a study with its devices."""
    from linerate.host import HostTarget

    pairs = [item.partition("=") for item in given]
    if all(equals for _, equals, _ in pairs):
        if case is not None:
            raise UserError("--case needs a study file", "give its path in place of NAME=VALUE")
        return HostTarget(socket.gethostname(), tuple(devices or ())), {name: text for name, _, text in pairs}
    if len(given) != 1:
        raise UserError(
            f"{' '.join(given)}: neither settings nor one study file", "write NAME=VALUE, or one path"
        )
    return _of_study(given[0], devices, case)


def _of_study(
    file: str, devices: Sequence[str] | None, case: str | None
) -> tuple[HostTarget, dict[str, Value]]:
    from linerate.host import HostTarget, catalogue
    from linerate.study import load_study

    study = load_study(file)
    hosts = [host for san in study.sans for host in san.hosts]
    here = next((host for host in hosts if host.ssh is None), hosts[0] if hosts else None)
    names = [one.name for one in study.cases]
    if case is not None and case not in names:
        raise UserError(f"{file}: there is no case {case}", f"there is {', '.join(names)}")
    chosen = study.case(case) if case else study.baseline
    values = {name: value for name, value in chosen.settings.items() if name in catalogue()}
    name = here.name if here else socket.gethostname()
    return HostTarget(name, tuple(devices or (here.devices if here else ()))), values


def _ports() -> list[str]:
    """The network adapters of this host; where there is none (a namespace), every device but the loopback."""
    devices = sorted(name for _, name in socket.if_nameindex() if name != "lo")
    return [name for name in devices if Path("/sys/class/net", name, "device").exists()] or devices
