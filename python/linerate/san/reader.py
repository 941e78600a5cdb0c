"""Reads a topology file: checks it against `file_model`, resolves names, counts and defaults, assigns addresses.

Errors name file, line and key; all of them are reported at once. Same file, same addresses: networks are numbered in
the order in which their interfaces stand in the file, hosts count from .1 and arrays from .101 in each of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from linerate.errors import UserError, fault_text
from linerate.san.file_model import (
    ArrayPortTable,
    ArrayTable,
    HostTable,
    InterfaceTable,
    LanTable,
    LinkKeys,
    NicTable,
    PortTable,
    StorageTable,
    SwitchTable,
    TopologyFile,
    VolumeTable,
)
from linerate.san.model import (
    MEMORY_FOLDER,
    PREFIX_LENGTH,
    Array,
    ArrayPort,
    Host,
    Interface,
    LanStream,
    Link,
    Network,
    Nic,
    Port,
    Schedule,
    Switch,
    Topology,
    Trunk,
    Volume,
)
from linerate.san.paths import layout
from linerate.san.storage import Storage, misfits
from linerate.toml_lines import Key, key_lines, line_of
from linerate.workload.problems import Problems, SourceLocation
from linerate.workload.toml_read import checked, key_text, read_text

TOPOLOGIES = Path(__file__).resolve().parent / "topologies"
_SUFFIX = ".toml"
_KIND = "topology file"
_FIRST_ARRAY = 101
_CONTROL = 255
_PREFIX = "10.231"
"""Of all networks; they exist only inside a lab."""
_INTERFACE_NAME_MAX = 15
_SHARE = "share"
_SHARE_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}")
_OF_ISCSI_PORTS = {"portal_group", "controller", "alua"}


def shipped_topologies() -> tuple[str, ...]:
    """Names of the topologies that come with Linerate."""
    return tuple(sorted(path.stem for path in TOPOLOGIES.glob(f"*{_SUFFIX}")))


def load_topology(name_or_path: str | Path) -> Topology:
    """A topology file, or a shipped topology by its name. Raises UserError with everything that is wrong."""
    text = str(name_or_path)
    if text in shipped_topologies():
        path = TOPOLOGIES / f"{text}{_SUFFIX}"
        return parse_topology(path.read_text("ascii"), path.name, name=text)
    path = Path(name_or_path)
    if not path.exists() and path.suffix != _SUFFIX:
        raise UserError(
            f"{text}: no such topology", f"give a file, or one of {', '.join(shipped_topologies())}"
        )
    if not path.exists() and path.parent == Path() and path.stem in shipped_topologies():
        return load_topology(path.stem)
    return parse_topology(read_text(path, _KIND), text, name=path.stem)


def parse_topology(text: str, shown: str = _KIND, *, name: str = "san") -> Topology:
    """The topology of a text; messages show `shown` as the file, `name` is used if it has none."""
    problems = Problems()
    file = checked(text, shown, TopologyFile, _KIND, problems)
    reader = _Reader(file, shown, key_lines(text), problems)
    topology = reader.topology(file.name or name)
    problems.raise_if_any()
    return topology


def topology_schema() -> dict[str, Any]:
    """The JSON Schema of a topology file, for editors."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **TopologyFile.model_json_schema()}


@dataclass(slots=True)
class _Domain:
    """A broadcast domain while addresses are being given out."""

    network: Network
    prefix: str
    hosts: int = 0
    arrays: int = 0


