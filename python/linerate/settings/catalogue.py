"""All settings by name, and who applies each."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import get_args

from linerate import host
from linerate.errors import UserError
from linerate.host import HostSetting
from linerate.setting import Applier
from linerate.settings import array, backup, fabric, faults, load, multipath, smb
from linerate.settings.san_setting import ModelField, SanSetting

AnySetting = HostSetting | SanSetting

_TOPOLOGY_PARTS = ("link", "nic", "switch", "storage")


@cache
def catalogue() -> Mapping[str, AnySetting]:
    """Every setting by name: those of hosts and sessions, then those of the SAN around them."""
    entries: tuple[SanSetting, ...] = (
        *fabric.SETTINGS,
        *array.SETTINGS,
        *load.SETTINGS,
        *smb.SETTINGS,
        *backup.SETTINGS,
        *multipath.SETTINGS,
        *faults.SETTINGS,
    )
    return MappingProxyType({**host.catalogue(), **{setting.name: setting for setting in entries}})


def find(name: str) -> AnySetting:
    """The setting of that name. Raises UserError with names that are similar."""
    if name in catalogue():
        return catalogue()[name]
    if similar := tuple(_similar(name)):
        raise UserError(f"there is no setting {name!r}", f"did you mean {' or '.join(similar)}?")
    raise UserError(f"there is no setting {name!r}", "`linerate settings` lists all settings")


def model_field(name: str) -> ModelField | None:
    """The field of a topology or of a run that a setting writes; None if it writes none."""
    setting = catalogue().get(name)
    return setting.field if isinstance(setting, SanSetting) else fabric.OF_ADAPTERS.get(name)


def is_of_topology(name: str) -> bool:
    """Whether a setting changes the topology of a virtual SAN."""
    field = model_field(name)
    return field is not None and field.part in _TOPOLOGY_PARTS


def applied_by(name: str) -> Applier:
    """Who applies a setting on a virtual SAN. Raises UserError for an unknown setting."""
    setting = find(name)
    return "fabric" if name in fabric.OF_ADAPTERS else setting.applier


def by_applier() -> Mapping[Applier, list[AnySetting]]:
    """The catalogue in groups, for tables."""
    groups: dict[Applier, list[AnySetting]] = {applier: [] for applier in get_args(Applier)}
    for setting in catalogue().values():
        groups[setting.applier].append(setting)
    return groups


def _similar(name: str) -> Iterator[str]:
    """Similar names. Names of other systems and the part after the dot count too."""
    names: dict[str, str] = {}
    for setting in catalogue().values():
        aliases = [setting.name, setting.title, setting.name.rpartition(".")[2]]
        if isinstance(setting, HostSetting):
            aliases += setting.names.all
        for alias in aliases:
            names.setdefault(_plain(alias), setting.name)
    close = difflib.get_close_matches(_plain(name), names, n=3, cutoff=0.65)
    yield from dict.fromkeys(names[alias] for alias in close)


def _plain(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())
