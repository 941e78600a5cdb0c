"""Who applies a setting: the network, the load or the host; and what the first two make of it.

The catalogue of `linerate.host` names what a host can set. A study may also turn what stands around the host, under
names with a dot: `link.delay`, `switch.flow_control`, `array.raid_level`, `load.session`. On a virtual SAN the
settings of adapters, links and arrays are turned in the topology: `changed_topology` is the SAN as a case wants it, and
a laboratory moves from one to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError

from linerate.errors import UserError
from linerate.host import MAX, catalogue, named, with_session_settings
from linerate.san import (
    RAID_LEVELS,
    Node,
    Port,
    Schedule,
    Storage,
    Topology,
    beyond_kernel,
    misfits,
    parse_delay_us,
    parse_rate,
    parse_share,
)
from linerate.study.laboratory.faults import FAULTS, check_faults, parse_faults
from linerate.study.laboratory.multipath import MULTIPATH, PATHS, check_multipath, multipathed, paths_of
from linerate.study.model import Settings, SettingValue
from linerate.workload import RunSpec, StreamSpec
from linerate.workload.spec import OpenArrival
from linerate.workload.units import parse_size

Applier = Literal["network", "load", "host"]

RING_FRAMES_MAX = 4096
"""What `max` means for the rings of a virtual adapter: the most that common 10 GbE adapters have."""


@dataclass(frozen=True, slots=True)
class _NetworkSetting:
    """`part` is turned everywhere in the topology (an adapter at the hosts only, storage where arrays have disks);
    `parse` gives its new fields."""

    part: Literal["link", "nic", "switch", "storage"]
    parse: Callable[[SettingValue], Mapping[str, Any]]
    accepted: str


def _schedule(value: SettingValue) -> Mapping[str, Any]:
    """`strict`, or `ets 3:50 0:50`."""
    kind, *shares = str(value).split()
    if kind not in ("strict", "ets") or (kind == "ets") != bool(shares):
        raise ValueError(value)
    pairs = [share.split(":") for share in shares]
    return {
        "schedule": Schedule.model_validate({"kind": kind, "shares": {int(to): float(n) for to, n in pairs}})
    }


def _switch_flow_control(value: SettingValue) -> Mapping[str, Any]:
    if value not in ("none", "pause", "pfc"):
        raise ValueError(value)
    return {"flow_control": value}


def _moderation(value: SettingValue) -> Mapping[str, Any]:
    number = named("interrupt_moderation_us").parse(value)
    if not isinstance(number, int):
        raise ValueError(value)
    return {"moderation_us": float(number)}


def _ring(name: str) -> Callable[[SettingValue], Mapping[str, Any]]:
    def parse(value: SettingValue) -> Mapping[str, Any]:
        frames = named(name).parse(value)
        return {name: RING_FRAMES_MAX if frames == MAX else frames}

    return parse


def _storage(field: str, read: Callable[[SettingValue], int | str], accepted: str) -> _NetworkSetting:
    """A field of the disks behind an array's volumes; `_check_storage` says whether all fields go together."""

    def parse(value: SettingValue) -> Mapping[str, Any]:
        if isinstance(value, bool):
            raise ValueError(value)
        return {field: read(value)}

    return _NetworkSetting("storage", parse, accepted)


