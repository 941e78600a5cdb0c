"""The settings catalogue: everything of a host that can be changed for the sake of its SAN, as data.

Open this file first. Settings stand by who holds them: `nic` (adapter and driver), `stack` (TCP and routes),
`session` (iSCSI). Their order is the order in which they are applied: a setting that another one depends on
comes first.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType

from linerate.errors import UserError
from linerate.host.catalogue import nic, session, stack
from linerate.host.setting import Catalogue, HostSetting
from linerate.setting import Value

__all__ = ["catalogue", "named", "parse_settings", "unproven"]


@cache
def catalogue() -> Catalogue:
    """Every setting by name, in the order in which they are applied."""
    entries = (*nic.SETTINGS, *stack.SETTINGS, *session.SETTINGS)
    return MappingProxyType({setting.name: setting for setting in entries})


def named(name: str) -> HostSetting:
    """The setting of that name. Raises UserError with the nearest name, also by the names of other systems."""
    try:
        return catalogue()[name]
    except KeyError:
        raise UserError(f"there is no setting {name!r}", _nearest(name)) from None


def parse_settings(given: Mapping[str, Value]) -> dict[str, Value]:
    """Checked values, in the order in which they are applied.

    Raises one UserError that names every unknown setting and every value out of range.
    """
    values: dict[str, Value] = {}
    faults: list[UserError] = []
    for name, value in given.items():
        try:
            values[name] = named(name).parse(value)
        except UserError as error:
            faults.append(error)
    if len(faults) == 1:
        raise faults[0]
    if faults:
        lines = [f"{fault.message} ({fault.hint})" if fault.hint else fault.message for fault in faults]
        raise UserError("\n".join(lines), "`linerate host show` lists every setting with its range")
    return {name: values[name] for name in catalogue() if name in values}


def unproven(names: Iterable[str]) -> dict[str, str]:
    """Those of these settings whose effect reading them back does not show, and why. Other names are passed over."""
    return {name: why for name in names if name in catalogue() and (why := catalogue()[name].unproven)}


def _nearest(name: str) -> str:
    """A hint that names the setting that was probably meant."""
    wanted = name.strip().lower().replace("-", "_").replace(" ", "_")
    known = {
        _plain(alias): setting
        for setting in catalogue().values()
        for alias in (setting.name, setting.title, *setting.names.all)
    }
    close = difflib.get_close_matches(_plain(wanted), known, n=1, cutoff=0.6)
    if close:
        return f"did you mean {known[close[0]].name}?"
    return "`linerate host show` lists every setting"


def _plain(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())
