"""A topology file as models: what may stand in it, with defaults.

    name = "two-hosts"

    [link]
    rate = "250mbit"

    [[switch]]
    name = "sw1"
    buffer = "256k"

    [[host]]
    name = "h{n}"
    count = 2
    port = [{ name = "p0", switch = "sw1" }]

    [[array]]
    name = "a1"
    port = [{ name = "p0", switch = "sw1" }]
    volume = [{ name = "v{n}", count = 8, size = "1g" }]

Rates take kbit, mbit and gbit (1000-based), sizes k, m and g (1024-based), delays ns, us and ms. `[link]` and `[nic]`
hold for every port that does not say otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, PlainValidator, PositiveInt, WithJsonSchema

from linerate.array.storage import Level
from linerate.san.model import TEAM_LINKS_MAX, AluaState, ArrayKind, Layout, Mtu, Priority, Vlan
from linerate.san.paths import PATHS_FORM, asked_paths
from linerate.san.storage import Backing, DiskSector
from linerate.san.units import (
    DELAY_FORM,
    RATE_FORM,
    SHARE_FORM,
    parse_delay_us,
    parse_rate,
    parse_share,
)
from linerate.workload.spec import FrozenSpec
from linerate.workload.toml_fields import Bytes


def _written(parse: Callable[[str], float], form: str, *, number: bool) -> Callable[[object], float]:
    def read(value: object) -> float:
        if isinstance(value, str) or (value == 0 and value is not False):
            return parse(str(value))
        if number and isinstance(value, int | float) and not isinstance(value, bool):
            return parse(f"{value}bit")
        raise ValueError(f"{value!r} is not understood; write {form}")

    return read


def _schema(kind: list[str], form: str) -> WithJsonSchema:
    return WithJsonSchema({"type": kind, "description": form})


Rate = Annotated[
    float,
    PlainValidator(_written(parse_rate, RATE_FORM, number=True)),
    _schema(["number", "string"], RATE_FORM),
]
Delay = Annotated[
    float,
    PlainValidator(_written(parse_delay_us, DELAY_FORM, number=False)),
    _schema(["string"], DELAY_FORM),
]
Loss = Annotated[
    float,
    PlainValidator(_written(parse_share, SHARE_FORM, number=False)),
    _schema(["string"], SHARE_FORM),
]
PathsField = Annotated[
    Layout | tuple[str, ...],
    PlainValidator(asked_paths),
    WithJsonSchema({"type": ["string", "array"], "items": {"type": "string"}, "description": PATHS_FORM}),
]


def _above_zero(size_bytes: int) -> int:
    if size_bytes == 0:
        raise ValueError("a size above 0 is expected")
    return size_bytes


PositiveBytes = Annotated[Bytes, AfterValidator(_above_zero)]
NAME = r"^[a-z][a-z0-9-]{0,14}$"
Name = Annotated[str, Field(pattern=NAME)]
Pattern = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*(?:\{n\})?[a-z0-9-]*$", max_length=16)]


class LinkKeys(FrozenSpec):
    """Keys of every table of a link."""

    rate: Rate | None = None
    """Line rate."""
    mtu: Mtu | None = None
    """Largest IP packet in bytes."""
    delay: Delay | None = None
    """Propagation delay, one way."""
    jitter: Delay | None = None
    """Up to this much is added to a frame's delay, at random."""
    loss: Loss | None = None
    """Share of frames that are lost at random."""


class LinkTable(LinkKeys):
    """[link]: what every link has that does not say otherwise."""


class NicTable(FrozenSpec):
    """nic: what is particular about a network adapter."""

    rx_ring: PositiveInt | None = None
    """Frames that it can hold until the host takes them."""
    tx_ring: PositiveInt | None = None
    """Frames that it can hold until the line takes them."""
    moderation: Delay | None = None
    """Interrupts wait this long for more frames."""
    rsc: bool | None = None
    """Merge received frames of a connection."""


class InterfaceTable(FrozenSpec):
    """One of several IP interfaces that share a port."""

    name: Name
    vlan: Vlan = 0
    """0: untagged."""
    priority: Priority = 0
    """Of the frames that it sends (802.1p)."""


class PortTable(LinkKeys):
    """[[host.port]]: a port, and its link to a switch."""

    name: Name
    switch: Name
    """The switch at the other end."""
    vlan: Vlan = 0
    """0: untagged. Only without `interface`."""
    priority: Priority = 0
    """Of the frames that the port sends. Only without `interface`."""
    nic: NicTable = NicTable()
    links: int = Field(default=1, ge=1, le=TEAM_LINKS_MAX)
    """A team of this many links with one address: each connection takes the link that its flow hash says."""
    interface: tuple[InterfaceTable, ...] = ()
    """Several IP interfaces on this port; one of the port's own name if not given."""


class ArrayPortTable(PortTable):
    """[[array.port]]: a port of an array."""

    portal_group: int | None = Field(default=None, ge=1, le=65535)
    """Tag of its iSCSI target portal group. If not given, ports of one controller and one ALUA state share one."""
    controller: str = Field(default="A", pattern=r"^[A-Za-z0-9]{1,8}$")
    """The controller that it belongs to."""
    alua: AluaState = "active_optimized"
    """What its paths may be used for (asymmetric logical unit access)."""


class HostTable(FrozenSpec):
    """[[host]]: one host, or `count` equal ones."""

    name: Pattern
    """May hold {n}, the number of the host; with a count and no {n} the number is appended."""
    count: int = Field(default=1, ge=1, le=64)
    """Number of hosts, numbered from 1."""
    port: tuple[PortTable, ...] = Field(min_length=1)