_NETWORK = {
    "mtu": _NetworkSetting("link", lambda value: {"mtu": named("mtu").parse(value)}, "576 to 9216 bytes"),
    "flow_control": _NetworkSetting(
        "switch",
        lambda value: {"flow_control": "none" if named("flow_control").parse(value) == "off" else "pause"},
        "on, rx, tx or off",
    ),
    "interrupt_moderation_us": _NetworkSetting("nic", _moderation, "a time in microseconds, or off"),
    "rx_ring_frames": _NetworkSetting("nic", _ring("rx_ring_frames"), "frames, or max"),
    "tx_ring_frames": _NetworkSetting("nic", _ring("tx_ring_frames"), "frames, or max"),
    "rsc": _NetworkSetting("nic", lambda value: {"rsc": named("rsc").parse(value)}, "on or off"),
    "link.rate": _NetworkSetting(
        "link", lambda value: {"rate_bits_per_s": parse_rate(str(value))}, 'a rate, for example "1gbit"'
    ),
    "link.delay": _NetworkSetting(
        "link", lambda value: {"delay_us": parse_delay_us(str(value))}, 'a time, for example "50us"'
    ),
    "link.loss": _NetworkSetting(
        "link", lambda value: {"loss": parse_share(str(value))}, 'a share, for example "0.1%"'
    ),
    "switch.buffer": _NetworkSetting(
        "switch", lambda value: {"buffer_bytes": parse_size(str(value))}, 'a size, for example "64k"'
    ),
    "switch.flow_control": _NetworkSetting("switch", _switch_flow_control, "none, pause or pfc"),
    "switch.schedule": _NetworkSetting("switch", _schedule, '"strict", or "ets 3:50 0:50"'),
    "array.raid_level": _storage("raid_level", str, ", ".join(RAID_LEVELS)),
    "array.disks": _storage("disks", int, "a number of disks, hot spares included"),
    "array.spares": _storage("spares", int, "a number of hot spares in each RAID set"),
    "array.groups": _storage("groups", int, "a number of parts of each RAID 50 or 60 set"),
    "array.chunk": _storage("chunk_bytes", lambda value: parse_size(str(value)), 'a size, for example "64k"'),
    "array.disk_model": _storage("model", str, "the name of a drive"),
    "array.disk_size": _storage(
        "disk_bytes", lambda value: parse_size(str(value)), 'a size, for example "600g"'
    ),
    "array.disk_sector_bytes": _storage("disk_sector_bytes", int, "512 or 4096"),
    "array.sector_bytes": _storage("sector_bytes", int, "512 or 4096"),
    "array.initialise": _storage("initialise", str, "assume_clean or background"),
}
REPLICATION = "array.replication"
"""Whether the first array of a SAN replicates to its second one while a case runs: off or on."""
LAN = "load.lan"
"""Whether the LAN streams of a workload flow while a case runs: on or off."""
_BESIDE = (FAULTS, REPLICATION, LAN)
"""What happens beside the load of a case, and is no part of it."""
_LOAD = ("load.session", "load.volumes", "load.workers", "load.rate", "outstanding", *_BESIDE, *MULTIPATH)
_ONLY_HERE = {name for name in (*_NETWORK, *_LOAD) if "." in name}


def applied_by(name: str) -> Applier:
    """Who turns a setting on a virtual SAN. On hosts that exist, what the catalogue knows of adapters is the host's."""
    if name in _NETWORK:
        return "network"
    if name in _LOAD or named(name).where == "session":
        return "load"
    return "host"


def is_of_storage(name: str) -> bool:
    """Whether a setting is one of the disks behind an array's volumes."""
    return name in _NETWORK and _NETWORK[name].part == "storage"


def is_of_load(name: str) -> bool:
    """Whether a setting is one of the load itself, and neither of its sessions nor of their paths."""
    return applied_by(name) == "load" and name in _LOAD and name not in (*_BESIDE, *MULTIPATH)


def check_setting(name: str, value: SettingValue) -> None:
    """Raises UserError for an unknown setting or a value that it cannot take."""
    if name in _NETWORK:
        _network_fields(name, value)
    elif name in MULTIPATH:
        check_multipath(name, value)
    elif name == FAULTS:
        parse_faults(value)
    elif name == REPLICATION:
        replicates({name: value})
    elif name == LAN:
        has_lan({name: value})
    elif name in _LOAD and name not in catalogue():
        _load_field(name, value)
    elif "." in name:
        raise UserError(
            f"there is no setting {name!r}", f"with a dot there is {', '.join(sorted(_ONLY_HERE))}"
        )
    else:
        named(name).parse(value)


def replicates(settings: Settings) -> bool:
    """Whether a case replicates while it runs. Raises UserError for a value that is neither off nor on."""
    return _is_on(settings, REPLICATION, "off")


def has_lan(settings: Settings) -> bool:
    """Whether the LAN streams of a workload flow. Raises UserError for a value that is neither off nor on."""
    return _is_on(settings, LAN, "on")


def _is_on(settings: Settings, name: str, default: str) -> bool:
    value = settings.get(name, default)
    if value not in ("on", "off", True, False):
        raise UserError(f"{name}: {value!r} cannot be used", "write on or off")
    return value in ("on", True)


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
            what = error.errors()[0]["msg"].removeprefix("Value error, ")
            raise UserError(f"the disks of {array.name}: {what}", f"change {' or '.join(asked)}") from error
        for what in misfits(storage, [volume.size_bytes for volume in array.volumes]):
            raise UserError(f"the disks of {array.name}: {what}", f"change {' or '.join(asked)}")


