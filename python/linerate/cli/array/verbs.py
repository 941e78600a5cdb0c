"""The verbs of `linerate array`: serve one, look at it, and manage it while it serves."""

from __future__ import annotations

import time
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer

from linerate.cli.array import check, disks, replicas, serve
from linerate.cli.array.reach import (
    Json,
    Token,
    Which,
    Yes,
    amount,
    carried_out,
    confirm,
    reach,
    tell,
    volume_and_snapshot,
)
from linerate.errors import UserError

if TYPE_CHECKING:
    from linerate.array.control import ControlClient

app = typer.Typer(help="Serve an iSCSI array and manage it.", no_args_is_help=True)
app.command("serve")(serve.serve)
app.command("identity")(replicas.identity)
app.command("check")(check.check)

AccessState = Literal["active_optimized", "active_non_optimized", "standby", "unavailable", "transitioning"]
"""As `linerate.array.config.AluaState`, which is loaded when it is needed."""

_Volume = Annotated[str, typer.Argument(metavar="VOLUME", help="Name of a volume.")]
_Snapshot = Annotated[str, typer.Argument(metavar="VOLUME@SNAPSHOT", help="A snapshot of a volume.")]
_Size = Annotated[str, typer.Argument(metavar="SIZE", help="For example 100g.")]
_Target = Annotated[
    str | None,
    typer.Option("--target", metavar="IQN", help="Target for it; default: the first one."),
]
_Lun = Annotated[
    int | None, typer.Option("--lun", min=0, max=16383, help="Its LUN; default: the lowest free one.")
]


@app.callback()
def _array() -> None:
    """Serve an iSCSI array, and show and manage it while it serves.

    Verbs find an array that serves on this machine by themselves; --array names one of several, or the URL of one
    elsewhere, whose token then comes from --token-file.
    """


@app.command()
def examples(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Print this one.")] = None,
) -> None:
    """List array files to start from, or print one."""
    from linerate.array import example_names, example_text

    if name is not None:
        typer.echo(example_text(name), nl=False)
        return
    for known in example_names():
        typer.echo(f"{known:<10}{example_text(known).splitlines()[0].removeprefix('# ')}")


@app.command()
def unit(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="The array file.")],
    user: Annotated[str, typer.Option("--user", help="The user that the service runs as.")] = "root",
) -> None:
    """Print a systemd unit that serves FILE.toml."""
    from linerate.array.systemd import unit_text

    typer.echo(unit_text(file, user), nl=False)


@app.command()
def show(
    seconds: Annotated[
        float, typer.Option("--seconds", min=0.1, metavar="S", help="How long rates are measured.")
    ] = 1.0,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Update until Ctrl-C; with --json one object per line.")
    ] = False,
    array: Which = None,
    token_file: Token = None,
    json: Json = False,
) -> None:
    """Show disks, RAID sets, pools, volumes and snapshots, with their rates and background work."""
    from linerate.cli.array import picture

    client = reach(array, token_file)
    if json and watch:
        picture.watch_json(client, seconds)
    elif json:
        typer.echo(dumps(client.status()))
    elif watch:
        picture.watch(client, seconds)
    else:
        picture.show(client, seconds)


@app.command()
def create_volume(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the new volume.")],
    size: _Size,
    pool: Annotated[
        str | None, typer.Option("--pool", help="The pool of the volume; needed if there are several.")
    ] = None,
    target: _Target = None,
    lun: _Lun = None,
    sector: Annotated[str, typer.Option("--sector", metavar="512|4k", help="Logical block size.")] = "512",
    read_only: Annotated[bool, typer.Option("--read-only", help="Refuse writes.")] = False,
    write_cache: Annotated[
        bool, typer.Option("--write-cache", help="Acknowledge writes as soon as they are in memory.")
    ] = False,
    power_protected: Annotated[
        bool,
        typer.Option("--power-protected", help="The array's power does not fail: permits --write-cache."),
    ] = False,
    array: Which = None,
    token_file: Token = None,
    json: Json = False,
) -> None:
    """Make a thin volume in a pool and show it to initiators."""
    asked = {
        "name": name,
        "size_bytes": amount("SIZE", size),
        "pool": pool,
        "target": target,
        "lun": lun,
        "sector_bytes": amount("--sector", sector),
        "read_only": read_only,
        "write_cache": write_cache,
        "power_protected": power_protected,
    }
    made = carried_out(reach(array, token_file), "create_volume", asked)
    tell(made, json, f"volume {made['volume']} is LUN {made['lun']} of {made['target']}")


@app.command()
def resize(
    volume: _Volume,
    size: _Size,
    yes: Yes = False,
    array: Which = None,
    token_file: Token = None,
    json: Json = False,
) -> None:
    """Change a volume's capacity and notify initiators."""
    from linerate.cli.discover import size_text

    client, wanted = reach(array, token_file), amount("SIZE", size)
    now = next((one.size_bytes for one in client.report().storage.volumes if one.name == volume), 0)
    if wanted < now:
        lost = size_text(now - wanted)
        confirm(f"{volume} gets smaller; what its last {lost} hold is lost. Shrink it?", yes)
    made = carried_out(client, "resize", {"volume": volume, "size_bytes": wanted})
    tell(made, json, f"{volume} has {size_text(made['size_bytes'])} now")


