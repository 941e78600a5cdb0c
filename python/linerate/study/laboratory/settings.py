"""Applies settings of a study: to the topology of a virtual SAN, and to the run.

`linerate.settings` is the catalogue. `changed_topology` makes the SAN of a case, and a laboratory moves from one to the
next; `loaded` makes the run of a case.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any, get_args

from pydantic import ValidationError

from linerate.errors import UserError, fault_text
from linerate.host import catalogue as host_catalogue
from linerate.host.session import with_session_settings
from linerate.san import Node, Port, Storage, Topology, beyond_kernel, misfits
from linerate.settings import (
    LAN,
    PATHS,
    REPLICATION,
    USER_FABRIC_ALWAYS,
    ModelField,
    RunPart,
    applied_by,
    find,
    is_of_topology,
    model_field,
)
from linerate.study.laboratory.faults import check_faults
from linerate.study.laboratory.multipath import multipathed, paths_of
from linerate.study.model import Settings, SettingValue
from linerate.workload import RunSpec, SmbSpec, StreamSpec


def is_of_storage(name: str) -> bool:
    """Whether a setting is one of the disks behind an array's volumes."""
    field = model_field(name)
    return field is not None and field.part == "storage"


def is_of_load(name: str) -> bool:
    """Whether a setting is one of the load itself, and neither of its sessions nor of their paths."""
    field = model_field(name)
    return name == "outstanding" or (field is not None and field.part in ("run", "volume"))


def is_of_modelled_time(name: str) -> bool:
    """Whether a SAN in modelled time has a setting: it has disks and loads only."""
    return is_of_load(name) or is_of_storage(name)


def check_setting(name: str, value: SettingValue) -> None:
    """Raises UserError for an unknown setting or a value that it cannot have."""
    _field_value(name, value)


def _field_value(name: str, value: SettingValue) -> Any:
    """What a setting's value is in its field of a model. Raises UserError."""
    setting, field = find(name), model_field(name)
    try:
        meaning = setting.meaning(value)
        return field.convert(meaning) if field is not None else meaning
    except ValueError as error:
        _, _, accepted = str(error).partition("; ")
        raise UserError(
            f"{name}: {value!r} cannot be used", accepted or f"write {setting.range_text}"
        ) from error


def replicates(settings: Settings) -> bool:
    """Whether a case replicates while it runs. Raises UserError."""
    return bool(_field_value(REPLICATION, settings.get(REPLICATION, False)))


def has_lan(settings: Settings) -> bool:
    """Whether the LAN streams of a workload run. Raises UserError."""
    return bool(_field_value(LAN, settings.get(LAN, True)))


def check_on(topology: Topology, settings: Settings, elapsed_s: float) -> None:
    """Raises UserError for paths and faults that a SAN of this topology, or a run of this length, cannot have."""
    _check_storage(topology, settings)
    if not any(paths_of(topology, host.name, settings) for host in topology.hosts):
        raise UserError(f"{PATHS}: no host of {topology.name} has a path to a volume", "give its hosts paths")
    check_faults(topology, settings, elapsed_s)


def _check_storage(topology: Topology, settings: Settings) -> None:
    """Raises UserError for disks that form no such RAID sets, or whose sets do not hold the array's volumes."""
    asked = [name for name in settings if is_of_storage(name)]
    if asked and not any(array.storage for array in topology.arrays):
        raise UserError(f"{asked[0]}: no array of {topology.name} has disks", "give one `storage`")
    pools = [array for array in topology.arrays if array.storage and array.storage.backing == "pool"]
    if replicates(settings) and len(pools) < 2:
        raise UserError(f"{REPLICATION}: {topology.name} has no two arrays with pools", "give it two")
    for array in changed_topology(topology, settings).arrays:
        if array.storage is None:
            continue
        try:
            storage = Storage.model_validate(array.storage.model_dump())
        except ValidationError as error:
            what = fault_text(error.errors()[0]["msg"])
            raise UserError(f"the disks of {array.name}: {what}", f"change {' or '.join(asked)}") from error
        for what in misfits(storage, [volume.size_bytes for volume in array.volumes]):
            raise UserError(f"the disks of {array.name}: {what}", f"change {' or '.join(asked)}")


