"""Linerate's own workload file as models: what may stand in it, with defaults.

    name = "oltp"
    elapsed = "60s"

    [[volume]]
    name = "v{n}"
    count = 8
    target = "iscsi://10.0.0.5/iqn.2026-11.lab:disks/{n-1}"

    [[stream]]
    name = "reads"
    size = "8k"
    share = 67

Sizes take k, m, g and t (1024-based), times s, m and h. A `[[run]]` picks streams and changes times, rates
and sweeps for itself; without one there is a single run of all streams.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import (
    Field,
    ModelWrapValidatorHandler,
    PositiveInt,
    PrivateAttr,
    SecretStr,
    WithJsonSchema,
    model_validator,
)

from linerate.workload.multipath import MultipathTable, PathsField
from linerate.workload.spec import (
    CURSORS_MAX,
    RATE_IOPS_MAX,
    ByteSpan,
    FrozenSpec,
    HitArea,
    Outstanding,
    Percent,
    SessionSpec,
    SizeMix,
    SmbSpec,
)
from linerate.workload.toml_fields import (
    SIZE_LIST_SCHEMA,
    Bytes,
    IoBytes,
    Names,
    PositiveSeconds,
    RatesField,
    RegionField,
    Seconds,
    SizesField,
)


class VolumeTable(FrozenSpec):
    """[[volume]]: one volume, or `count` of them."""

    name: str = Field(min_length=1)
    """May hold {n}, the number of the volume; with a count and no {n} the number is appended."""
    count: int = Field(default=1, ge=1, le=10_240)
    """Number of volumes, numbered from 1."""
    target: str | None = None
    """iscsi://host/target/lun, smb://host/share/file, a path, or null:SIZE; may hold {n} or {n-1}. Without one,
    --map must say it."""
    user: str | None = None
    """CHAP user; SMB: the user, as `user` or `DOMAIN\\user`."""
    secret: SecretStr | None = None
    """CHAP secret; SMB: the password."""
    mutual_user: str | None = None
    """CHAP user under which the target proves itself."""
    mutual_secret: SecretStr | None = None
    """CHAP secret with which the target proves itself."""
    outstanding: Outstanding | None = None
    """I/Os in flight on each volume."""
    size: Bytes | None = None
    """Length of the used part; all of the volume if not given."""
    first_byte: Bytes = 0
    """Where the used part begins."""
    direct: bool = True
    """Go past the host's page cache (files and block devices)."""
    create: bool = False
    """Make the file, or lengthen it to `size`."""
    durable_writes: bool = False
    """Each write is on stable storage before it completes."""
    session: Literal["own", "shared"] = "own"
    """own: one iSCSI session per volume; shared: one per target and worker."""
    iscsi: SessionSpec = SessionSpec()
    """Options of this volume's iSCSI session, over those of the file."""
    smb: SmbSpec = SmbSpec()
    """Options of this volume's SMB session, over those of the file."""
    paths: PathsField = ()
    """Its paths, as texts or tables; may hold {n} or {n-1}. Without any there is one, the target's own."""
    multipath: MultipathTable = MultipathTable()
    """How I/O is spread over the paths, over what the file says for all."""


class StrideTable(FrozenSpec):
    """stride: how far to skip ahead instead of a random jump."""

    min: Bytes
    max: Bytes

    def span(self) -> ByteSpan:
        """As the run spec has it."""
        return ByteSpan(min_bytes=self.min, max_bytes=self.max)


class HitAreaTable(FrozenSpec):
    """hit_area: a small part of the volume that is meant to sit in the array's cache."""

    size: Bytes = 1 << 20
    read: Percent = 0.0
    """Percent of the reads that go there."""
    write: Percent = 0.0
    """Percent of the writes that go there."""

    def area(self) -> HitArea:
        """As the run spec has it."""
        return HitArea(bytes=self.size, read_percent=self.read, write_percent=self.write)


class StreamTable(FrozenSpec):
    """[[stream]]: I/Os of one character, spread over some volumes."""

    name: str = Field(min_length=1)
    volumes: Names = ("*",)
    """Names, a trailing * as wildcard; all volumes if not given."""
    size: SizesField = SizeMix(parts=((4096, 100.0),))
    """I/O size, a mix of sizes, or a range."""
    read: Percent = 100.0
    """Percent of I/Os that read."""
    random: Percent = 100.0
    """Percent of I/Os that start at a new random place; 0 is sequential."""
    share: float | None = Field(default=None, gt=0, le=100)
    """Percent of the run's I/Os; streams without one share the rest evenly."""
    rate: float | None = Field(default=None, gt=0, le=RATE_IOPS_MAX)
    """Fixed rate of this stream in I/Os per second."""
    priority: PositiveInt | None = None
    """Rank among streams, 1 first."""
    stride: StrideTable | None = None
    range: RegionField | None = None
    """Part of each volume that is used."""
    hotband: RegionField | None = None
    """Part of each volume in which the access probability decays."""
    align: IoBytes | None = None
    """Grid of random offsets; the I/O's size if not given."""
    hit_area: HitAreaTable | None = None
    skip_first_block: bool = False
    """Never touch the block at offset 0."""
    stop_at_end: bool = False
    """Sequential, and finished at the end of the volume."""
    cursors: int = Field(default=1, ge=1, le=CURSORS_MAX)
    """Sequential cursors per volume."""
    compression: float | None = Field(default=None, ge=1, le=25)
    """Write data compresses about n:1; incompressible if not given."""