def _network_fields(name: str, value: SettingValue) -> Mapping[str, Any]:
    setting = _NETWORK[name]
    try:
        return setting.parse(value)
    except (ValueError, ValidationError) as error:
        raise UserError(f"{name}: {value!r} cannot be used", f"write {setting.accepted}") from error


def changed_topology(topology: Topology, settings: Settings) -> Topology:
    """The topology with every network setting among `settings` in force."""
    for name, value in settings.items():
        if name in _NETWORK:
            topology = _changed(topology, _NETWORK[name].part, _network_fields(name, value))
    return topology


def network_values(settings: Settings) -> dict[str, SettingValue]:
    """What the network settings among these come to in the fields of the topology, as texts where they are tables."""
    values: dict[str, SettingValue] = {}
    for name, value in settings.items():
        if name in _NETWORK:
            (field,) = _network_fields(name, value).values()
            values[name] = field if isinstance(field, bool | int | str) else str(value)
    return values


def _changed(topology: Topology, part: str, fields: Mapping[str, Any]) -> Topology:
    def port(one: Port, *, host: bool) -> Port:
        if part == "link":
            return one.model_copy(update={"link": one.link.model_copy(update=fields)})
        return one.model_copy(update={"nic": one.nic.model_copy(update=fields)}) if host else one

    def node(one: Node, *, host: bool) -> Node:
        return one.model_copy(update={"ports": tuple(port(its, host=host) for its in one.ports)})

    if part == "storage":
        arrays = tuple(
            array.model_copy(update={"storage": array.storage.model_copy(update=fields)})
            if array.storage is not None
            else array
            for array in topology.arrays
        )
        return topology.model_copy(update={"arrays": arrays})
    if part == "switch":
        switches = tuple(switch.model_copy(update=fields) for switch in topology.switches)
        return topology.model_copy(update={"switches": switches})
    trunks = topology.trunks
    if part == "link":
        trunks = tuple(
            trunk.model_copy(update={"link": trunk.link.model_copy(update=fields)}) for trunk in trunks
        )
    return topology.model_copy(
        update={
            "hosts": tuple(node(host, host=True) for host in topology.hosts),
            "arrays": tuple(node(array, host=False) for array in topology.arrays),
            "trunks": trunks,
        }
    )


def beyond_kernel_settings(topology: Topology, settings: Settings) -> set[str]:
    """Those settings that only the user-space fabric can turn."""
    never = {"rx_ring_frames", "tx_ring_frames", "lso"}
    return {
        name
        for name, value in settings.items()
        if name in never
        or beyond_kernel(changed_topology(topology, {name: value})) != beyond_kernel(topology)
    }


def loaded(spec: RunSpec, settings: Settings) -> RunSpec:
    """The run with every setting of sessions and load among `settings` in force."""
    volume: dict[str, Any] = {}
    run: dict[str, Any] = {}
    sessions: dict[str, SettingValue] = {}
    for name, value in settings.items():
        if applied_by(name) != "load" or name in _BESIDE or name in MULTIPATH:
            continue
        if name in catalogue():
            sessions[name] = named(name).parse(value)
        else:
            key, parsed = _load_field(name, value)
            (run if key in ("workers", "volumes", "arrival") else volume)[key] = parsed
    volumes = tuple(
        multipathed(one.model_copy(update=volume), settings)
        for one in spec.volumes[: run.pop("volumes", None)]
    )
    fewer = spec.model_copy(
        update={
            **run,
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


def _load_field(name: str, value: SettingValue) -> tuple[str, Any]:
    """Field of the run or of its volumes. Raises UserError."""
    match name:
        case "load.session" if value in ("own", "shared"):
            return "session", value
        case "load.volumes" | "load.workers" if isinstance(value, int) and value > 0:
            return name.removeprefix("load."), int(value)
        case "load.rate" if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return "arrival", OpenArrival(process="deterministic", rate_iops=value)
    raise UserError(
        f"{name}: {value!r} cannot be used",
        "load.session is own or shared, load.rate I/Os per second, the others a number",
    )
