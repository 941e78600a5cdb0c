"""ArrayConfig: what an array serves, as the data plane takes it.

The data plane reads the same keys and refuses unknown ones. All models are frozen. Units end the names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import (
    Discriminator,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    SecretStr,
    SerializerFunctionWrapHandler,
    Tag,
    model_serializer,
    model_validator,
)

from linerate.array.base import (
    NAME_FORM,
    NAME_PATTERN,
    REVEAL,
    Frozen,
    InitiatorPattern,
    Name,
    Place,
    PortalAddress,
    Secret,
    Sector,
    TargetName,
    known,
    misplaced,
    unique,
)
from linerate.array.credentials import chap_fault
from linerate.array.partners import Control, Partner, Replication
from linerate.array.storage import Storage

AluaState = Literal["active_optimized", "active_non_optimized", "standby", "unavailable", "transitioning"]
"""Asymmetric access state of a port group (SPC-4 section 5.15.2)."""

GroupTag = Annotated[int, Field(ge=1, le=65535)]
"""Tag of an iSCSI portal group: also the relative target port and the target port group that initiators see."""


class VolumeConfig(Frozen):
    """A logical unit and where its bytes lie."""

    lun: Annotated[int, Field(ge=0, le=16383)]
    """Logical unit number."""
    name: str = Field(min_length=1)
    """Name in messages; initiators see it as the unit's serial number."""
    kind: Literal["memory", "file", "pool", "raid"] = "memory"
    """memory: gone when the array stops. file: kept in `path`. pool: thin, in `pool`. raid: all of `raid_set`."""
    path: str | None = None
    """File or block device of a file volume; made if missing and `size_bytes` is given."""
    pool: Name | None = None
    """Pool of a pool volume; it is made there when the array first starts, and is then the pool's."""
    raid_set: Name | None = None
    """RAID set of a raid volume: thick, and as large as the set."""
    size_bytes: PositiveInt | None = None
    """Capacity; may be left out for a file that exists and for a volume that the pool holds already."""
    sector_bytes: Sector = 512
    """Logical block size."""
    physical_sector_bytes: Sector = 512
    """Physical block size, the logical one if not given: 4096 over a logical 512 is what disks call 512e."""
    read_only: bool = False
    write_cache: bool = False
    """Report a volatile write cache: writes without FUA are durable only after SYNCHRONIZE CACHE."""
    power_protected: bool = False
    """The array's power does not fail; without this a volume on a pool or a RAID set has no write cache."""
    alua: dict[GroupTag, AluaState] = Field(default_factory=dict)
    """Access through portal groups, by tag, where it differs from what the group says."""

    @model_validator(mode="before")
    @classmethod
    def _blocks_are_sectors(cls, given: Any) -> Any:
        if isinstance(given, dict) and "sector_bytes" in given:
            return {"physical_sector_bytes": given["sector_bytes"], **given}
        return given

    @model_validator(mode="after")
    def _fits_its_kind(self) -> VolumeConfig:
        for key, kind in _KIND_OF.items():
            if self.kind != kind and getattr(self, key) is not None:
                raise misplaced(
                    (key,), f'a volume of kind "{self.kind}" has no {key}; did you mean kind = "{kind}"?'
                )
        needed = next((key for key, kind in _KIND_OF.items() if kind == self.kind), None)
        if needed is not None and not getattr(self, needed):
            raise misplaced(("kind",), f'a volume of kind "{self.kind}" needs a {needed}')
        if needed == "pool" and not re.fullmatch(NAME_PATTERN, self.name):
            raise misplaced(("name",), f"a volume of a pool has a name of {NAME_FORM}")
        if self.kind == "memory" and self.size_bytes is None:
            raise ValueError('a volume of kind "memory" needs a size, for example size = "1g"')
        if self.kind == "raid" and self.size_bytes is not None:
            raise misplaced(("size_bytes",), "a raid volume is as large as its RAID set; leave the size out")
        if self.size_bytes is not None and self.size_bytes % self.sector_bytes:
            raise ValueError(f"the size is no multiple of the sector size {self.sector_bytes}")
        if self.physical_sector_bytes < self.sector_bytes:
            raise ValueError("physical_sector_bytes is smaller than sector_bytes")
        return self

    @model_validator(mode="after")
    def _cache_is_safe(self) -> VolumeConfig:
        if self.kind in ("pool", "raid") and self.write_cache and not self.power_protected:
            raise misplaced(
                ("write_cache",),
                "a power cut would lose what the cache holds; say power_protected = true if the power is safe",
            )
        return self

    @model_serializer(mode="wrap")
    def _without_other_kinds(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Keys of other kinds are left out."""
        written: dict[str, Any] = handler(self)
        others = [key for key, kind in _KIND_OF.items() if kind != self.kind and key != "path"]
        if self.kind not in ("pool", "raid"):
            others.append("power_protected")
        return {key: value for key, value in written.items() if key not in others}


_KIND_OF = {"path": "file", "pool": "pool", "raid_set": "raid"}
"""Which kind of volume a key belongs to."""


class Chap(Frozen):
    """Who may log in, and how the target proves itself in return (RFC 7143 section 12.1.3)."""

    algorithms: tuple[Literal["sha3-256", "sha256", "sha1", "md5"], ...] = Field(
        default=("sha3-256", "sha256", "sha1", "md5"), min_length=1
    )
    """Hashes that are admitted: the first one of the initiator's list that is among them is used."""
    user: str = Field(min_length=1)
    secret: Secret
    """12 to 255 bytes (RFC 7143 section 9.2.1), random ones."""
    mutual_user: str | None = None
    """The name under which the target proves itself to initiators that ask."""
    mutual_secret: Secret | None = None
    """The target's own secret; must differ from `secret`."""

    @model_validator(mode="after")
    def _mutual_is_whole(self) -> Chap:
        if (self.mutual_user is None) != (self.mutual_secret is None):
            raise ValueError("mutual CHAP needs both mutual_user and a mutual secret")
        for key in ("secret", "mutual_secret"):
            secret: SecretStr | None = getattr(self, key)
            if secret is not None and (fault := chap_fault(secret.get_secret_value())):
                raise misplaced((key,), fault)
        if self.mutual_secret is not None and self.mutual_secret == self.secret:
            raise misplaced(
                ("mutual_secret",), "the mutual secret must differ from the secret (RFC 7143, 9.2.1)"
            )
        return self


class TargetConfig(Frozen):
    """An iSCSI target: a name, who may log in, and its volumes."""

    name: TargetName
    """iSCSI name (iqn., eui. or naa.)."""
    alias: str | None = None
    initiators: Annotated[tuple[InitiatorPattern, ...], Field(min_length=1)] | None = None
    """iSCSI names that may log in and see it in discovery, `*` may end one; none: everyone."""
    chap: Chap | None = None
    redirect: str | None = None
    """Send every login to this host:port instead (RFC 7143 section 11.13.5, status 0x0101)."""
    volumes: tuple[VolumeConfig, ...] = ()

    @model_validator(mode="after")
    def _volumes_differ(self) -> TargetConfig:
        luns, names = set[int](), set[str]()
        for number, volume in enumerate(self.volumes):
            if volume.lun in luns:
                raise misplaced(("volumes", number, "lun"), f"LUN used twice: {volume.lun}")
            if volume.name in names:
                raise misplaced(
                    ("volumes", number, "name"),
                    f'the target has a volume "{volume.name}" already: multipathing would take both for one',
                )
            luns.add(volume.lun)
            names.add(volume.name)
        return self


class ArrayLimits(Frozen):
    """What peers may cost. Sizes in bytes, times in seconds, 0 = no limit where the text says so."""

    sessions: PositiveInt = 1024
    """Sessions over all targets."""
    connections_per_peer: NonNegativeInt = 512
    """Connections of sessions from one address; 0: no limit."""
    half_open_connections: PositiveInt = 1024
    """Connections that have not logged in; of more, the oldest of the address that has the most is dropped."""
    half_open_per_peer: PositiveInt = 512
    """Those from one address; of more, its oldest is dropped."""
    login_timeout_s: PositiveFloat = 15.0
    """From accept to full feature phase."""
    idle_timeout_s: NonNegativeFloat = 0.0
    """A session that is silent for this long is closed; 0: never."""
    nop_interval_s: NonNegativeFloat = 0.0
    """Ping a quiet initiator this often; 0: never."""
    nop_timeout_s: PositiveFloat = 30.0
    """An unanswered ping closes the session after this time."""
    stall_timeout_s: PositiveFloat = 60.0
    """A peer loses its session that owes all data of a write, or room for answers, for this long."""
    pressed_stall_timeout_s: PositiveFloat = 2.0
    """The same while other sessions wait for memory that it holds."""
    memory_bytes: PositiveInt = 256 << 20
    """I/O buffers and answers of all sessions together, at least 16 MiB per worker; one session may hold a fifth."""
    commands_per_session: PositiveInt = 128
    """Command window (MaxCmdSN - ExpCmdSN + 1), over all connections of a session."""
    connections_per_session: Annotated[int, Field(ge=1, le=64)] = 8
    """Connections that a session may have (MC/S, MaxConnections)."""
    max_recv_data_segment_bytes: PositiveInt = 262144
    max_burst_bytes: PositiveInt = 1048576
    first_burst_bytes: PositiveInt = 262144
    text_bytes: PositiveInt = 65536
    """Longest text request, over all its PDUs. Of a login, at most 16 KiB are taken."""


class Portal(Frozen):
    """A portal in a portal group: an address, or all addresses of an interface."""

    address: PortalAddress | None = None
    """Address with port; port 0 lets the kernel choose. IPv6 as [::1]:3260. 0.0.0.0 and [::] are all addresses."""
    interface: str | None = Field(default=None, min_length=1, max_length=15)
    """Instead of an address: every address of this interface, also those that come while the array serves."""
    port: Annotated[int, Field(ge=0, le=65535)] = 3260
    """Port on the interface's addresses."""
    group: GroupTag = 1
    """Its portal group; sessions and access states are per group."""

    @model_validator(mode="after")
    def _has_one_place(self) -> Portal:
        if (self.address is None) == (self.interface is None):
            raise ValueError("a portal needs either an address or an interface")
        if self.address is not None and "port" in self.model_fields_set:
            raise ValueError('the port is part of the address: address = "10.1.0.10:3260"')
        return self

    @property
    def place(self) -> str:
        """Where it listens, in one word."""
        return self.address or f"{self.interface}:{self.port}"


TEXT, TABLE = "<text>", "<table>"
"""Parts of the path of a mistake that are no keys: the form in which a portal was given."""


def _form(portal: object) -> str:
    return TEXT if isinstance(portal, str) else TABLE


AnyPortal = Annotated[
    Annotated[PortalAddress, Tag(TEXT)] | Annotated[Portal, Tag(TABLE)],
    Discriminator(_form),
]
"""An address with a port as text, or a table."""


class PortalGroup(Frozen):
    """What is said about a portal group, as a whole."""

    tag: GroupTag
    alua: AluaState = "active_optimized"
    """Access through it, to all volumes that say nothing else."""


class AluaChange(Frozen):
    """A new access state of a portal group, for all volumes or for some."""

    group: GroupTag
    state: AluaState
    target: str | None = None
    """For the volumes of this target only: its iSCSI name."""
    volume: str | None = None
    """For the volumes of this name only."""


class ArrayChange(Frozen):
    """What to change about an array that serves; its JSON is what `_core.Array.change` takes."""

    alua: tuple[AluaChange, ...]


class ArrayConfig(Frozen):
    """An array: portals, limits and targets."""

    name: str = "array"
    portals: tuple[AnyPortal, ...] = Field(default=("127.0.0.1:3260",), min_length=1)
    """Where to listen: addresses with ports as text, or tables (`Portal`)."""
    portal_groups: tuple[PortalGroup, ...] = ()
    """What is different from the default about portal groups."""
    workers: NonNegativeInt = 1
    """Threads that serve connections; 0: one per allowed CPU."""
    cpus: tuple[NonNegativeInt, ...] | None = None
    """CPUs to pin the workers to."""
    driver: Literal["auto", "io_uring", "epoll"] = "auto"
    wait: Literal["auto", "block", "spin"] = "auto"
    """How threads wait. auto: poll for a short time that they learn, then sleep. block: sleep. spin: never sleep, for
    the lowest latency at the price of whole CPUs."""
    touch_memory: bool = True
    """Take the memory of volumes and disks in huge pages in the background, before their first use."""
    limits: ArrayLimits = ArrayLimits()
    storage: Storage = Storage()
    """Disks, RAID sets and pools on which volumes of the kinds pool and raid lie."""
    targets: tuple[TargetConfig, ...] = Field(min_length=1)
    control: Control = Control()
    """How `linerate array` manages it while it serves."""
    partners: tuple[Partner, ...] = ()
    """Arrays that this one replicates to or receives from."""
    replications: tuple[Replication, ...] = ()
    """What is replicated to whom."""

    @model_validator(mode="after")
    def _names_are_unique(self) -> ArrayConfig:
        targets, in_pools = set[str](), set[str]()
        for number, target in enumerate(self.targets):
            if (name := target.name.lower()) in targets:
                raise misplaced(
                    ("targets", number, "name"), f"target named twice: {name} (case does not count)"
                )
            targets.add(name)
        for at, volume in self._volumes():
            if volume.kind == "pool" and volume.name in in_pools:
                raise misplaced((*at, "name"), f'another target has a volume "{volume.name}" of a pool')
            if volume.kind == "pool":
                in_pools.add(volume.name)
        return self

    @model_validator(mode="after")
    def _portals_differ(self) -> ArrayConfig:
        places = [given.place if isinstance(given, Portal) else given for given in self.portals]
        for number, place in enumerate(places):
            if place in places[:number] and not place.endswith(":0"):
                raise misplaced(("portals", number), f"the portal {place} is listed twice")
        return self

    def _volumes(self) -> Iterator[tuple[Place, VolumeConfig]]:
        """Each volume, and where it is in the file."""
        for number, target in enumerate(self.targets):
            for place, volume in enumerate(target.volumes):
                yield ("targets", number, "volumes", place), volume

    @model_validator(mode="after")
    def _groups_are_known(self) -> ArrayConfig:
        described = [group.tag for group in self.portal_groups]
        for number, tag in enumerate(described):
            if tag in described[:number]:
                raise misplaced(("portal_groups", number, "tag"), f"portal group described twice: {tag}")
        known = {portal.group if isinstance(portal, Portal) else 1 for portal in self.portals} | set(
            described
        )
        for at, volume in self._volumes():
            if unknown := sorted(set(volume.alua) - known):
                raise misplaced(
                    (*at, "alua"),
                    f"volume {volume.name}: no portal is in portal group {', '.join(map(str, unknown))}",
                )
        return self

    @model_validator(mode="after")
    def _volumes_have_their_storage(self) -> ArrayConfig:
        pools = {pool.name for pool in self.storage.pools}
        users = {name: f"pool {pool.name}" for pool in self.storage.pools for name in pool.raid_sets}
        for at, volume in self._volumes():
            if volume.pool is not None and volume.pool not in pools:
                raise misplaced((*at, "pool"), f'there is no pool "{volume.pool}"; {known("pools", pools)}')
            if volume.raid_set is not None:
                self._takes_whole(volume, (*at, "raid_set"), users)
        return self

    def _takes_whole(self, volume: VolumeConfig, at: Place, users: dict[str, str]) -> None:
        assert volume.raid_set is not None
        sets = {one.name for one in self.storage.raid_sets}
        if volume.raid_set not in sets:
            raise misplaced(at, f'there is no RAID set "{volume.raid_set}"; {known("RAID sets", sets)}')
        if volume.raid_set in users:
            raise misplaced(at, f'the RAID set "{volume.raid_set}" belongs to {users[volume.raid_set]}')
        users[volume.raid_set] = f"volume {volume.name}"

    @model_validator(mode="after")
    def _replications_have_partners(self) -> ArrayConfig:
        unique("partners", [partner.name for partner in self.partners])
        unique("replications", [one.name for one in self.replications])
        partners = {partner.name: partner for partner in self.partners}
        for number, one in enumerate(self.replications):
            at = ("replications", number, "partner")
            if one.partner not in partners:
                raise misplaced(
                    at, f'there is no partner "{one.partner}"; {known("partners", set(partners))}'
                )
            if partners[one.partner].control is None:
                raise misplaced(at, f'the table of partner "{one.partner}" has no control URL and no portal')
        if self.partners and self.control.identity is None:
            raise misplaced(
                ("control", "identity"), "an array with partners needs a file for its own identity"
            )
        return self

    def seam_json(self) -> str:
        """The JSON for the data plane, secrets included: never for a file or a log."""
        plain = self.model_copy(update={"storage": self.storage.resolved()})
        without = _LAB_PLANE_KEYS | (set() if self.storage.disks else {"storage"})
        return plain.model_dump_json(context={REVEAL: True}, exclude=without)


_LAB_PLANE_KEYS = {"control", "partners", "replications"}
"""Tables that the data plane does not know."""