@dataclass(slots=True)
class _Reader:
    file: TopologyFile
    shown: str
    lines: dict[Key, int]
    problems: Problems
    segment: dict[str, str] = field(default_factory=dict)
    """Switch -> the first switch of those that trunks join to it."""
    domains: dict[tuple[str, int], _Domain] = field(default_factory=dict)
    nodes: int = 0
    interfaces: int = 0

    def topology(self, name: str) -> Topology:
        self._names()
        self._switches()
        self._trunks()
        self.problems.raise_if_any()
        hosts = tuple(
            host for index, table in enumerate(self.file.host) for host in self._hosts(index, table)
        )
        arrays = tuple(self._array(index, table) for index, table in enumerate(self.file.array))
        self.problems.raise_if_any()
        lan = tuple(self._lan(index, table, hosts) for index, table in enumerate(self.file.lan))
        self.problems.raise_if_any()
        topology = Topology(
            name=name,
            description=self.file.description,
            fabric=self.file.fabric,
            switches=tuple(_switch(table) for table in self.file.switch),
            hosts=hosts,
            arrays=arrays,
            trunks=tuple(
                Trunk(name=trunk.name, a=trunk.a, b=trunk.b, link=self._link(trunk), links=trunk.links)
                for trunk in self.file.trunk
            ),
            networks=tuple(domain.network for domain in self.domains.values()),
            lan=lan,
            control_subnet=f"{_PREFIX}.{_CONTROL}.0/{PREFIX_LENGTH}",
        )
        self._volume_paths(topology)
        return topology

    def _volume_paths(self, topology: Topology) -> None:
        """Paths that volumes name must lead from a host to their own array."""
        for index, table in enumerate(self.file.array):
            for number, volume in enumerate(table.volume):
                if volume.paths is None:
                    continue
                key: Key = ("array", index, "volume", number, "paths")
                try:
                    reached = [
                        f"{table.name}.{name}" in layout(topology, host.name, volume.paths)
                        for host in topology.hosts
                        for name in _counted(volume.name, volume.count)[:1]
                    ]
                except UserError as error:
                    self._error(key, error.message, error.hint)
                    continue
                if not any(reached):
                    self._error(key, f"no path leads to {table.name}")

    def _error(self, key: Key, what: str, accepted: str = "") -> None:
        place = SourceLocation(self.shown, line_of(self.lines, key))
        self.problems.error(place, f"{key_text(key)}: {what}", accepted)

    def _names(self) -> None:
        """Hosts, arrays, switches and trunks share one name space: a name alone says what is meant."""
        seen: dict[str, Key] = {}
        for kind in ("switch", "host", "array", "trunk"):
            for index, table in enumerate(getattr(self.file, kind)):
                for name in _counted(table.name, getattr(table, "count", 1)):
                    key: Key = (kind, index, "name")
                    if name in seen:
                        self._error(key, f"{name} is the name of {key_text(seen[name][:-1])} too")
                    if len(name) > _INTERFACE_NAME_MAX:
                        self._error(key, f"{name} is too long", f"at most {_INTERFACE_NAME_MAX} characters")
                    seen.setdefault(name, key)

    def _switches(self) -> None:
        for index, table in enumerate(self.file.switch):
            key: Key = ("switch", index)
            if table.flow_control == "pfc" and not table.lossless:
                self._error((*key, "flow_control"), "pfc without a lossless priority", "add lossless = [3]")
            xoff_bytes, xon_bytes = _thresholds(table)
            if not xon_bytes < xoff_bytes <= table.buffer:
                self._error((*key, "xoff"), "xon < xoff <= buffer does not hold")
            for priority in table.schedule.shares:
                if priority not in "01234567" or len(priority) != 1:
                    self._error((*key, "schedule", "shares"), f"{priority} is no priority", "0 to 7")
            total = sum(table.schedule.shares.values())
            if table.schedule.kind == "ets" and abs(total - 100) > 0.01:
                self._error((*key, "schedule"), f"the shares add up to {total:g}, not 100")
            self.segment[table.name] = table.name

    def _trunks(self) -> None:
        for index, table in enumerate(self.file.trunk):
            key: Key = ("trunk", index)
            known = [self._known_switch((*key, end), getattr(table, end)) for end in ("a", "b")]
            if not all(known):
                continue
            kept, merged = self.segment[table.a], self.segment[table.b]
            if kept == merged:
                self._error(
                    key, f"{table.a} and {table.b} are joined already", "for several links write links = 2"
                )
            for switch, segment in self.segment.items():
                if segment == merged:
                    self.segment[switch] = kept

    def _known_switch(self, key: Key, name: str) -> bool:
        known = name in self.segment
        if not known:
            self._error(key, f"there is no switch {name}", f"there is {', '.join(self.segment)}")
        return known

    def _hosts(self, index: int, table: HostTable) -> Iterator[Host]:
        for name in _counted(table.name, table.count):
            control = self._control(("host", index))
            yield Host(name=name, ports=self._ports(("host", index), table.port), control_address=control)

    def _array(self, index: int, table: ArrayTable) -> Array:
        control = self._control(("array", index))
        volumes = [name for volume in table.volume for name in _counted(volume.name, volume.count)]
        for name in sorted({name for name in volumes if volumes.count(name) > 1}):
            self._error(("array", index, "volume"), f"the volume name {name} is used twice")
        if table.kind == "nas":
            self._check_nas(("array", index), table)
        elif table.folder is not None:
            self._error(("array", index, "folder"), "only a NAS has a folder", 'write kind = "nas"')
        default = _SHARE if table.kind == "nas" else f"iqn.2026-11.lab.linerate:{table.name}"
        return Array(
            name=table.name,
            kind=table.kind,
            target=table.target or default,
            folder=table.folder,
            ports=self._array_ports(("array", index), table.port),
            volumes=_volumes(table.volume),
            storage=self._storage(("array", index, "storage"), table),
            control_address=control,
        )

    def _check_nas(self, key: Key, table: ArrayTable) -> None:
        """Reports what only an iSCSI array has, and a share or a folder that cannot be."""
        if table.storage is not None:
            self._error((*key, "storage"), "a NAS has no disks of its own", "give it a folder on some")
        for number, volume in enumerate(table.volume):
            if volume.paths is not None:
                self._error((*key, "volume", number, "paths"), "a file of a share has one path")
        for number, port in enumerate(table.port):
            for name in sorted(port.model_fields_set & _OF_ISCSI_PORTS):
                self._error((*key, "port", number, name), "a port of a NAS has none")
        if table.target is not None and not _SHARE_NAME.fullmatch(table.target):
            self._error(
                (*key, "target"),
                f"{table.target} is no name of a share",
                "letters, digits, - and _, at most 80",
            )
        if table.folder is not None and Path(table.folder).is_relative_to(MEMORY_FOLDER):
            self._error(
                (*key, "folder"), f"{MEMORY_FOLDER} of a lab is its own", "leave folder out for memory"
            )

    def _storage(self, key: Key, table: ArrayTable) -> Storage | None:
        if table.storage is None:
            return None
        try:
            storage = _storage(table.storage)
        except ValidationError as error:
            self._error(key, fault_text(error.errors()[0]["msg"]))
            return None
        for what in misfits(storage, [volume.size_bytes for volume in _volumes(table.volume)]):
            self._error(key, what)
        return storage

    def _control(self, key: Key) -> str:
        self.nodes += 1
        if self.nodes > 250:
            self._error(key, "more than 250 hosts and arrays")
        return f"{_PREFIX}.{_CONTROL}.{self.nodes + 1}"

    def _array_ports(self, key: Key, tables: Sequence[ArrayPortTable]) -> tuple[ArrayPort, ...]:
        ports = self._ports(key, tables)
        groups: dict[int, ArrayPort] = {}
        found = []
        for index, (port, table, group) in enumerate(zip(ports, tables, _portal_groups(tables), strict=True)):
            one = ArrayPort(**dict(port), portal_group=group, controller=table.controller, alua=table.alua)
            first = groups.setdefault(group, one)
            if (first.controller, first.alua) != (one.controller, one.alua):
                what = f"{one.name} and {first.name} share the portal group {group}, but not controller and ALUA state"
                self._error((*key, "port", index, "portal_group"), what, "give each its own portal_group")
            found.append(one)
        self.problems.raise_if_any()
        return tuple(found)

    def _ports(self, key: Key, tables: Sequence[PortTable]) -> tuple[Port, ...]:
        array = key[0] == "array"
        ports = []
        names: list[str] = []
        for index, table in enumerate(tables):
            at: Key = (*key, "port", index)
            inside = table.interface or (
                InterfaceTable(name=table.name, vlan=table.vlan, priority=table.priority),
            )
            if table.interface and table.model_fields_set & {"vlan", "priority"}:
                self._error(at, "vlan and priority belong to the interfaces of this port")
            for name in dict.fromkeys((table.name, *(interface.name for interface in inside))):
                if name in names:
                    self._error((*at, "name"), f"the name {name} is used twice in {key_text(key)}")
                names.append(name)
            if not self._known_switch((*at, "switch"), table.switch):
                continue
            ports.append(
                Port(
                    name=table.name,
                    switch=table.switch,
                    link=self._link(table),
                    nic=self._nic(table.nic),
                    links=table.links,
                    interfaces=tuple(self._interface(at, table.switch, one, array) for one in inside),
                )
            )
        self.problems.raise_if_any()
        return tuple(ports)

    def _interface(self, key: Key, switch: str, table: InterfaceTable, array: bool) -> Interface:
        domain = self._domain(key, switch, table.vlan)
        if array:
            domain.arrays += 1
        else:
            domain.hosts += 1
        number = _FIRST_ARRAY - 1 + domain.arrays if array else domain.hosts
        if max(domain.hosts, domain.arrays) > 100:
            self._error(key, f"more than 100 ports of one kind in the network {domain.network.name}")
        self.interfaces += 1
        return Interface(
            name=table.name,
            network=domain.network.name,
            vlan=table.vlan,
            priority=table.priority,
            address=f"{domain.prefix}.{number}",
            mac=f"02:4c:52:00:{self.interfaces >> 8:02x}:{self.interfaces & 255:02x}",
        )

    def _domain(self, key: Key, switch: str, vlan: int) -> _Domain:
        segment = self.segment[switch]
        if (segment, vlan) not in self.domains:
            number = len(self.domains) + 1
            if number >= _CONTROL:
                self._error(key, "more than 254 networks")
            prefix = f"{_PREFIX}.{number}"
            network = Network(
                name=f"net{number}",
                vlan=vlan,
                switches=tuple(name for name, first in self.segment.items() if first == segment),
                subnet=f"{prefix}.0/{PREFIX_LENGTH}",
            )
            self.domains[segment, vlan] = _Domain(network, prefix)
        return self.domains[segment, vlan]

    def _link(self, table: LinkKeys) -> Link:
        named = {
            "rate_bits_per_s": self.file.pick(table, "rate"),
            "mtu": self.file.pick(table, "mtu"),
            "delay_us": self.file.pick(table, "delay"),
            "jitter_us": self.file.pick(table, "jitter"),
            "loss": self.file.pick(table, "loss"),
        }
        return Link(**{key: value for key, value in named.items() if value is not None})

    def _nic(self, table: NicTable) -> Nic:
        named = {
            "rx_ring_frames": self.file.pick(table, "rx_ring"),
            "tx_ring_frames": self.file.pick(table, "tx_ring"),
            "moderation_us": self.file.pick(table, "moderation"),
            "rsc": self.file.pick(table, "rsc"),
        }
        return Nic(**{key: value for key, value in named.items() if value is not None})

    def _lan(self, index: int, table: LanTable, hosts: Sequence[Host]) -> LanStream:
        key: Key = ("lan", index)
        sources = self._ends((*key, "source"), table.source, hosts)
        sinks = self._ends((*key, "sink"), table.sink, hosts)
        pairs = [
            (source, sink)
            for source, source_network in sources.items()
            for sink, sink_network in sinks.items()
            if source_network == sink_network and source != sink
        ]
        if sources and sinks and len(pairs) != 1:
            what = "share no network" if not pairs else "share several networks"
            self._error(key, f"{table.source} and {table.sink} {what}", "name host.interface at both ends")
        source, sink = pairs[0] if pairs else (table.source, table.sink)
        return LanStream(
            name=table.name,
            source=source,
            sink=sink,
            connections=table.connections,
            rate_bits_per_s=table.rate,
        )

    def _ends(self, key: Key, text: str, hosts: Sequence[Host]) -> dict[str, str]:
        """`host.interface` -> network, of all that the text may mean."""
        found = {
            f"{host.name}.{interface.name}": interface.network
            for host in hosts
            for interface in host.interfaces
            if text in (host.name, f"{host.name}.{interface.name}")
        }
        if not found:
            self._error(
                key,
                f"there is no host or interface {text}",
                f"hosts are {', '.join(host.name for host in hosts)}",
            )
        return found


