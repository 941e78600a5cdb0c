"""The verbs about disks: one fails, one is replaced, a RAID set is read through."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linerate.cli.array.reach import Json, Token, Wait, Which, Yes, amount, carried_out, confirm, reach, tell
from linerate.errors import UserError

if TYPE_CHECKING:
    from linerate.array.control import ControlClient
    from linerate.array.control.report import DiskReport, RaidSetReport

_Disk = Annotated[str, typer.Argument(metavar="DISK", help="Name of a disk.")]


def fail_disk(
    disk: _Disk,
    yes: Yes = False,
    wait: Wait = False,
    array: Which = None,
    token_file: Token = None,
    json: Json = False,
) -> None:
    """Treat a disk as failed from now on. A hot spare takes its place, if there is one."""
    client = reach(array, token_file)
    raid = _set_of(client, disk)
    confirm(f"{_stake(disk, raid)} Fail it?", yes)
    made = carried_out(client, "fail_disk", {"disk": disk})
    after = _set_of(client, disk) if raid is None else _named(client, raid.name)
    if after is None:
        tell(made, json, f"{disk} has failed")
        return
    text = f"{disk} has failed; {after.name} is {after.state}"
    if after.task is not None:
        text += f" and fills a spare: {after.task.done:.0%}"
    tell(made | {"raid_set": after.name, "state": after.state}, json, text)
    if wait and not json:
        _await(client, after.name)


def replace_disk(
    disk: _Disk,
    new: Annotated[
        str,
        typer.Argument(
            metavar="NEW", help="Name of the disk that comes; of a missing one that is back, its own."
        ),
    ],
    path: Annotated[
        Path | None,
        typer.Option(
            "--path", metavar="FILE", help="File or block device; needed unless the set is in memory."
        ),
    ] = None,
    size: Annotated[
        str | None,
        typer.Option(
            "--size", metavar="SIZE", help="As the disk that goes or, if it is gone, those beside it."
        ),
    ] = None,
    sector: Annotated[str, typer.Option("--sector", metavar="512|4k", help="Sector size.")] = "512",
    model: Annotated[str | None, typer.Option("--model", help="Drive whose times it takes.")] = None,
    sparse: Annotated[
        bool, typer.Option("--sparse", help="Take space as it is written, and not all of it at once.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Although it holds something.")] = False,
    wait: Wait = True,
    array: Which = None,
    token_file: Token = None,
    json: Json = False,
) -> None:
    """Put a new disk in the place of another and fill it from the rest of its RAID set.

    A file counts from the folder of this command and is the array's own: `new` is in the array file from then on. A
    missing disk that is back may keep its name and its path.
    """
    client = reach(array, token_file)
    members, raid_set = _members(client, disk)
    if path is None and any(one.path for one in members):
        raise UserError(
            f"{new} would be in memory, and {raid_set} is kept in files: it would be empty after the next start",
            "name a file or block device for it: --path FILE",
        )
    coming = {
        "name": new,
        "kind": "memory" if path is None else "file",
        "path": None if path is None else str(path.absolute()),
        "size_bytes": _size_like(disk, members) if size is None else amount("--size", size),
        "sector_bytes": amount("--sector", sector),
        "model": model,
        "sparse": sparse,
    }
    asked = {"disk": disk, "new": coming, "overwrite": overwrite}
    made = carried_out(client, "replace_disk", asked)
    told = (
        f"{new} is back"
        if new == disk
        else f"{new} takes the place of {disk}: write that into the array file, too"
    )
    tell(made, json, told)
    if wait and not json:
        _await(client, raid_set)


def scrub(
    raid_set: Annotated[str, typer.Argument(metavar="RAID_SET", help="Name of a RAID set.")],
    wait: Wait = True,
    array: Which = None,
    token_file: Token = None,
    json: Json = False,
) -> None:
    """Read a whole RAID set, compare, and mend what does not agree. Hosts go on working."""
    client = reach(array, token_file)
    before = _named(client, raid_set)
    made = carried_out(client, "scrub", {"raid_set": raid_set})
    if not wait or json:
        tell(made, json, f"{raid_set} is being read through: linerate array show")
        return
    after = _await(client, raid_set)
    if after is not None and after.state == "failed":
        raise typer.Exit(1)
    if before is not None and after is not None:
        found = after.mismatches_found - before.mismatches_found
        mended = after.mismatches_mended - before.mismatches_mended
        typer.echo(f"{found} blocks did not agree, {mended} of them mended" if found else "everything agrees")
        if found > mended:
            raise typer.Exit(1)


def _stake(disk: str, raid: RaidSetReport | None) -> str:
    """What happens when a disk fails, and what that puts at risk."""
    if raid is None:
        return f"This marks {disk} as failed; it is in no RAID set."
    takes = f"This takes {disk} out of {raid.name} (now {raid.state})."
    if raid.level == "raid0":
        return f"{takes} {raid.name} is RAID 0: everything on it is lost."
    return takes if raid.state == "optimal" else f"{takes} Everything on {raid.name} may be lost."


def _await(client: ControlClient, raid_set: str) -> RaidSetReport | None:
    from linerate.cli.array.follow import follow_raid_set

    after = follow_raid_set(client, raid_set)
    if after is not None:
        typer.echo(f"{raid_set} is {after.state}")
    return after


def _disk(client: ControlClient, name: str) -> DiskReport:
    disks = client.report().storage.disks
    for disk in disks:
        if disk.name == name:
            return disk
    raise UserError(f"there is no disk {name}", f"disks: {', '.join(disk.name for disk in disks) or 'none'}")


def _members(client: ControlClient, name: str) -> tuple[tuple[DiskReport, ...], str]:
    """The disks of the RAID set of a disk, itself included, and the set's name. Raises UserError if it is in none."""
    disks = client.report().storage.disks
    raid_set = _disk(client, name).raid_set
    if raid_set is None:
        there = ", ".join(one.name for one in disks if one.raid_set is not None) or "none"
        raise UserError(f"{name} is in no RAID set: no disk takes its place", f"disks of RAID sets: {there}")
    return tuple(one for one in disks if one.raid_set == raid_set), raid_set


def _size_like(disk: str, members: tuple[DiskReport, ...]) -> int:
    """Bytes of a disk; of one that is gone, those of the smallest one beside it. Raises UserError if none is there."""
    own = next(one.size_bytes for one in members if one.name == disk)
    size_bytes = own or min((one.size_bytes for one in members if one.size_bytes), default=0)
    if not size_bytes:
        raise UserError(f"the size of {disk} is not known: all disks beside it are gone", "say --size SIZE")
    return size_bytes


def _named(client: ControlClient, raid_set: str) -> RaidSetReport | None:
    from linerate.cli.array.follow import raid_set_of

    return raid_set_of(client.report(), raid_set)


def _set_of(client: ControlClient, disk: str) -> RaidSetReport | None:
    found = _disk(client, disk).raid_set
    return None if found is None else _named(client, found)