@app.command()
def delete(
    what: Annotated[
        str, typer.Argument(metavar="VOLUME[@SNAPSHOT]", help="A volume, or one of its snapshots.")
    ],
    with_snapshots: Annotated[
        bool, typer.Option("--with-snapshots", help="Delete the volume's snapshots too.")
    ] = False,
    yes: Yes = False,
    array: Which = None,
    token_file: Token = None,
    json: Json = False,
) -> None:
    """Delete a volume or a snapshot; its data are lost."""
    client = reach(array, token_file)
    if "@" in what:
        volume, snapshot = volume_and_snapshot(what)
        _check_exists(client, volume, snapshot)
        confirm(f"What only the snapshot {what} holds is lost. Delete it?", yes)
        made = carried_out(client, "delete_snapshot", {"volume": volume, "snapshot": snapshot})
    else:
        _check_exists(client, what)
        also = " and all its snapshots" if with_snapshots else ""
        confirm(f"Everything in the volume {what}{also} is lost. Delete it?", yes)
        made = carried_out(client, "delete", {"volume": what, "with_snapshots": with_snapshots})
    tell(made, json, f"{what} is deleted")


@app.command()
def snapshot(
    volumes: Annotated[list[str], typer.Argument(metavar="VOLUME...", help="All at the same instant.")],
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Name of the snapshot; default: the time."),
    ] = None,
    array: Which = None,
    token_file: Token = None,
    json: Json = False,
) -> None:
    """Take a snapshot of one or more volumes, all at the same instant."""
    called = name or time.strftime("%Y-%m-%d_%H-%M-%S")
    made = carried_out(reach(array, token_file), "snapshot", {"volumes": volumes, "name": called})
    tell(made | {"name": called}, json, "\n".join(f"{volume}@{called}" for volume in volumes))


@app.command()
def restore(
    snapshot: _Snapshot,
    yes: Yes = False,
    array: Which = None,
    token_file: Token = None,
    json: Json = False,
) -> None:
    """Restore a volume from a snapshot. Hosts must not use the volume during this."""
    client = reach(array, token_file)
    volume, name = volume_and_snapshot(snapshot)
    _check_exists(client, volume, name)
    confirm(f"What was written to {volume} since {name} is lost. Restore it?", yes)
    made = carried_out(client, "restore", {"volume": volume, "snapshot": name})
    tell(made, json, f"{volume} is what it was at {name}; hosts that had it open have to open it again")


@app.command()
def clone(
    snapshot: _Snapshot,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the new volume.")],
    target: Annotated[
        str | None, typer.Option("--target", metavar="IQN", help="Target for it; default: its volume's.")
    ] = None,
    lun: _Lun = None,
    array: Which = None,
    token_file: Token = None,
    json: Json = False,
) -> None:
    """Make a new volume from a snapshot; it takes space only for new writes."""
    volume, taken = volume_and_snapshot(snapshot)
    client = reach(array, token_file)
    beside = target or _target_of(client, volume)
    asked = {"volume": volume, "snapshot": taken, "name": name, "target": beside, "lun": lun}
    made = carried_out(client, "clone", asked)
    tell(made, json, f"volume {made['volume']} is LUN {made['lun']} of {made['target']}")


def _check_exists(client: ControlClient, volume: str, snapshot: str | None = None) -> None:
    """Raises UserError for a volume or a snapshot that is not there, before a question is asked about it."""
    report = client.report()
    snapshots = {one.name: [taken.name for taken in one.snapshots] for one in report.storage.volumes}
    names = snapshots.keys() | {one.name for target in report.targets for one in target.volumes}
    if volume not in names:
        raise UserError(f"there is no volume {volume}", f"volumes: {', '.join(sorted(names)) or 'none'}")
    if snapshot is not None and snapshot not in snapshots.get(volume, ()):
        there = ", ".join(snapshots.get(volume, ())) or "none"
        raise UserError(f"{volume} has no snapshot {snapshot}", f"its snapshots: {there}")


def _target_of(client: ControlClient, volume: str) -> str | None:
    """The target under which hosts see a volume; None: none has it."""
    report = client.report()
    made = [one.target for one in report.storage.volumes if one.name == volume and one.target]
    in_file = [one.name for one in report.targets if any(each.name == volume for each in one.volumes)]
    return next(iter([*made, *in_file]), None)


@app.command()
def set_access(
    group: Annotated[
        int, typer.Argument(metavar="GROUP", min=1, max=65535, help="A portal group by its tag.")
    ],
    state: Annotated[AccessState, typer.Argument(metavar="STATE", help=", ".join(get_args(AccessState)))],
    target: Annotated[
        str | None, typer.Option("--target", metavar="IQN", help="For the volumes of this target only.")
    ] = None,
    volume: Annotated[
        str | None, typer.Option("--volume", metavar="NAME", help="For the volumes of this name only.")
    ] = None,
    array: Which = None,
    token_file: Token = None,
    json: Json = False,
) -> None:
    """Change the access state of a portal group (ALUA) until the array stops, and notify initiators."""
    asked = {"group": group, "state": state, "target": target, "volume": volume}
    made = carried_out(reach(array, token_file), "set_access", asked)
    tell(made, json, f"portal group {group} is {state} now")


for verb in (
    disks.fail_disk,
    disks.replace_disk,
    disks.scrub,
    replicas.replicate,
    replicas.promote,
    replicas.demote,
    replicas.forget,
    replicas.rejoin,
):
    app.command()(verb)