class StorageTable(FrozenSpec):
    """storage: the disks behind an array's volumes, and the RAID sets that they form."""

    disks: PositiveInt
    """All of them, hot spares included."""
    disk_size: PositiveBytes = 4 << 30
    """Capacity of each; it takes memory only where it is written."""
    model: str | None = None
    """The drive that each behaves like; as fast as memory if not given."""
    disk_sector: DiskSector = 512
    """Logical sector of the disks."""
    raid_level: Level = "raid10"
    sets: PositiveInt = 1
    """RAID sets that the disks are divided into."""
    spares: int = Field(default=0, ge=0)
    """Hot spares of each set."""
    groups: PositiveInt = 2
    """Parts of a RAID 50 or 60 set, each with parity of its own."""
    chunk: PositiveBytes = 64 << 10
    """Consecutive bytes on one disk."""
    sector: DiskSector = 512
    """Logical sector that hosts see."""
    initialise: Literal["assume_clean", "background"] = "assume_clean"
    """background: parity is computed while the volumes serve already."""
    backing: Backing = "raid"
    """raid: each volume is a whole RAID set. pool: all are parts of a thin pool."""


class VolumeTable(FrozenSpec):
    """[[array.volume]]: one volume, or `count` of them; in memory, unless the array has disks."""

    name: Pattern
    """May hold {n}, the number of the volume; with a count and no {n} the number is appended."""
    count: int = Field(default=1, ge=1, le=256)
    """Number of volumes, numbered from 1."""
    size: PositiveBytes = 64 << 20
    """Capacity of each."""
    paths: PathsField | None = None
    """How hosts reach it; over one path if not given."""


class ArrayTable(FrozenSpec):
    """[[array]]: a storage array with one iSCSI target, or a NAS with one SMB share."""

    name: Name
    kind: ArrayKind = "iscsi"
    """iscsi: volumes are LUNs. nas: volumes are files on a share of Samba (Debian package samba)."""
    target: str | None = Field(default=None, min_length=1, max_length=223)
    """iSCSI name, iqn.2026-11.lab.linerate:NAME if not given; of a NAS the name of its share, `share` if not given."""
    folder: str | None = Field(default=None, pattern=r'^/[^\x00-\x1f"%;#]*$')
    """Of a NAS: an absolute path; its files are there and stay there. They are in memory if not given."""
    storage: StorageTable | None = None
    """Disks behind its volumes, which lie in memory if not given."""
    port: tuple[ArrayPortTable, ...] = Field(min_length=1)
    volume: tuple[VolumeTable, ...] = Field(min_length=1)


class ScheduleTable(FrozenSpec):
    """schedule: how a port chooses among priorities."""

    kind: Literal["strict", "ets"] = "strict"
    """strict: the highest priority first. ets: by shares (802.1Qaz)."""
    shares: Mapping[str, Annotated[float, Field(gt=0, le=100)]] = {}
    """Percent of the line by priority: { 3 = 50, 0 = 50 }."""


class SwitchTable(FrozenSpec):
    """[[switch]]: a switch."""

    name: Name
    buffer: PositiveBytes = 1 << 20
    """For each port and priority, at its egress; what does not fit is dropped."""
    flow_control: Literal["none", "pause", "pfc"] = "none"
    """pause: 802.3x, the whole link. pfc: 802.1Qbb, only the lossless priorities."""
    lossless: tuple[Priority, ...] = ()
    """Priorities that pfc pauses instead of dropping."""
    xoff: PositiveBytes | None = None
    """A link is paused when this much that came in by it waits in the switch; a quarter of the buffer if not given."""
    xon: Bytes | None = None
    """And resumed at this much; half of xoff if not given."""
    ecn_threshold: PositiveBytes | None = None
    """Frames that find a longer queue are marked."""
    schedule: ScheduleTable = ScheduleTable()


class TrunkTable(LinkKeys):
    """[[trunk]]: a link between two switches, or several that act as one."""

    name: Name
    a: Name
    b: Name
    links: int = Field(default=1, ge=1, le=16)
    """Links that connections are spread over by their flow hash."""


class LanTable(FrozenSpec):
    """[[lan]]: TCP traffic that is no storage traffic."""

    name: Name
    source: str
    """The sending host, or `host.interface` where it has several in the network."""
    sink: str
    """The receiving host, or `host.interface`."""
    connections: int = Field(default=4, ge=1, le=256)
    rate: Rate | None = None
    """Of all connections together; as much as goes if not given."""


class TopologyFile(FrozenSpec):
    """A topology file."""

    name: str | None = Field(default=None, pattern=r"^[a-z0-9][a-z0-9-]{0,31}$")
    """The file's name if not given."""
    description: str = ""
    fabric: Literal["auto", "kernel", "user"] = "auto"
    """What carries the frames of a virtual SAN; auto: the kernel where it can do all that is asked for."""
    link: LinkTable = LinkTable()
    nic: NicTable = NicTable()
    switch: tuple[SwitchTable, ...] = Field(min_length=1)
    host: tuple[HostTable, ...] = Field(min_length=1)
    array: tuple[ArrayTable, ...] = ()
    trunk: tuple[TrunkTable, ...] = ()
    lan: tuple[LanTable, ...] = ()

    def pick(self, table: FrozenSpec, key: str) -> Any:
        """A key of a port, a trunk or a nic table: its own value, else the file's default."""
        value = getattr(table, key)
        return (
            getattr(self.nic if isinstance(table, NicTable) else self.link, key) if value is None else value
        )
