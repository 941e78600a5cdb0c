"""RunSpec, version 1: what one run does, as handed to the data plane in JSON.

Everything is resolved here: names, defaults, wildcards, percentages. The data plane refuses unknown keys and
decides nothing. All models are frozen. Units end the names: `_s` seconds, `_bytes` bytes, `_iops` I/Os per
second.
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PlainSerializer,
    PositiveFloat,
    PositiveInt,
    SecretStr,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)

from linerate.model import Model
from linerate.quantity import parse_size

REVEAL = "reveal_secrets"


def _stars_or_secret(value: SecretStr, info: SerializationInfo) -> str:
    return value.get_secret_value() if (info.context or {}).get(REVEAL) else str(value)


Secret = Annotated[SecretStr, PlainSerializer(_stars_or_secret, return_type=str)]
"""Shown as stars everywhere but in the JSON for the data plane."""

Percent = Annotated[float, Field(ge=0, le=100)]
Outstanding = Annotated[int, Field(ge=1, le=65_536)]
Connections = Annotated[int, Field(ge=1, le=64)]
"""TCP connections of one session."""
IO_BYTES_MAX = 1 << 30
"""Largest I/O."""
SMB_IO_BYTES_MIN, SMB_IO_BYTES_MAX = 512, 8 << 20
"""The limits of `smb.max_io`."""
SMB_CHANNELS_MAX = 16
"""The most connections of an SMB session."""
SmbIoBytes = Annotated[
    int,
    BeforeValidator(lambda value: parse_size(value) if isinstance(value, str) else value),
    Field(ge=SMB_IO_BYTES_MIN, le=SMB_IO_BYTES_MAX),
]
"""Bytes of one READ or WRITE; a size may be written."""
CURSORS_MAX = 4096
RATE_IOPS_MAX = 1e9
TIME_S_MAX = 366.0 * 86_400


class FrozenSpec(Model):
    """Base of all specs: immutable, unknown keys refused, an attribute's docstring is its description."""

    model_config = ConfigDict(extra="forbid")


class OptionsSpec(FrozenSpec):
    """Options that may be left to a client's default: None, which is left out of the JSON."""

    @model_serializer(mode="wrap")
    def _only_what_is_set(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in handler(self).items() if value is not None}

    def merged(self, over: Self) -> Self:
        """These options with every option that is set in `over` replaced."""
        return self.model_copy(update=over.model_dump())


class SessionSpec(OptionsSpec):
    """What an iSCSI session asks for (RFC 7143 section 13) and how its TCP connection is set up.

    None means: leave it to the initiator's default.
    """

    initiator_name: str | None = None
    """iSCSI name of this initiator, for example iqn.2026-11.lab.linerate:host1."""
    header_digest: Literal["none", "crc32c", "offer"] | None = None
    """none, crc32c (required), or offer (crc32c if the array wants it)."""
    data_digest: Literal["none", "crc32c", "offer"] | None = None
    """none, crc32c (required), or offer (crc32c if the array wants it)."""
    immediate_data: bool | None = None
    """Send the first write data inside the command PDU."""
    initial_r2t: bool | None = None
    """Wait for the array's R2T before any further write data."""
    first_burst_bytes: PositiveInt | None = None
    """Most unsolicited write data of one command (FirstBurstLength)."""
    max_burst_bytes: PositiveInt | None = None
    """Most data of one burst (MaxBurstLength)."""
    max_recv_data_segment_bytes: PositiveInt | None = None
    """Most data of one PDU that this side accepts (MaxRecvDataSegmentLength)."""
    max_outstanding_r2t: PositiveInt | None = None
    """R2Ts that the array may have open per command (MaxOutstandingR2T)."""
    nodelay: bool | None = None
    """TCP_NODELAY: false turns Nagle's algorithm on."""
    send_buffer_bytes: PositiveInt | None = None
    """SO_SNDBUF; unset leaves the kernel's auto-tuning on."""
    recv_buffer_bytes: PositiveInt | None = None
    """SO_RCVBUF; unset leaves the kernel's auto-tuning on."""
    congestion_control: str | None = None
    """TCP congestion control of the connection, for example cubic."""
    source_address: str | None = None
    """Local IP address that the connection starts from; unset leaves it to the routes."""
    login_timeout_s: PositiveFloat | None = None
    """How long connecting and logging in may take."""
    command_timeout_s: PositiveFloat | None = None
    """How long one command may take before the session is dropped."""
    replacement_timeout_s: NonNegativeFloat | None = None
    """How long commands wait for a new login after the connection was lost."""
    ping_interval_s: NonNegativeFloat | None = None
    """Pause between NOP-Out pings on a quiet session; 0 turns them off."""
    ping_timeout_s: PositiveFloat | None = None
    """How long the answer to a ping may take."""
    connections: Connections | None = None
    """Connections of the session (MC/S, MaxConnections); the array may allow fewer, and an event says so."""
    connection_portals: tuple[str, ...] | None = None
    """Portals that the further connections go to in turn, of the group of the first; unset: the same one."""
    connection_policy: Literal["round_robin", "least_queue_depth"] | None = None
    """Which connection a command takes; unset: each in turn."""


