"""Facts of a topology: its ports, paths, switches, arrays and volumes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from linerate.advice.derive import PathKey, derived
from linerate.advice.facts import AuditSubject, FactValue, SanFactSheet, SessionFact, VolumePath
from linerate.san import Array, Host, Path, Port, Switch, Topology, Volume, asked_paths, layout
from linerate.setting import Value
from linerate.settings import PATHS, RING_FRAMES_MAX

_POLICY = "multipath.policy"
_FLOW_CONTROL = {"none": "off", "pause": "on", "pfc": "pfc"}


def read_topology(
    topology: Topology, settings: Mapping[str, Value] | None = None, prefix: str = ""
) -> SanFactSheet:
    """The facts of a topology. `settings` are those of a study that choose its paths and their policy.

    `prefix` goes before every name, where several topologies are audited together.
    """
    return derived(
        _Reader(topology, settings or {}, prefix).sheet(), _policies(topology, settings or {}, prefix)
    )


def _policies(topology: Topology, settings: Mapping[str, Value], prefix: str) -> dict[str, str]:
    policy = settings.get(_POLICY)
    if policy is None:
        return {}
    return {
        f"{prefix}{array.name}.{one.name}": str(policy) for array in topology.arrays for one in array.volumes
    }


class _Reader:
    """Reads one topology; `storage` are the networks with a port of an array."""

    def __init__(self, topology: Topology, settings: Mapping[str, Value], prefix: str) -> None:
        self._topology = topology
        self._settings = settings
        self._prefix = prefix
        self._storage = {interface.network for array in topology.arrays for interface in array.interfaces}

    def sheet(self) -> SanFactSheet:
        """All facts."""
        paths = {host.name: self._volume_paths(host) for host in self._topology.hosts}
        used = [path for mine in paths.values() for one in mine.values() for path in one]
        unique = list({path.name: path for path in used}.values())
        subjects = [
            *(
                AuditSubject("host", self._named(host.name), "topology", self._host(host))
                for host in self._hosts()
            ),
            *(self._port(host, port) for host in self._hosts() for port in self._ports(host)),
            *(self._path(path) for path in unique),
            *(self._volume(array, one) for array in self._topology.arrays for one in array.volumes),
            *(self._array(array) for array in self._topology.arrays),
            *(self._switch(switch) for switch in self._topology.switches),
            *self._trunks(),
        ]
        sessions = tuple(
            SessionFact(self._named(path.host), self._end(path), self._portal(path), self._named(path.array))
            for path in unique
        )
        volume_paths = tuple(
            VolumePath(
                self._named(volume), self._named(host), self._end(path), self._portal(path), not path.standby
            )
            for host, mine in paths.items()
            for volume, ways in mine.items()
            for path in ways
        )
        return SanFactSheet(tuple(subjects), sessions, volume_paths)

    def _named(self, name: str) -> str:
        return f"{self._prefix}{name}"

    def _end(self, path: Path) -> str:
        port = self._port_of(path.host, path.host_interface)
        return self._named(f"{path.host}.{port.name}")

    def _portal(self, path: Path) -> str:
        return f"{path.array}.{path.array_interface}"

    def _port_of(self, node: str, interface: str) -> Port:
        ports = self._topology.node(node).ports
        return next(port for port in ports if interface in [one.name for one in port.interfaces])

    def _hosts(self) -> Iterator[Host]:
        """Hosts with a port in a network of arrays."""
        return (host for host in self._topology.hosts if any(True for _ in self._ports(host)))

    def _ports(self, host: Host) -> Iterator[Port]:
        return (port for port in host.ports if {one.network for one in port.interfaces} & self._storage)

    def _volume_paths(self, host: Host) -> dict[str, tuple[Path, ...]]:
        asked = self._settings.get(PATHS)
        return layout(self._topology, host.name, asked_paths(asked) if asked is not None else None)

    def _host(self, host: Host) -> dict[str, FactValue]:
        """Ports of arrays in its networks; sessions follow from paths."""
        networks = {one.network for port in self._ports(host) for one in port.interfaces}
        portals = [
            one for array in self._topology.arrays for one in array.interfaces if one.network in networks
        ]
        return {"array_ports": len(portals), "sessions": 0}

    def _port(self, host: Host, port: Port) -> AuditSubject:
        switch = self._topology.switch(port.switch)
        facts: dict[str, FactValue] = {
            "mtu": port.link.mtu,
            "flow_control": _FLOW_CONTROL[switch.flow_control],
            "rx_ring_frames": port.nic.rx_ring_frames,
            "tx_ring_frames": port.nic.tx_ring_frames,
            "rx_ring_frames_most": RING_FRAMES_MAX,
            "tx_ring_frames_most": RING_FRAMES_MAX,
            "teamed": port.links > 1,
            "speed_mbit_s": round(port.link.rate_bits_per_s * port.links / 1e6),
            "duplex": "full",
            "switch": self._named(port.switch),
            "other_traffic": self._lan_streams(host, port),
        }
        return AuditSubject("port", self._named(f"{host.name}.{port.name}"), "topology", facts)

    def _lan_streams(self, host: Host, port: Port) -> int:
        """Streams that share a network with storage on this port."""
        storage = {f"{host.name}.{one.name}" for one in port.interfaces if one.network in self._storage}
        return sum(bool({stream.source, stream.sink} & storage) for stream in self._topology.lan)

    def _path(self, path: Path) -> AuditSubject:
        ours = self._port_of(path.host, path.host_interface)
        theirs = self._port_of(path.array, path.array_interface)
        limits = [theirs.link.mtu, *self._trunk_mtus(ours.switch, theirs.switch)]
        facts: dict[str, FactValue] = {
            "carries_mtu": ours.link.mtu <= min(limits),
            "routed": False,
            "subnet": self._topology.network(self._interface_network(path)).subnet,
        }
        return AuditSubject("path", PathKey(self._end(path), self._portal(path)).name, "topology", facts)

    def _interface_network(self, path: Path) -> str:
        interfaces = self._topology.node(path.array).interfaces
        return next(one.network for one in interfaces if one.name == path.array_interface)

    def _trunk_mtus(self, start: str, end: str) -> list[int]:
        """The MTU of each trunk that may be between two switches; none where they are one."""
        if start == end:
            return []
        return [trunk.link.mtu for trunk in self._topology.trunks]

    def _volume(self, array: Array, volume: Volume) -> AuditSubject:
        facts: dict[str, FactValue] = {"size_bytes": volume.size_bytes}
        return AuditSubject("volume", self._named(f"{array.name}.{volume.name}"), "topology", facts)

    def _array(self, array: Array) -> AuditSubject:
        facts: dict[str, FactValue] = {
            "teamed_ports": sum(port.links > 1 for port in array.ports),
            "portals": len(array.interfaces),
            "subnets": len({self._topology.network(one.network).subnet for one in array.interfaces}),
            "pool": False,
        }
        unknown: dict[str, str] = {}
        storage = array.storage
        if storage is None:
            held = "files of a share" if array.kind == "nas" else "memory"
            reason = f"its volumes are {held}: there are no disks"
            unknown |= dict.fromkeys(("chunk_bytes", "sector_kinds", "raid_level", "initialising"), reason)
        else:
            asked = sum(volume.size_bytes for volume in array.volumes)
            facts |= {
                "chunk_bytes": storage.chunk_bytes,
                "sector_kinds": 1,
                "raid_level": storage.raid_level,
                "initialising": storage.initialise == "background",
                "pool": storage.backing == "pool",
                "provisioned_percent": round(100 * asked / storage.usable_bytes, 1),
            }
        return AuditSubject("array", self._named(array.name), "topology", facts, unknown)

    def _switch(self, switch: Switch) -> AuditSubject:
        priorities = self._iscsi_priorities(switch.name)
        facts: dict[str, FactValue] = {
            "pfc_priorities": ",".join(map(str, sorted(switch.lossless_priorities))) or "none",
            "iscsi_priority": ",".join(map(str, sorted(priorities))) or "none",
            "converged": self._is_converged(switch.name),
        }
        facts["dcb"] = switch.flow_control == "pfc"
        if switch.flow_control != "pfc":
            facts["pfc_priorities"] = "none"
        shares = [switch.schedule.shares.get(priority, 0) for priority in priorities]
        facts["iscsi_share_percent"] = min(shares, default=0) if switch.schedule.kind == "ets" else 0
        return AuditSubject("switch", self._named(switch.name), "topology", facts)

    def _iscsi_priorities(self, switch: str) -> set[int]:
        return {
            one.priority
            for node in self._topology.nodes
            for port in node.ports
            if port.switch == switch
            for one in port.interfaces
            if one.network in self._storage
        }

    def _is_converged(self, switch: str) -> bool:
        """Whether a port at this switch carries storage and another network."""
        return any(
            len(networks & self._storage) not in (0, len(networks))
            for node in self._topology.nodes
            for port in node.ports
            if port.switch == switch and (networks := {one.network for one in port.interfaces})
        )

    def _trunks(self) -> Iterator[AuditSubject]:
        largest = max((port.link.mtu for node in self._topology.nodes for port in node.ports), default=1500)
        for trunk in self._topology.trunks:
            facts: dict[str, FactValue] = {"mtu": trunk.link.mtu, "mtu_wanted": largest}
            yield AuditSubject("trunk", self._named(trunk.name), "topology", facts)