class SweepTable(FrozenSpec):
    """sweep: every combination of these values, in the order in which they are given, rates last."""

    outstanding: tuple[Outstanding, ...] | None = Field(default=None, min_length=1)
    size: Annotated[tuple[IoBytes, ...] | None, WithJsonSchema(SIZE_LIST_SCHEMA)] = Field(
        default=None, min_length=1
    )
    read: tuple[Percent, ...] | None = Field(default=None, min_length=1)
    random: tuple[Percent, ...] | None = Field(default=None, min_length=1)
    _order: tuple[str, ...] = PrivateAttr(default=())

    @model_validator(mode="wrap")
    @classmethod
    def _keep_order(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        table = handler(data)
        table._order = tuple(key for key in data if key in cls.model_fields) if isinstance(data, dict) else ()
        return table

    @property
    def order(self) -> tuple[str, ...]:
        """The axes as the file has them, outermost first."""
        return self._order


class LimitTable(FrozenSpec):
    """limit: ends a run early, counted after the warm-up."""

    total: Bytes | None = None
    read: Bytes | None = None
    written: Bytes | None = None


class RunSettings(FrozenSpec):
    """What a file says for all runs and a [[run]] for itself."""

    elapsed: PositiveSeconds | None = None
    """Measured time, after the warm-up; default 30 s."""
    interval: PositiveSeconds | None = None
    """Length of a reporting interval; default 1 s."""
    warm_up: Seconds | None = None
    """Time before the measured part; default 5 s."""
    pause: Seconds | None = None
    """Wait before each run; default none."""
    outstanding: Outstanding | None = None
    """I/Os in flight per volume, for volumes that do not say it; default 8. In a [[run]] it holds for all."""
    rate: RatesField | None = None
    """I/Os per second, "max" (default), "curve", "50%" of the last maximum, or a list of these."""
    curve: tuple[Annotated[float, Field(gt=0, le=1000)], ...] | None = Field(default=None, min_length=1)
    """Percentages of the maximum for the rate "curve"; default 10, 50, 70, 80, 90, 100."""
    stop_curve_ms: float | None = Field(default=None, gt=0)
    """End after a curve point whose mean response time is longer."""
    arrival: Literal["poisson", "deterministic", "uniform"] | None = None
    """Times between I/O starts at a given rate; default poisson."""
    shares: Literal["total", "controlled", "uncontrolled"] | None = None
    """How shares are kept: over all volumes (total, the default) or per volume (controlled, as vdbench
    does)."""
    verify: bool | None = None
    """Each block carries its address and a checksum; a wrong block stops the run."""
    limit: LimitTable | None = None
    sweep: SweepTable | None = None


class RunTable(RunSettings):
    """[[run]]: streams that run together."""

    name: str = Field(min_length=1)
    streams: Names = ("*",)
    """Names, a trailing * as wildcard; all streams if not given."""


class WorkloadFile(RunSettings):
    """A Linerate workload file."""

    name: str | None = None
    """Name of the workload; the file's name if not given."""
    seed: int = Field(default=1, ge=0)
    """Same seed, same sequence of I/Os."""
    workers: int = Field(default=0, ge=0)
    """Load threads; 0: chosen at run time."""
    cpus: tuple[Annotated[int, Field(ge=0)], ...] | None = Field(default=None, min_length=1)
    """CPUs that workers are pinned to."""
    driver: Literal["auto", "io_uring", "epoll"] = "auto"
    wait: Literal["auto", "block", "spin"] = "auto"
    """How load threads wait. auto: poll for a short time that they learn, then sleep. spin: never sleep."""
    iscsi: SessionSpec = SessionSpec()
    """Options of all iSCSI sessions."""
    smb: SmbSpec = SmbSpec()
    """Options of all SMB sessions."""
    multipath: MultipathTable = MultipathTable()
    """How I/O is spread over the paths of all volumes that have several."""
    volume: tuple[VolumeTable, ...] = Field(min_length=1)
    stream: tuple[StreamTable, ...] = Field(min_length=1)
    run: tuple[RunTable, ...] = ()