def _counted(pattern: str, count: int) -> list[str]:
    """`h{n}` or `h`, three times: h1, h2, h3."""
    if count == 1 and "{n}" not in pattern:
        return [pattern]
    pattern = pattern if "{n}" in pattern else pattern + "{n}"
    return [pattern.replace("{n}", str(number)) for number in range(1, count + 1)]


def _volumes(tables: Sequence[VolumeTable]) -> tuple[Volume, ...]:
    named = [(name, table) for table in tables for name in _counted(table.name, table.count)]
    return tuple(
        Volume(name=name, lun=lun, size_bytes=table.size, paths=table.paths)
        for lun, (name, table) in enumerate(named)
    )


def _storage(table: StorageTable) -> Storage:
    """Raises ValidationError for disks that form no such sets."""
    named = table.model_dump()
    for name in ("disk_size", "disk_sector", "sector", "chunk"):
        named[f"{name.removesuffix('_size')}_bytes"] = named.pop(name)
    return Storage(**named)


def _portal_groups(tables: Sequence[ArrayPortTable]) -> list[int]:
    """Of each port: its own, else one for each pair of controller and ALUA state, in the order of the file."""
    taken = {table.portal_group for table in tables}
    free = (tag for tag in range(1, 65536) if tag not in taken)
    shared: dict[tuple[str, str], int] = {}
    groups = []
    for table in tables:
        alike = (table.controller, table.alua)
        if table.portal_group is None and alike not in shared:
            shared[alike] = next(free)
        groups.append(shared[alike] if table.portal_group is None else table.portal_group)
    return groups


def _thresholds(table: SwitchTable) -> tuple[int, int]:
    """xoff and xon in bytes."""
    xoff_bytes = table.xoff if table.xoff is not None else max(table.buffer // 4, 1)
    return xoff_bytes, table.xon if table.xon is not None else xoff_bytes // 2


def _switch(table: SwitchTable) -> Switch:
    xoff_bytes, xon_bytes = _thresholds(table)
    return Switch(
        name=table.name,
        buffer_bytes=table.buffer,
        flow_control=table.flow_control,
        lossless_priorities=table.lossless,
        xoff_bytes=xoff_bytes,
        xon_bytes=xon_bytes,
        ecn_threshold_bytes=table.ecn_threshold,
        schedule=Schedule(
            kind=table.schedule.kind,
            shares={int(priority): share for priority, share in table.schedule.shares.items()},
        ),
    )
