"""How a host's settings are shown: as a table for people, one by one with what each does, and as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from linerate.host import Applied, HostSetting, Refusal, Shown

_GROUPS = {
    "nic": "adapter and driver",
    "stack": "TCP stack",
    "route": "routes to the SAN",
    "session": "iSCSI session, asked for at login",
}
_WIDTH = 100


def as_object(one: Shown) -> dict[str, object]:
    """A setting on a device for programs."""
    setting = one.setting
    return {
        "name": setting.name,
        "device": one.device or None,
        "value": one.value,
        "unit": setting.unit or None,
        "default": setting.default,
        "range": setting.range_text,
        "where": setting.where,
        "source": one.source,
        "why_not": one.why or None,
        "unproven": setting.unproven or None,
    }


def overview(found: Sequence[Shown]) -> str:
    """Every setting: its value, the usual one, where it comes from; then what is not here, by its reason."""
    lines: list[str] = []
    for where, heading in _GROUPS.items():
        rows = [row for setting in _settings(found, where) for row in _rows(setting, found)]
        widths = [max(len(row[column]) for row in rows) for column in range(3)] if rows else []
        lines += ["", heading] if rows else []
        for name, value, usual, source in rows:
            lines.append(f"  {name:{widths[0]}}  {value:{widths[1]}}  {usual:{widths[2]}}  {source}".rstrip())
    absent: dict[str, list[str]] = {}
    for one in found:
        if one.value is None and one.setting.where != "session":
            absent.setdefault(one.why, []).append(_place(one))
    lines += ["", "not here"] if absent else []
    for why, places in absent.items():
        lines += textwrap.wrap(
            f"{', '.join(places)}: {why}", _WIDTH, initial_indent="  ", subsequent_indent="    "
        )
    return "\n".join(lines[1:])


def _settings(found: Sequence[Shown], where: str) -> list[HostSetting]:
    return list({one.setting.name: one.setting for one in found if one.setting.where == where}.values())


def _rows(setting: HostSetting, found: Sequence[Shown]) -> Iterator[tuple[str, str, str, str]]:
    """Name, value, usual value and source; one row where all ports agree."""
    mine = [one for one in found if one.setting.name == setting.name]
    usual = f"usually {setting.default}"
    if setting.where == "session":
        yield setting.name, setting.range_text, usual, ""
        return
    held = [one for one in mine if one.value is not None]
    if len({one.value for one in held}) == 1 and len(held) == len(mine):
        yield setting.name, _value(held[0]), usual, held[0].source
        return
    for one in held:
        yield _place(one), _value(one), usual, one.source


def _value(one: Shown) -> str:
    if one.value is None:
        return one.why
    text = one.setting.text(one.value)
    return f"{text} {one.setting.unit}" if text.isdigit() else text


def _place(one: Shown) -> str:
    return f"{one.setting.name} of {one.device}" if one.device else one.setting.name


def explanations(found: Sequence[Shown]) -> str:
    """Each setting: what it does, its range, its other names, its value."""
    settings = {one.setting.name: one.setting for one in found}
    return "\n\n".join("\n".join(_explanation(setting, found)) for setting in settings.values())


def _explanation(setting: HostSetting, found: Iterable[Shown]) -> Iterator[str]:
    yield f"{setting.name}: {setting.title}"
    yield from textwrap.wrap(setting.doc, _WIDTH, initial_indent="  ", subsequent_indent="  ")
    yield f"  accepts            {setting.range_text}; usually {setting.default}"
    names = setting.names
    for system, name in (
        ("Linux", names.linux),
        ("Windows", names.windows),
        ("open-iscsi", names.open_iscsi),
        ("published studies", names.published),
    ):
        if name:
            yield f"  {system:17}  {name}"
    if setting.unproven:
        label = f"  {'read back':17}  "
        yield from textwrap.wrap(
            f"does not show its effect: {setting.unproven}",
            _WIDTH,
            initial_indent=label,
            subsequent_indent=" " * len(label),
        )
    for one in found:
        if one.setting.name == setting.name:
            yield f"  {one.device or 'now':17}  {_value(one)}"


def show_applied(host: str, applied: Applied, journal: Path) -> None:
    """What `apply` has changed, for programs."""
    found = {"readback": dict(applied.readback), "before": dict(applied.before), "journal": str(journal)}
    typer.echo(dumps({"schema": "linerate.host-applied/1", "host": host, **found}))


def joined(refused: Iterable[Refusal]) -> str:
    """Refusals in one line."""
    return "; ".join(map(str, refused))
