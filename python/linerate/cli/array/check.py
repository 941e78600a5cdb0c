"""`linerate array check`: whether an array file and its disks are fit to be served, without serving them."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linerate.cli.array.portals import strange_portals
from linerate.cli.array.reach import Json
from linerate.errors import UserError

if TYPE_CHECKING:
    from linerate.array import ArrayConfig
    from linerate.array.file import Places
    from linerate.array.partners import Control

SCHEMA = "linerate.array-check/1"

_MARK = {"refused": "refused", "care": "care", "note": "note"}


def check(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="The array file.")],
    json: Json = False,
) -> None:
    """Check an array file and its disks without serving them, and without changing anything.

    Exit code 0: all is well. 1: something needs care, or keeps the array from starting. 2: the file is wrong.
    A portal that this host lacks needs care, but not in a file for another host.
    """
    from linerate import _core
    from linerate.array.file import placed_array_file
    from linerate.array.record import load, seam_json

    config, places = placed_array_file(file)
    record = load(file)
    found = _core.Array.inspect(seam_json(config, record))
    portals = [_finding("care", f"portal {place}", text) for place, text in strange_portals(config, places)]
    files = [*_files(config, record.volumes), *_certificate(config.control, places)]
    findings = [*found["findings"], *files, *portals]
    is_fine = all(finding["severity"] == "note" for finding in findings)
    if json:
        report = {"schema": SCHEMA, "fine": is_fine, "findings": findings, "storage": found["storage"]}
        typer.echo(dumps(report))
    else:
        for line in (*_facts(found["storage"]), *map(_line, findings)):
            typer.echo(line)
        is_serving = any(disk["state"] == "in_use" for disk in found["storage"]["disks"])
        fine = "the rest is well; `linerate array show` has what serves" if is_serving else "all is well"
        typer.echo(f"{file}: {fine if is_fine else 'see above'}")
    if not is_fine:
        raise typer.Exit(1)


def _files(config: ArrayConfig, served: dict[str, str]) -> list[dict[str, str]]:
    """What is to be said about files that are no disks."""
    from linerate.array.record import absence

    findings = []
    for volume in (volume for target in config.targets for volume in target.volumes if volume.path):
        path, about = Path(str(volume.path)), f"volume {volume.name}"
        if path.exists():
            continue
        if str(path) in served.values():
            findings.append(_finding("refused", about, f"was served before, and {absence(path)}"))
        elif volume.size_bytes is None:
            findings.append(_finding("refused", about, f"{absence(path)}, and no size is given to make it"))
        else:
            findings.append(_finding("note", about, f"will be made: {path}"))
    return findings


def _certificate(control: Control, places: Places) -> list[dict[str, str]]:
    try:
        care = certificate_care(control, places)
    except UserError as error:
        return [_finding("refused", "control API", f"{error.message}; {error.hint}")]
    return [_finding("care", "control API", care)] if care else []


def certificate_care(control: Control, places: Places) -> str | None:
    """What the owner should know about the certificate of the control API. Raises UserError if it cannot be used."""
    from linerate.array.control.tls import CertificateError, invalid_now, owner_context

    if control.certificate is None or control.key is None:
        return None
    try:
        owner_context(control.certificate, control.key)
    except CertificateError as error:
        raise places.error(("control", error.key), error.fault, error.hint) from error
    fault = invalid_now(control.certificate)
    return f"{places.of('control', 'certificate')}: {fault}" if fault else None


def _finding(severity: str, about: str, text: str) -> dict[str, str]:
    return {"severity": severity, "about": about, "text": text}


def _line(finding: dict[str, str]) -> str:
    return f"{_MARK[finding['severity']]:<8} {finding['about']}: {finding['text']}"


def _facts(storage: dict[str, Any]) -> list[str]:
    """What was found, a line each."""
    from linerate.cli.discover import size_text

    lines = []
    for disk in storage["disks"]:
        size = size_text(disk["size_bytes"]) if disk["size_bytes"] else "-"
        kept = disk["path"] or "memory"
        sparse = ", sparse" if disk["sparse"] else ""
        state = disk["state"].replace("_", " ")
        lines.append(f"disk     {disk['name']:<8} {state:<10} {size:>10}  {kept}{sparse}")
    for one in storage["raid_sets"]:
        level = one["level"].upper().replace("RAID", "RAID ")
        newest = ", ".join(map(str, one["generations"]))
        lines.append(
            f"RAID set {one['name']:<8} {one['state']:<10} {size_text(one['size_bytes']):>10}  {level}, "
            f"{one['id']}, generation {newest}"
        )
    for pool in storage["pools"]:
        volumes = sum(volume["pool"] == pool["name"] for volume in storage["volumes"])
        used = f"{size_text(pool['used_bytes'])} used, volumes: {volumes}"
        lines.append(f"pool     {pool['name']:<8} {'sound':<10} {size_text(pool['size_bytes']):>10}  {used}")
    return lines
