"""Topology: everything about a SAN that a lab builds, a fabric carries and a report draws. Pure data.

All models are frozen, everything is resolved: defaults, counts, addresses. Units end the names. `reader` makes one from
a file; `model_dump_json` and `model_validate_json` carry it unchanged into a manifest and back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import ip_network
from typing import Annotated, Literal, TypeVar

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from linerate.san.storage import Storage
from linerate.workload.spec import FrozenSpec

Share = Annotated[float, Field(ge=0, le=1)]
Priority = Annotated[int, Field(ge=0, le=7)]
Vlan = Annotated[int, Field(ge=0, le=4094)]
Mtu = Annotated[int, Field(ge=576, le=9216)]

PREFIX_LENGTH = 24
"""Of every network."""
ISCSI_PORT = 3260
SMB_PORT = 445
MEMORY_FOLDER = "/dev/shm"
"""Where files in memory are on Linux; those of a lab are on a tmpfs of its own there."""
TEAM_LINKS_MAX = 16

Layout = Literal["one-to-one", "mesh", "partial"]
"""How a host's ports and an array's are joined to paths; see `linerate.san.paths.layout`."""
AluaState = Literal["active_optimized", "active_non_optimized", "standby", "unavailable"]
"""What a path may be used for (SPC-5, asymmetric logical unit access)."""


class Link(FrozenSpec):
    """A wire, the same in both directions."""

    rate_bits_per_s: PositiveFloat = 1e9
    """On the wire, with preamble and gap: 1 Gbit/s carries 112.2 MB/s of TCP payload at MTU 1500."""
    mtu: Mtu = 1500
    """Largest IP packet in bytes."""
    delay_us: NonNegativeFloat = 0.0
    """Propagation, one way."""
    jitter_us: NonNegativeFloat = 0.0
    """Up to this much is added to the delay of a frame, at random; frames keep their order."""
    loss: Share = 0.0
    """Share of frames that are lost at random."""
    up: bool = True


class Nic(FrozenSpec):
    """What is particular about the network adapter at a host's or an array's end of a link."""

    rx_ring_frames: PositiveInt = 512
    tx_ring_frames: PositiveInt = 512
    moderation_us: NonNegativeFloat = 0.0
    """Interrupts wait this long for more frames."""
    rsc: bool = False
    """Merge received frames of a connection (Windows: RSC; Linux: LRO or GRO)."""


class Interface(FrozenSpec):
    """What an operating system sees: an IP address on a VLAN. Several may share one port."""

    name: str
    """As `ip link` shows it inside the host."""
    network: str
    """The network that it belongs to."""
    vlan: Vlan = 0
    """0: untagged."""
    priority: Priority = 0
    """Of the frames that it sends (802.1p)."""
    address: str
    """IPv4 address, without the prefix length."""
    mac: str


class Port(FrozenSpec):
    """A physical port of a host or an array and the link that runs from it to a switch."""

    name: str
    switch: str
    link: Link = Link()
    nic: Nic = Nic()
    links: Annotated[int, Field(ge=1, le=TEAM_LINKS_MAX)] = 1
    """Several links form a team: one address, and each connection takes the link that its flow hash says."""
    interfaces: tuple[Interface, ...] = Field(min_length=1)


class ArrayPort(Port):
    """A port of an array."""

    portal_group: Annotated[int, Field(ge=1, le=65535)] = 1
    """Tag of the iSCSI target portal group: portals of one group may serve one session, and share an ALUA state."""
    controller: str = "A"
    """The array's controller that the port belongs to; with it all its ports fail at once."""
    alua: AluaState = "active_optimized"
    """Of all the array's volumes through this port."""


class Node(FrozenSpec):
    """What has ports: a host or an array."""

    name: str
    ports: tuple[Port, ...] = Field(min_length=1)
    control_address: str
    """On the control network, which is no part of the SAN."""

    @property
    def interfaces(self) -> tuple[Interface, ...]:
        """Of all ports, in order."""
        return tuple(interface for port in self.ports for interface in port.interfaces)


class Host(Node):
    """A computer with an initiator."""


class Volume(FrozenSpec):
    """A logical unit."""

    name: str
    lun: NonNegativeInt
    size_bytes: PositiveInt
    """Of one that is a whole RAID set the part that is used."""
    paths: Layout | tuple[str, ...] | None = None
    """How hosts reach it: a layout, or paths such as "h1.p0 -> a1.p1"; over one path if not given."""

    @property
    def file_name(self) -> str:
        """The file that it is on the share of a NAS."""
        return f"{self.name}.img"


ArrayKind = Literal["iscsi", "nas"]
"""What an array serves: LUNs of an iSCSI target, or files on an SMB share."""


class Array(Node):
    """A storage array: one iSCSI target, or one SMB share, that is reached through all its ports."""

    kind: ArrayKind = "iscsi"
    ports: tuple[ArrayPort, ...] = Field(min_length=1)
    target: str
    """iSCSI qualified name; of a NAS the name of its share."""
    volumes: tuple[Volume, ...]
    folder: str | None = None
    """Of a NAS: the folder with its files; null: they are in memory."""
    storage: Storage | None = None
    """Disks behind the volumes; null: they lie in memory."""

    @property
    def service_port(self) -> int:
        """TCP port of its target or its share."""
        return SMB_PORT if self.kind == "nas" else ISCSI_PORT

    def url(self, volume: Volume, address: str) -> str:
        """The URL of a volume through one of the array's addresses."""
        if self.kind == "nas":
            return f"smb://{address}:{SMB_PORT}/{self.target}/{volume.file_name}"
        return f"iscsi://{address}:{ISCSI_PORT}/{self.target}/{volume.lun}"

    @property
    def controllers(self) -> dict[str, tuple[str, ...]]:
        """Controller -> the names of its ports."""
        names = dict.fromkeys(port.controller for port in self.ports)
        return {name: tuple(port.name for port in self.ports if port.controller == name) for name in names}