class SmbSpec(OptionsSpec):
    """What an SMB session asks for. None means: leave it to the client's default."""

    signing: Literal["auto", "on", "off"] | None = None
    """auto (if the server requires it), on, or off (a server that requires it fails the run)."""
    encryption: (
        Literal["auto", "off", "on", "aes-128-ccm", "aes-128-gcm", "aes-256-ccm", "aes-256-gcm"] | None
    ) = None
    """auto (if the server or the share requires it), off, on (the server's choice), or a cipher."""
    dialect: Literal["2.1", "3.0", "3.0.2", "3.1.1"] | None = None
    """The only dialect that is offered; unset: all of them."""
    max_io: SmbIoBytes | None = None
    """The longest READ and WRITE, 512 to 8m; longer I/Os are split. Unset: what the server permits."""
    channels: Annotated[int, Field(ge=1, le=SMB_CHANNELS_MAX)] | None = None
    """Connections of the session of each file (multichannel), 1 to 16."""
    durable: bool | None = None
    """Ask the server to keep the file open when the connection is lost (durable handle)."""
    login_timeout_s: PositiveFloat | None = None
    """How long connecting, logging on and opening the file may take."""
    command_timeout_s: PositiveFloat | None = None
    """How long one request may take before it is cancelled."""
    replacement_timeout_s: NonNegativeFloat | None = None
    """How long I/Os wait for a lost connection to be restored; 0: not at all."""

    @field_validator("dialect")
    @classmethod
    def _has_the_cipher(cls, dialect: str | None, info: ValidationInfo) -> str | None:
        cipher = info.data.get("encryption")
        if dialect == "2.1" and cipher not in (None, "auto", "off"):
            raise ValueError("dialect 2.1 has no encryption; it needs 3.0 or later")
        if dialect in ("3.0", "3.0.2") and cipher in ("aes-128-gcm", "aes-256-ccm", "aes-256-gcm"):
            raise ValueError(f"dialect {dialect} has no {cipher}; it has aes-128-ccm, 3.1.1 has all")
        return dialect

    @field_validator("channels")
    @classmethod
    def _of_a_dialect_with_channels(cls, channels: int | None, info: ValidationInfo) -> int | None:
        if channels not in (None, 1) and info.data.get("dialect") == "2.1":
            raise ValueError("dialect 2.1 has one channel; more need 3.0 or later")
        return channels


MultipathPolicy = Literal[
    "failover_only",
    "round_robin",
    "round_robin_subset",
    "least_queue_depth",
    "least_blocks",
    "weighted_paths",
    "service_time",
]
"""Which of the paths an I/O takes, in the words of the Windows MPIO control panel and of multipath.conf."""


