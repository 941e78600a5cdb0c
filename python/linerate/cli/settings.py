"""`linerate settings`: the catalogue of settings that studies can change."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator
from json import dumps
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from linerate.settings import AnySetting

_GROUPS = {
    "host": "HOST: adapter, TCP stack, routes",
    "load": "LOAD: iSCSI sessions, volumes, rate",
    "fabric": "FABRIC of a virtual SAN: links and switches",
    "array": "ARRAYS of a virtual SAN: disks, RAID, replication",
    "multipath": "PATHS to the volumes of a virtual SAN",
    "faults": "FAULTS of a virtual SAN",
}
_WIDTH_MAX = 100
_LABEL = 21


def settings(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME..]", help="Settings to explain; none: a table of all."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """List the settings that studies can change; with a name, explain it: range, default, who applies it."""
    from linerate.settings import catalogue, find

    chosen = [find(name) for name in names] if names else list(catalogue().values())
    if json:
        typer.echo(dumps({"schema": "linerate.settings/1", "settings": [_object(one) for one in chosen]}))
    elif names:
        typer.echo("\n\n".join("\n".join(_explanation(one)) for one in chosen))
    else:
        typer.echo("\n".join(_overview()))


def _width() -> int:
    return min(shutil.get_terminal_size().columns, _WIDTH_MAX)


def _overview() -> Iterator[str]:
    """A line for each setting, by who applies it: name, title, default."""
    from linerate.settings import by_applier

    for applier, group in by_applier().items():
        name, title = (
            max(map(len, column)) for column in zip(*((one.name, one.title) for one in group), strict=True)
        )
        yield f"{_GROUPS[applier]}"
        yield f"  {'name':{name}}  {'title':{title}}  default"
        for one in group:
            yield f"  {one.name:{name}}  {one.title:{title}}  {one.default}"
        yield ""
    yield "`linerate settings NAME` explains a setting."
    yield "`linerate host show` reads the values of this host."


def _explanation(one: AnySetting) -> Iterator[str]:
    yield f"{one.name}: {one.title}"
    yield from textwrap.wrap(one.doc, _width(), initial_indent="  ", subsequent_indent="  ")
    facts = {
        "range": one.range_text,
        "unit": one.unit,
        "default": one.default,
        "applied by": _applied_by(one),
        "fabric": _fabric(one),
        **dict(_elsewhere(one)),
        "read back": f"does not show its effect: {why}" if (why := _unproven(one)) else "",
    }
    for label, text in facts.items():
        if text:
            start = f"  {label:{_LABEL - 2}}"
            yield from textwrap.wrap(
                text, _width(), initial_indent=start, subsequent_indent=" " * _LABEL, break_on_hyphens=False
            )


def _applied_by(one: AnySetting) -> str:
    from linerate.settings import OF_ADAPTERS

    if one.name in OF_ADAPTERS:
        return "fabric on a virtual SAN, host on real hosts"
    virtual_only = one.applier in ("fabric", "array", "multipath", "faults")
    return f"{one.applier}, on a virtual SAN only" if virtual_only else one.applier


def _fabric(one: AnySetting) -> str:
    from linerate.settings import USER_FABRIC, USER_FABRIC_ALWAYS

    if one.name in USER_FABRIC_ALWAYS:
        return "user fabric only"
    if one.name in USER_FABRIC:
        return "user fabric only, except to turn it off"
    return "user and kernel fabric" if one.applier in ("host", "fabric") else ""


def _elsewhere(one: AnySetting) -> Iterator[tuple[str, str]]:
    """What other systems call it."""
    from linerate.settings import SanSetting

    if isinstance(one, SanSetting):
        yield from one.elsewhere
        return
    names = one.names
    yield "Linux", names.linux
    yield "Windows", names.windows
    yield "open-iscsi", names.open_iscsi
    yield "published studies", names.published


def _unproven(one: AnySetting) -> str:
    from linerate.settings import SanSetting

    return "" if isinstance(one, SanSetting) else one.unproven


def _object(one: AnySetting) -> dict[str, object]:
    """A setting for programs."""
    from linerate.settings import applied_by

    return {
        "name": one.name,
        "title": one.title,
        "doc": one.doc,
        "unit": one.unit or None,
        "range": one.range_text,
        "default": one.default,
        "applier": applied_by(one.name),
        "fabric": _fabric(one) or None,
        "names": {system: name for system, name in _elsewhere(one) if name},
        "unproven": _unproven(one) or None,
    }