class Schedule(FrozenSpec):
    """How a port that has frames of several priorities chooses among them."""

    kind: Literal["strict", "ets"] = "strict"
    """strict: the highest priority first. ets: by share, unused shares go to the others (802.1Qaz)."""
    shares: Mapping[Priority, Annotated[float, Field(gt=0, le=100)]] = {}
    """Percent of the line for each priority; what is not named is served when these are idle."""


class Switch(FrozenSpec):
    """A switch with finite buffers."""

    name: str
    buffer_bytes: PositiveInt = 1 << 20
    """For each port and priority, at its egress; what does not fit is dropped."""
    flow_control: Literal["none", "pause", "pfc"] = "none"
    """pause: 802.3x, the whole link. pfc: 802.1Qbb, only the lossless priorities."""
    lossless_priorities: tuple[Priority, ...] = ()
    """Priorities that pfc pauses instead of dropping."""
    xoff_bytes: PositiveInt
    """A link is paused when this much that came in by it waits in the switch."""
    xon_bytes: NonNegativeInt
    """And resumed at this much."""
    ecn_threshold_bytes: PositiveInt | None = None
    """Frames that find a longer queue are marked (RFC 3168)."""
    schedule: Schedule = Schedule()


class Trunk(FrozenSpec):
    """A link between two switches that carries every VLAN; several links form one aggregate by flow hash."""

    name: str
    a: str
    b: str
    link: Link = Link()
    links: PositiveInt = 1


class Network(FrozenSpec):
    """A broadcast domain: one VLAN over switches that are joined by trunks."""

    name: str
    vlan: Vlan
    switches: tuple[str, ...]
    subnet: str
    """IPv4, with the prefix length."""


class LanStream(FrozenSpec):
    """TCP traffic that is no storage traffic, between two hosts."""

    name: str
    source: str
    """`host.interface`."""
    sink: str
    """`host.interface`."""
    connections: PositiveInt = 4
    rate_bits_per_s: PositiveFloat | None = None
    """Of all connections together; null: as much as goes."""


class Path(FrozenSpec):
    """One way from a host to an array: an initiator port and a target port in one network."""

    host: str
    host_interface: str
    host_address: str
    array: str
    array_interface: str
    array_address: str
    standby: bool = False
    """Used only while no other path lives."""
    weight: NonNegativeInt = 0
    """Of the policy `weighted_paths`: the lowest that lives is used."""

    @property
    def name(self) -> str:
        """As results and events call it: `h1.p0-a1.p1`."""
        return f"{self.host}.{self.host_interface}-{self.array}.{self.array_interface}"

    @property
    def portal(self) -> str:
        """Address and port of an iSCSI array's end."""
        return f"{self.array_address}:{ISCSI_PORT}"


class Topology(FrozenSpec):
    """A SAN."""

    name: str
    description: str = ""
    fabric: Literal["auto", "kernel", "user"] = "auto"
    """What carries the frames of a virtual SAN: bridges and HTB of the kernel, or Linerate's own switch."""
    switches: tuple[Switch, ...] = Field(min_length=1)
    hosts: tuple[Host, ...] = Field(min_length=1)
    arrays: tuple[Array, ...] = ()
    trunks: tuple[Trunk, ...] = ()
    networks: tuple[Network, ...]
    lan: tuple[LanStream, ...] = ()
    control_subnet: str
    """IPv4 with the prefix length; .1 is the machine that runs the study."""

    @property
    def control_address(self) -> str:
        """Of the machine that runs the study."""
        return str(ip_network(self.control_subnet)[1])

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Hosts, then arrays."""
        return (*self.hosts, *self.arrays)

    @property
    def links(self) -> dict[str, Link]:
        """Every link by name: `host.port`, `array.port`, or the trunk's name."""
        found = {f"{node.name}.{port.name}": port.link for node in self.nodes for port in node.ports}
        return found | {trunk.name: trunk.link for trunk in self.trunks}

    @property
    def line_rates(self) -> dict[str, float]:
        """Bits per second of every link by name, of a team and a trunk that of all its links together."""
        counts = self.link_counts
        return {name: link.rate_bits_per_s * counts[name] for name, link in self.links.items()}

    @property
    def link_counts(self) -> dict[str, int]:
        """How many links a link consists of, by name: more than 1 for teams and trunks of several."""
        ports = {f"{node.name}.{port.name}": port.links for node in self.nodes for port in node.ports}
        return ports | {trunk.name: trunk.links for trunk in self.trunks}

    def node(self, name: str) -> Node:
        """The host or array of that name. Raises KeyError."""
        return _named(self.nodes, name)

    def switch(self, name: str) -> Switch:
        """The switch of that name. Raises KeyError."""
        return _named(self.switches, name)

    def network(self, name: str) -> Network:
        """The network of that name. Raises KeyError."""
        return _named(self.networks, name)


_Named = TypeVar("_Named", Node, Switch, Network)


def _named(items: Iterable[_Named], name: str) -> _Named:
    for item in items:
        if item.name == name:
            return item
    raise KeyError(name)