class PathSpec(FrozenSpec):
    """One way to a volume: from where, to where, and how it ranks."""

    name: str = Field(min_length=1)
    """In events and results; with n sessions they are called name#1 to name#n."""
    portal: str | None = None
    """Address and port of the array's end; null: those of the volume's URL."""
    source_address: str | None = None
    """Local IP address that it starts from; null: that of the session options."""
    interface: str | None = None
    """Local interface whose link it depends on."""
    sessions: PositiveInt = 1
    """Sessions on this path; each counts as a path of its own."""
    connections: Connections = 1
    """Connections of each session (MC/S); 1: as many as the session options say."""
    weight: NonNegativeInt = 0
    """Of `weighted_paths`: the path with the least weight is used."""
    standby: bool = False
    """Used only while no other path lives."""


class MultipathSpec(FrozenSpec):
    """How I/O is spread over the paths of a volume, and what happens when one fails."""

    policy: MultipathPolicy = "round_robin"
    ios_per_path: PositiveInt = 1
    """Round robin moves on after so many I/Os."""
    bytes_per_path: PositiveInt | None = None
    """Round robin moves on after so many bytes; null: it counts I/Os."""
    failback: Literal["immediate", "manual"] | NonNegativeFloat = "immediate"
    """When a path that is back and ranks better is used again; a number: after so many seconds."""
    path_timeout_s: PositiveFloat = 1.0
    """A path over which nothing is heard for so long is dead."""
    checker_interval_s: PositiveFloat = 1.0
    """Pause between attempts to bring a path back."""
    no_path_queue_s: NonNegativeFloat | None = 30.0
    """How long I/O waits when no path is left; null: for ever, 0: it fails at once."""


class SharedQueue(FrozenSpec):
    """A queue of several volumes: they have `outstanding` I/Os in flight together, and each one goes to a random volume
    of them (diskspd's -O)."""

    name: str = Field(min_length=1)
    """The same for all volumes of the queue."""
    weight: PositiveInt = 1
    """How often the volume is taken, in proportion to the others."""


class FlushSpec(FrozenSpec):
    """Flushes of a volume (fsync, SYNCHRONIZE CACHE, FLUSH), each in the place of an I/O. They are counted apart."""

    after_writes: PositiveInt
    """One after so many writes of the volume."""
    blocks: bool = True
    """No I/O of the volume starts before it is done."""


