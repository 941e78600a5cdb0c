"""What an array says about itself, as its status gives it; newer arrays may say more, which is ignored.

Counters are cumulative since the array started: differences of two reports are an interval's.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict

from linerate.model import Model


class _Report(Model):
    model_config = ConfigDict(extra="ignore")


class FileSystemReport(_Report):
    """A file system from which sparse disks take their space."""

    folder: str
    """A folder on it that has disks."""
    disks: tuple[str, ...]
    """Names of the sparse disks on it."""
    free_bytes: int
    unallocated_bytes: int
    """What its sparse disks may still take."""


class DiskReport(_Report):
    """A disk."""

    name: str
    model: str | None = None
    """The drive whose times it takes; null: as fast as it is."""
    path: str | None = None
    """What it is kept in; null: memory."""
    state: Literal["online", "failed", "missing", "spare", "rebuilding", "out"]
    """out: its RAID set does without it since before this start."""
    raid_set: str | None = None
    size_bytes: int
    """0 of a disk that is not there."""
    sparse: bool = False
    """It takes space as it is written."""
    lacks_space: bool = False
    """It found no space when it last looked for some."""
    reads: int = 0
    writes: int = 0
    read_bytes: int = 0
    write_bytes: int = 0
    flushes: int = 0
    discards: int = 0
    errors: int = 0
    response_ns: int = 0
    """Sum over all reads and writes: per second, the mean number outstanding."""
    busy_ns: int = 0
    """Time with at least one operation at work."""


class TaskReport(_Report):
    """What a RAID set does in the background."""

    kind: Literal["initialise", "rebuild", "scrub"]
    done: float
    """Share, 0 to 1."""
    lacks_space: bool = False
    """It waits until a disk has space."""


class RaidSetReport(_Report):
    """A RAID set."""

    name: str
    id: str = ""
    """Tells sets of one name apart."""
    generations: tuple[int, ...] = ()
    """The newest superblock of each group; later ones have greater numbers."""
    level: str
    state: Literal["optimal", "degraded", "failed"]
    size_bytes: int
    """What it can hold."""
    raw_bytes: int
    """The bytes of its members, without spares."""
    task: TaskReport | None = None
    full_stripe_writes: int = 0
    read_modify_writes: int = 0
    reconstruct_writes: int = 0
    degraded_reads: int = 0
    mismatches_found: int = 0
    mismatches_mended: int = 0


class PoolReport(_Report):
    """A pool."""

    name: str
    size_bytes: int
    used_bytes: int
    provisioned_bytes: int
    warning: bool = False
    """More of it is used than its `warn_at`."""


class SnapshotReport(_Report):
    """A snapshot of a volume."""

    name: str
    at_s: float
    """When it was taken: seconds since 1970."""


class VolumeReport(_Report):
    """A pool's volume."""

    name: str
    pool: str
    size_bytes: int
    used_bytes: int
    target: str | None = None
    """iSCSI name of the target that shows it; null: none does."""
    lun: int | None = None
    snapshots: tuple[SnapshotReport, ...] = ()
    """Oldest first."""
    replica: dict[str, Any] | None = None
    """The state of its replication, if it has one."""


class StorageReport(_Report):
    """Disks, RAID sets, pools and the pools' volumes at one moment."""

    file_systems: tuple[FileSystemReport, ...] = ()
    """Those that sparse disks lie on."""
    disks: tuple[DiskReport, ...] = ()
    raid_sets: tuple[RaidSetReport, ...] = ()
    pools: tuple[PoolReport, ...] = ()
    volumes: tuple[VolumeReport, ...] = ()


class StaticVolume(_Report):
    """A volume as the array file names it."""

    lun: int
    name: str
    kind: str
    size_bytes: int | None = None
    path: str | None = None
    pool: str | None = None
    raid_set: str | None = None

    @property
    def where(self) -> str:
        """What holds its bytes, if that is no pool."""
        return f"RAID set {self.raid_set}" if self.raid_set else self.path or "memory"

    def size_in(self, storage: StorageReport) -> int | None:
        """Bytes: those of its RAID set, if the array file gives none. None: they are not known."""
        sizes = {one.name: one.size_bytes for one in storage.raid_sets}
        return self.size_bytes or sizes.get(self.raid_set or "")


class TargetReport(_Report):
    """A target as the array file names it."""

    name: str
    chap: bool
    """Initiators must prove who they are."""
    volumes: tuple[StaticVolume, ...] = ()


class SessionReport(_Report):
    """A session of an initiator."""

    initiator: str
    target: str | None = None


class ReplicationReport(_Report):
    """A replication, as this end of it sees it."""

    name: str
    partner: str
    role: Literal["primary", "replica", "promoting", "none"]
    """primary: hosts write here. replica: this array holds the copy. promoting: it is on the way from one to
    the other. none: the first copy has not begun."""
    state: Literal["idle", "copying", "waiting", "failed"]
    """waiting: the partner does not answer, and is asked again. failed: `error` says why."""
    done: float | None = None
    """Share of the copy that is under way."""
    rate_bytes_per_s: float | None = None
    lag_s: float | None = None
    """Age of the newest whole copy; null: there is none yet."""
    error: str | None = None


class ArrayReport(_Report):
    """An array at one moment."""

    name: str
    identity: str | None = None
    """Fingerprint of the array's certificate, if it has partners."""
    portals: tuple[str, ...]
    targets: tuple[TargetReport, ...]
    storage: StorageReport = StorageReport()
    replications: tuple[ReplicationReport, ...] = ()
    by_session: tuple[SessionReport, ...] = ()
    untouched_bytes: int = 0
    """Memory of volumes and disks that it still touches ahead of their first use."""
