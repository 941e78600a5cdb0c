"""Settings of iSCSI sessions, carried into the runs that open them.

A session's settings are agreed when it logs in, so they are no knobs of a host: `SessionSettings` keeps what
was asked for and puts it into the volumes of a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from linerate.host.setting import Setting, Value
from linerate.workload import RunSpec, StreamSpec, VolumeSpec
from linerate.workload.spec import SessionOptions

UNSET = "default"
"""What a session's setting stands at while nobody asked for anything: the initiator's own default."""
_OUTSTANDING, _SESSIONS, _NAGLE = "outstanding", "sessions_per_volume", "nagle"


class SessionSettings:
    """The writer for `session`: remembers values, and changes runs accordingly."""

    def __init__(self) -> None:
        self._values: dict[str, Value] = {}

    def available(self, setting: Setting, device: str) -> str:
        """Every setting of a session is."""
        return "" if setting.where == "session" else f"{setting.name} is no setting of a session"

    def read(self, setting: Setting, device: str) -> Value:
        """What was asked for."""
        return self._values.get(setting.name, UNSET)

    def write(self, setting: Setting, device: str, value: Value) -> None:
        """Remembers what is asked for."""
        if value == UNSET:
            self._values.pop(setting.name, None)
        else:
            self._values[setting.name] = value

    def changed(self, run: RunSpec) -> RunSpec:
        """The run with these settings in each of its volumes."""
        return with_session_settings(run, self._values)


def with_session_settings(run: RunSpec, values: Mapping[str, Value]) -> RunSpec:
    """The run with checked settings of sessions in each of its volumes; what is not set stays as it is.

    With n sessions per volume, a volume `v` is opened n times, as `v`, `v.2` .. `v.n`; the streams spread
    over all of them and each has its part of the outstanding I/Os, so the load on the volume stays the same.
    Sequential streams then run through the volume once in each session.
    """
    options = session_options(values)
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
            volumes.append(volume.model_copy(update=changes))
    streams = tuple(_spread(stream, names) for stream in run.streams)
    return RunSpec.model_validate(run.model_copy(update={"volumes": tuple(volumes), "streams": streams}))


def session_options(values: Mapping[str, Value]) -> SessionOptions:
    """What the values ask of a login and of its connection."""
    known: dict[str, Any] = {name: values[name] for name in SessionOptions.model_fields if name in values}
    if _NAGLE in values:
        known["nodelay"] = not values[_NAGLE]
    return SessionOptions(**{name: value for name, value in known.items() if name != "congestion_control"})


def _spread(stream: StreamSpec, names: Mapping[str, list[str]]) -> StreamSpec:
    volumes = tuple(part for volume in stream.volumes for part in names[volume])
    return stream.model_copy(update={"volumes": volumes})