class VolumeSpec(FrozenSpec):
    """A volume under load: where it is and how it is opened."""

    name: str = Field(min_length=1)
    """The name that streams and results use."""
    url: str
    """`iscsi://host:port/iqn/lun`, `smb://host:port/share/file`, `file:/path`, `null:bytes` or `array:NAME`; never
    holds a user or a secret."""
    netns: str | None = Field(default=None, pattern="^/")
    """Path of the network namespace that the volume is reached from; null: this process's."""
    user: str | None = None
    """CHAP user; SMB: the user, as `user` or `DOMAIN\\user`."""
    secret: Secret | None = None
    """CHAP secret; SMB: the password. Shown as stars everywhere but in `RunSpec.seam_json`."""
    mutual_user: str | None = None
    """CHAP user under which the target proves itself."""
    mutual_secret: Secret | None = None
    """CHAP secret with which the target proves itself."""
    first_byte: NonNegativeInt = 0
    """Where the used part of the volume begins."""
    size_bytes: PositiveInt | None = None
    """Length of the used part; null means all of it."""
    outstanding: Outstanding = 8
    """I/Os in flight on this volume (vdbench: threads)."""
    direct: bool = True
    """Go past the host's page cache (files and block devices)."""
    create: bool = False
    """Make or lengthen the file so that it holds `first_byte + size_bytes`."""
    durable_writes: bool = False
    """Each write is on stable storage before it completes (FUA, O_DSYNC, write through)."""
    flush: FlushSpec | None = None
    """Flushes of the volume's caches between its writes (fio's fsync=n)."""
    reopen_after_ios: PositiveInt | None = None
    """The volume is closed and opened again after so many I/Os, when none is in flight; sequential streams then begin
    at their start (Iometer's transactions per connection). Of a LUN only that."""
    shares_device: bool = False
    """Other volumes of the run use the same part of the device, each with a queue of its own (jobs of fio)."""
    queue: SharedQueue | None = None
    """The queue that it shares with other volumes; null: its own."""
    session: Literal["own", "shared"] = "own"
    """own: one iSCSI session for this volume; shared: one per target and worker."""
    iscsi: SessionSpec = SessionSpec()
    """Options of the iSCSI session."""
    smb: SmbSpec = SmbSpec()
    """Options of the SMB session."""
    paths: tuple[PathSpec, ...] = ()
    """Its paths; without any there is one, the URL's own."""
    multipath: MultipathSpec = MultipathSpec()
    """How I/O is spread over `paths`."""

    @model_serializer(mode="wrap")
    def _options_where_they_apply(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values: dict[str, Any] = handler(self)
        if not values["smb"]:
            del values["smb"]
        if not self.paths:
            del values["paths"], values["multipath"]
        if not self.shares_device:
            values.pop("shares_device", None)
        for key in ("queue", "flush", "reopen_after_ios"):
            if getattr(self, key) is None:
                values.pop(key, None)
        return values


class SizeMix(FrozenSpec):
    """I/O sizes by share: `parts` holds (bytes, percent of I/Os)."""

    kind: Literal["mix"] = "mix"
    parts: tuple[tuple[PositiveInt, float], ...] = Field(min_length=1)

    @classmethod
    def one(cls, size_bytes: int) -> Self:
        """Every I/O has the same size."""
        return cls(parts=((size_bytes, 100.0),))


class SizeRange(FrozenSpec):
    """I/O sizes drawn evenly from the multiples of `align_bytes` in [min_bytes, max_bytes]."""

    kind: Literal["range"] = "range"
    min_bytes: PositiveInt
    max_bytes: PositiveInt
    align_bytes: PositiveInt = 512


class MixPart(FrozenSpec):
    """One kind of I/O of a stream."""

    share_percent: Percent
    """Share of the stream's I/Os."""
    size_bytes: PositiveInt
    """Its size, one of the stream's sizes."""
    read_percent: Percent
    random_percent: Percent
    """Share of random places; the others follow the last I/O of any kind."""
    align_bytes: PositiveInt
    """Grid of its places."""


Sizes = Annotated[SizeMix | SizeRange, Field(discriminator="kind")]


class ByteSpan(FrozenSpec):
    """A distance between `min_bytes` and `max_bytes`."""

    min_bytes: NonNegativeInt
    max_bytes: PositiveInt
    passes: PositiveInt = 1
    """Behind the end it begins one I/O further than before, so many times; then at the start again."""


class VolumeRegion(FrozenSpec):
    """A part of each volume. In percent `end` may pass 100: the region then wraps to the volume's start."""

    unit: Literal["percent", "bytes"]
    start: NonNegativeFloat
    end: PositiveFloat


class PlaceDistribution(FrozenSpec):
    """Uneven random places (diskspd's -rd): parts that follow each other from the start of the used part."""

    unit: Literal["percent", "bytes"]
    parts: tuple[tuple[Percent, NonNegativeFloat], ...] = Field(min_length=1)
    """(share, length): percent of the random I/Os, 0 for none, and how long the part is. Lengths in percent add up to
    100; in bytes the last one may be 0 for the rest, and parts behind the end are left out."""


class HitArea(FrozenSpec):
    """A small area at the start of each volume that is meant to sit in the array's cache."""

    bytes: PositiveInt = 1 << 20
    read_percent: Percent = 0.0
    """Share of the reads that goes there."""
    write_percent: Percent = 0.0
    """Share of the writes that goes there."""


_RARE = (
    *("write_sizes", "separate_directions", "ios_per_place", "stop_after_bytes"),
    *("stop_after_percent", "read_back", "think_time", "dedup", "trace", "distribution", "mix"),
    *("start_after_s", "stop_after_s"),
)
"""Keys of a stream that few workload files use."""


class ThinkTime(FrozenSpec):
    """A pause of a slot, as of a user who looks at an answer before the next request."""

    pause_s: NonNegativeFloat
    after_ios: PositiveInt = 1
    """After so many I/Os of the slot."""


class DedupSpec(FrozenSpec):
    """Duplicates in written data, by vdbench's rules. They are within a volume; the place of a unit decides them."""

    ratio: float = Field(ge=1, le=1e9)
    """Units of a volume by different units."""
    unit_bytes: int = Field(ge=512, le=16 << 20, multiple_of=512)
    sets_percent: Percent = 5.0
    """Sets of equal units, in percent of the units of a volume."""
    sets: PositiveInt | None = None
    """Their number on each volume, instead of a percentage."""


class TraceSpec(FrozenSpec):
    """The I/Os of one device of a trace, for one volume."""

    path: str = Field(min_length=1)
    """The compiled trace: 24 bytes per I/O in the order of time (ns, offset, length, 0 = read or 1 = write)."""
    first_io: NonNegativeInt = 0
    """Index of the stream's first I/O in the file."""
    ios: PositiveInt
    """Number of the stream's I/Os."""
    time_scale: PositiveFloat = 1.0
    """Recorded times are multiplied by it: 0.5 is twice as fast."""
    placement: Literal["fold", "scale"] = "fold"
    """fold: offsets beyond the end of the volume are taken modulo its size. scale: all offsets are multiplied by the
    volume's size over `span_bytes`."""
    span_bytes: PositiveInt
    """Where the last byte of the recorded device ends."""


class StreamSpec(FrozenSpec):
    """A stream of I/Os with one character, spread over its volumes (vdbench: workload definition)."""

    name: str = Field(min_length=1)
    volumes: tuple[str, ...] = Field(min_length=1)
    share_percent: float | None = Field(default=None, gt=0, le=100)
    """Share of the run's I/Os."""
    rate_iops: float | None = Field(default=None, gt=0, le=RATE_IOPS_MAX)
    """Fixed rate of this stream; excludes a share."""
    priority: PositiveInt | None = None
    """Rank among streams, 1 first."""
    sizes: Sizes = SizeMix(parts=((4096, 100.0),))
    mix: tuple[MixPart, ...] = ()
    """Several kinds of I/O that move one position, as the lines of an access specification of Iometer; `sizes`,
    `read_percent` and the like then say what they are together."""
    write_sizes: Sizes | None = None
    """Sizes of writes; null: those of reads."""
    read_percent: Percent = 100.0
    random_percent: Percent = 100.0
    """100: every I/O at a new random place; 0: sequential; 20: one I/O in five starts at a new random
    place."""
    stride: ByteSpan | None = None
    """Instead of a random jump, skip this far ahead."""
    range: VolumeRegion | None = None
    """Part of each volume that is used."""
    hotband: VolumeRegion | None = None
    """Part of each volume in which the access probability decays with distance."""
    distribution: PlaceDistribution | None = None
    """Random places by parts, each with its share; null: all are equally likely."""
    align_bytes: PositiveInt | None = None
    """Grid of random offsets; null: the I/O's size."""
    hit_area: HitArea | None = None
    skip_first_block: bool = False
    """Never touch the block at offset 0 (vdbench's rule for raw devices)."""
    stop_at_end: bool = False
    """Sequential, and finished at the end of the volume."""
    cursors: int = Field(default=1, ge=1, le=CURSORS_MAX)
    """Sequential cursors per volume."""
    separate_directions: bool = False
    """Sequential reads and sequential writes each go on where the last one of their kind ended."""
    ios_per_place: PositiveInt = 1
    """So many I/Os follow each other from each random place."""
    stop_after_bytes: PositiveInt | None = None
    """Finished after so many bytes on each volume; the run ends when all streams that stop have ended."""
    stop_after_percent: PositiveFloat | None = None
    """The same in percent of its part of each volume; 200: twice as many bytes as it has."""
    start_after_s: NonNegativeFloat = 0.0
    """It begins so many seconds after the start of the run."""
    stop_after_s: PositiveFloat | None = None
    """It ends so many seconds after the start of the run, warm-up included."""
    read_back: bool = False
    """A stream of writes that stops then reads back, once, all that it wrote; needs `verify`."""
    think_time: ThinkTime | None = None
    """Each slot pauses after its I/Os."""
    compression_ratio: PositiveFloat | None = None
    """Write data compresses about n:1; null: incompressible."""
    dedup: DedupSpec | None = None
    """Write data has duplicates; null: no two pages are equal."""
    trace: TraceSpec | None = None
    """Recorded I/Os at their recorded times instead of drawn ones; `rate_iops` is their mean rate, and the sizes are
    those of the largest I/Os."""

    @model_serializer(mode="wrap")
    def _rare_keys_where_they_are_used(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values: dict[str, Any] = handler(self)
        return {
            key: value
            for key, value in values.items()
            if key not in _RARE or (value != type(self).model_fields[key].default and value != [])
        }


class ClosedArrival(FrozenSpec):
    """A finished I/O makes room for the next one: as fast as the SAN goes."""

    kind: Literal["closed"] = "closed"


class OpenArrival(FrozenSpec):
    """I/Os start when they are due, whether or not earlier ones have finished."""

    kind: Literal["open"] = "open"
    process: Literal["deterministic", "poisson", "uniform"] = "poisson"
    rate_iops: float = Field(gt=0, le=RATE_IOPS_MAX)


Arrival = Annotated[ClosedArrival | OpenArrival, Field(discriminator="kind")]


class RunLimits(FrozenSpec):
    """Ends a run early, counted after the warm-up and checked at the end of each interval."""

    bytes: PositiveInt | None = None
    read_bytes: PositiveInt | None = None
    written_bytes: PositiveInt | None = None


class RunSpec(FrozenSpec):
    """One run: volumes, streams, arrival, and for how long."""

    VERSION: ClassVar[int] = 1

    version: Literal[1] = 1
    name: str = Field(min_length=1)
    seed: NonNegativeInt = 1
    """Same seed, same sequence of I/Os."""
    warmup_s: NonNegativeFloat = 0.0
    """Comes before `elapsed_s` and is left out of the result."""
    elapsed_s: PositiveFloat = 30.0
    """Measured time."""
    interval_s: PositiveFloat = 1.0
    workers: NonNegativeInt = 0
    """Load threads; 0: chosen at run time. Each network namespace has threads of its own."""
    cpus: tuple[NonNegativeInt, ...] | None = None
    """CPUs that workers are pinned to; null: not pinned."""
    driver: Literal["auto", "io_uring", "epoll"] = "auto"
    wait: Literal["auto", "block", "spin"] = "auto"
    """How load threads wait. auto: poll for a short time that they learn, then sleep. spin: never sleep."""
    verify: Literal["off", "on"] = "off"
    volumes: tuple[VolumeSpec, ...] = Field(min_length=1)
    streams: tuple[StreamSpec, ...] = Field(min_length=1)
    shares: Literal["uncontrolled", "controlled", "total"] = "uncontrolled"
    """uncontrolled: every slot loops freely. controlled: shares hold per volume, so the slowest volume gates
    the run (vdbench's maximum with skew). total: shares hold over all volumes together."""
    arrival: Arrival = ClosedArrival()
    limits: RunLimits = RunLimits()

    @model_validator(mode="after")
    def _names_fit_together(self) -> Self:
        names = [volume.name for volume in self.volumes]
        if doubled := [name for name, number in Counter(names).items() if number > 1]:
            raise ValueError(f"volume named twice: {', '.join(sorted(doubled))}")
        known = set(names)
        for stream in self.streams:
            if missing := [name for name in stream.volumes if name not in known]:
                raise ValueError(
                    f"stream {stream.name} uses a volume that does not exist: {', '.join(missing)}"
                )
        return self

    def seam_json(self) -> str:
        """The JSON for the data plane, secrets included: for `linerate._core` only, never for a file or a
        log."""
        return self.model_dump_json(context={REVEAL: True})
