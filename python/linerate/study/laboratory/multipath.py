"""Multipath settings: which paths a study gives a volume, and how its I/Os are spread over them.

    multipath.paths = "one-to-one"        or partial, mesh, or a list: ["h1.p0 -> a1.p0", "h1.p1 -> a1.p1 standby"]
    multipath.policy = "round_robin"      and what belongs to it: ios_per_path, bytes_per_path
    multipath.sessions = 2                on each path; multipath.connections likewise, of each session
    multipath.path_timeout = "1s"         checker_interval, no_path_queue, failback likewise

Without `multipath.paths` a volume has the paths that its topology gives it, or the single one that it always has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from linerate.errors import UserError
from linerate.san import Layout, Path, Topology, layout
from linerate.san.paths import PATHS_FORM, asked_paths
from linerate.study.model import Settings, SettingValue
from linerate.workload import VolumeSpec
from linerate.workload.spec import MultipathPolicy, PathSpec
from linerate.workload.units import parse_size, parse_time_s

PREFIX = "multipath."
PATHS = f"{PREFIX}paths"
POLICIES: tuple[MultipathPolicy, ...] = get_args(MultipathPolicy)
FOR_EVER = "forever"


@dataclass(frozen=True, slots=True)
class _Setting:
    """`field` is one of a volume's multipath options, or of each of its paths."""

    field: str
    parse: Callable[[SettingValue], object]
    accepted: str
    of_path: bool = False


def _policy(value: SettingValue) -> str:
    if value not in POLICIES:
        raise ValueError(value)
    return str(value)


def _count(value: SettingValue) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(value)
    return value


def _bytes(value: SettingValue) -> int:
    return _count(value) if isinstance(value, int) else parse_size(value)


def _seconds(value: SettingValue) -> float:
    if isinstance(value, bool):
        raise ValueError(value)
    return float(value) if isinstance(value, int) else parse_time_s(value)


def _failback(value: SettingValue) -> str | float:
    return str(value) if value in ("immediate", "manual") else _seconds(value)


def _no_path_queue(value: SettingValue) -> float | None:
    return None if value == FOR_EVER else _seconds(value)


_TIME = 'a time, for example "1s"'
_SETTINGS = {
    "policy": _Setting("policy", _policy, ", ".join(POLICIES)),
    "ios_per_path": _Setting("ios_per_path", _count, "a number of I/Os"),
    "bytes_per_path": _Setting("bytes_per_path", _bytes, 'a size, for example "1m"'),
    "path_timeout": _Setting("path_timeout_s", _seconds, _TIME),
    "checker_interval": _Setting("checker_interval_s", _seconds, _TIME),
    "no_path_queue": _Setting("no_path_queue_s", _no_path_queue, f"{_TIME}, or {FOR_EVER}"),
    "failback": _Setting("failback", _failback, f"immediate, manual, or {_TIME}"),
    "sessions": _Setting("sessions", _count, "a number of sessions on each path", of_path=True),
    "connections": _Setting("connections", _count, "a number of connections of each session", of_path=True),
}
MULTIPATH = (PATHS, *(f"{PREFIX}{name}" for name in _SETTINGS))
"""All of them, by their full names."""


def check_multipath(name: str, value: SettingValue) -> None:
    """Raises UserError for a value that a multipath setting cannot take."""
    if name == PATHS:
        _asked(value)
    else:
        _parsed(name, value)


def _parsed(name: str, value: SettingValue) -> object:
    setting = _SETTINGS[name.removeprefix(PREFIX)]
    try:
        return setting.parse(value)
    except (ValueError, UserError) as error:
        raise UserError(f"{name}: {value!r} cannot be used", f"write {setting.accepted}") from error


def _asked(value: SettingValue) -> Layout | tuple[str, ...]:
    try:
        return asked_paths(_listed(value))
    except ValueError as error:
        raise UserError(f"{PATHS}: {value!r} cannot be used", f"write {PATHS_FORM}") from error


def _listed(value: SettingValue) -> object:
    """A list of paths is one text in a study: its parts are set apart by commas."""
    if isinstance(value, str) and "->" in value:
        return [part.strip() for part in value.split(",")]
    return value


def paths_of(topology: Topology, host: str, settings: Settings) -> Mapping[str, tuple[Path, ...]]:
    """`array.volume` -> the paths by which a host reaches it under these settings.

    A volume that no path reaches is left out. Raises UserError for a path that the topology does not have.
    """
    value = settings.get(PATHS)
    return layout(topology, host, None if value is None else _asked(value))


def path_specs(paths: tuple[Path, ...], settings: Settings) -> tuple[PathSpec, ...]:
    """The paths as a run wants them. One that nothing is asked of needs no multipath, and none is given to it."""
    if len(paths) < 2 and not any(name in settings for name in MULTIPATH):
        return ()
    return tuple(
        PathSpec(
            name=path.name,
            portal=path.portal,
            source_address=path.host_address,
            interface=path.host_interface,
            weight=path.weight,
            standby=path.standby,
        )
        for path in paths
    )


def multipathed(volume: VolumeSpec, settings: Settings) -> VolumeSpec:
    """The volume with the multipath settings among these in force."""
    options: dict[str, Any] = {}
    of_path: dict[str, Any] = {}
    for name, value in settings.items():
        if name in MULTIPATH and name != PATHS:
            setting = _SETTINGS[name.removeprefix(PREFIX)]
            (of_path if setting.of_path else options)[setting.field] = _parsed(name, value)
    return volume.model_copy(
        update={
            "multipath": volume.multipath.model_copy(update=options),
            "paths": tuple(path.model_copy(update=of_path) for path in volume.paths),
        }
    )
