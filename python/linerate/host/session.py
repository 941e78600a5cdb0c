"""Settings of iSCSI sessions, carried into the runs that open them: they are agreed at login, so no host
holds them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from linerate.setting import Value
from linerate.workload import RunSpec, StreamSpec, VolumeSpec
from linerate.workload.spec import SessionSpec

_OUTSTANDING, _SESSIONS, _NAGLE = "outstanding", "sessions_per_volume", "nagle"


def with_session_settings(run: RunSpec, values: Mapping[str, Value]) -> RunSpec:
    """The run with checked settings of sessions in each of its volumes; what is not set stays as it is.

    `values` are settings whose place is the session, and any other option of a session by its own name.

    With n sessions per volume, a volume `v` is opened n times, as `v`, `v.2` .. `v.n`; the streams spread
    over all of them and each has its part of the outstanding I/Os, so the load on the volume stays the same.
    Sequential streams then run through the volume once in each session.
    """
    options = _session_options(values)
    sessions = int(values.get(_SESSIONS, 1))
    volumes: list[VolumeSpec] = []
    names: dict[str, list[str]] = {}
    for volume in run.volumes:
        outstanding = int(values.get(_OUTSTANDING, volume.outstanding))
        parts = min(sessions, outstanding)
        names[volume.name] = [volume.name, *(f"{volume.name}.{number}" for number in range(2, parts + 1))]
        for index, name in enumerate(names[volume.name]):
            share = outstanding // parts + (index < outstanding % parts)
            changes = {"name": name, "outstanding": share, "iscsi": volume.iscsi.merged(options)}
            own = {"session": "own"} if parts > 1 else {}
            volumes.append(volume.model_copy(update=changes | own))
    streams = tuple(_spread(stream, names) for stream in run.streams)
    return run.model_copy(update={"volumes": tuple(volumes), "streams": streams})


def _session_options(values: Mapping[str, Value]) -> SessionSpec:
    """What the values ask of a login and of its connection."""
    known: dict[str, Any] = {name: values[name] for name in SessionSpec.model_fields if name in values}
    if _NAGLE in values:
        known["nodelay"] = not values[_NAGLE]
    return SessionSpec(**known)


def _spread(stream: StreamSpec, names: Mapping[str, list[str]]) -> StreamSpec:
    volumes = tuple(part for volume in stream.volumes for part in names[volume])
    return stream.model_copy(update={"volumes": volumes})