def changed_topology(topology: Topology, settings: Settings) -> Topology:
    """The topology with all settings that concern it in force."""
    for name, value in settings.items():
        field = model_field(name)
        if field is not None and is_of_topology(name):
            topology = _changed(topology, field, _field_value(name, value))
    return topology


def topology_values(settings: Settings) -> dict[str, SettingValue]:
    """The values that settings have in the fields of the topology; texts for fields that are tables."""
    values: dict[str, SettingValue] = {}
    for name, value in settings.items():
        if is_of_topology(name):
            found = _field_value(name, value)
            values[name] = found if isinstance(found, bool | int | str) else str(value)
    return values


def _changed(topology: Topology, field: ModelField, value: Any) -> Topology:
    update = {field.name: value}

    def port(one: Port, *, host: bool) -> Port:
        if field.part == "link":
            return one.model_copy(update={"link": one.link.model_copy(update=update)})
        return one.model_copy(update={"nic": one.nic.model_copy(update=update)}) if host else one

    def node(one: Node, *, host: bool) -> Node:
        return one.model_copy(update={"ports": tuple(port(its, host=host) for its in one.ports)})

    if field.part == "storage":
        arrays = tuple(
            array.model_copy(update={"storage": array.storage.model_copy(update=update)})
            if array.storage is not None
            else array
            for array in topology.arrays
        )
        return topology.model_copy(update={"arrays": arrays})
    if field.part == "switch":
        switches = tuple(switch.model_copy(update=update) for switch in topology.switches)
        return topology.model_copy(update={"switches": switches})
    trunks = topology.trunks
    if field.part == "link":
        trunks = tuple(
            trunk.model_copy(update={"link": trunk.link.model_copy(update=update)}) for trunk in trunks
        )
    return topology.model_copy(
        update={
            "hosts": tuple(node(host, host=True) for host in topology.hosts),
            "arrays": tuple(node(array, host=False) for array in topology.arrays),
            "trunks": trunks,
        }
    )


def beyond_kernel_settings(topology: Topology, settings: Settings) -> set[str]:
    """Those settings that only the user-space fabric can apply."""
    return {
        name
        for name, value in settings.items()
        if name in USER_FABRIC_ALWAYS
        or beyond_kernel(changed_topology(topology, {name: value})) != beyond_kernel(topology)
    }


def loaded(spec: RunSpec, settings: Settings) -> RunSpec:
    """The run with every setting of sessions, load and paths in force."""
    fields: dict[str, dict[str, Any]] = {part: {} for part in get_args(RunPart)}
    sessions: dict[str, SettingValue] = {}
    for name, value in settings.items():
        field = model_field(name)
        if field is not None and field.part in fields:
            fields[field.part][field.name] = _field_value(name, value)
        elif name in host_catalogue() and applied_by(name) == "load":
            sessions[name] = find(name).parse(value)
    used: int | None = fields["run"].pop("volumes", None)
    smb = SmbSpec(**fields["smb"])
    volumes = tuple(
        multipathed(
            one.model_copy(update={**fields["volume"], "smb": one.smb.merged(smb)}),
            fields["multipath"],
            fields["path"],
        )
        for one in spec.volumes[:used]
    )
    fewer = spec.model_copy(
        update={
            **fields["run"],
            "volumes": volumes,
            "streams": _streams_on(spec.streams, {one.name for one in volumes}),
        }
    )
    return with_session_settings(fewer, sessions)


def _streams_on(streams: Sequence[StreamSpec], volumes: Set[str]) -> tuple[StreamSpec, ...]:
    """The streams on those of their volumes that are left."""
    return tuple(
        stream.model_copy(update={"volumes": tuple(name for name in stream.volumes if name in volumes)})
        for stream in streams
    )
