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

import math
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ModelWrapValidatorHandler,
    PlainValidator,
    PositiveInt,
    PrivateAttr,
    SecretStr,
    WithJsonSchema,
    model_validator,
)

from linerate.workload.plan import Rate
from linerate.workload.spec import (
    CURSORS_MAX,
    IO_BYTES_MAX,
    RATE_IOPS_MAX,
    TIME_S_MAX,
    ByteSpan,
    Frozen,
    HitArea,
    Outstanding,
    Percent,
    Region,
    SessionOptions,
    SizeMix,
    SizeRange,
)
from linerate.workload.units import SIZE_FORM, TIME_FORM, parse_size, parse_time_s

_SIZE_SCHEMA = {"type": ["integer", "string"], "description": SIZE_FORM}
_TIME_SCHEMA = {"type": ["number", "string"], "description": TIME_FORM}
_SIZE_LIST_SCHEMA = {"type": "array", "items": _SIZE_SCHEMA, "minItems": 1}
_NUMBER = {"type": "number"}
_SECTOR_BYTES = 512


def _size(value: object) -> int:
    if isinstance(value, str):
        return parse_size(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise ValueError(f"not a size; write {SIZE_FORM}")


def _io_size(value: object) -> int:
    size_bytes = _size(value)
    if not 0 < size_bytes <= IO_BYTES_MAX or size_bytes % _SECTOR_BYTES:
        raise ValueError(f"an I/O size is a multiple of {_SECTOR_BYTES} bytes, at most 1g")
    return size_bytes


def _time(value: object) -> float:
    if isinstance(value, str):
        return parse_time_s(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= TIME_S_MAX:
        return float(value)
    raise ValueError(f"not a time; write {TIME_FORM}")


def _above_zero(time_s: float) -> float:
    if time_s <= 0:
        raise ValueError("a time above 0 is expected")
    return time_s


def _sizes(value: object) -> SizeMix | SizeRange:
    """`"8k"`, `[{ size = "4k", percent = 60 }, ..]`, or `{ min = "4k", max = "64k", align = "4k" }`."""
    if isinstance(value, list):
        parts = [_part(part) for part in value]
        total = math.fsum(percent for _, percent in parts)
        if not parts or abs(total - 100) > 0.01:
            raise ValueError(f"the percentages add up to {total:g}, not 100")
        return SizeMix(parts=tuple((size_bytes, percent * 100 / total) for size_bytes, percent in parts))
    if isinstance(value, dict):
        if not {"min", "max"} <= value.keys() <= {"min", "max", "align"}:
            raise ValueError('write { min = "4k", max = "64k", align = "4k" }')
        low, high, align = (_io_size(value.get(key, _SECTOR_BYTES)) for key in ("min", "max", "align"))
        if low > high or high // align * align < low:
            raise ValueError("no multiple of align lies between min and max")
        return SizeRange(min_bytes=low, max_bytes=high, align_bytes=align)
    return SizeMix.one(_io_size(value))


def _part(part: object) -> tuple[int, float]:
    if not isinstance(part, dict) or part.keys() != {"size", "percent"}:
        raise ValueError('write [{ size = "4k", percent = 60 }, { size = "8k", percent = 40 }]')
    percent = part["percent"]
    if not isinstance(percent, int | float) or isinstance(percent, bool) or not 0 < percent <= 100:
        raise ValueError("a percent is above 0 and at most 100")
    return _io_size(part["size"]), float(percent)


def _region(value: object) -> Region:
    """`{ percent = [10, 20] }` or `{ bytes = ["1g", "2g"] }`."""
    wrong = 'write { percent = [10, 20] } or { bytes = ["1g", "2g"] }'
    if not isinstance(value, dict) or len(value) != 1:
        raise ValueError(wrong)
    unit, limits = next(iter(value.items()))
    if unit not in ("percent", "bytes") or not isinstance(limits, list) or len(limits) != 2:
        raise ValueError(wrong)
    if unit == "bytes":
        start, end = (float(_size(limit)) for limit in limits)
    else:
        if any(not isinstance(limit, int | float) or isinstance(limit, bool) for limit in limits):
            raise ValueError(wrong)
        start, end = (float(limit) for limit in limits)
    if not 0 <= start < end or (unit == "percent" and (start >= 100 or end > 200 or end - start > 100)):
        raise ValueError("the start lies below the end; in percent the end may wrap beyond 100")
    return Region(unit=unit, start=start, end=end)


def _rates(value: object) -> tuple[Rate, ...]:
    """A number, "max", "curve", "50%", or a list of these."""
    items = value if isinstance(value, list) else [value]
    if not items:
        raise ValueError("an empty list")
    return tuple(_rate(item) for item in items)


def _rate(item: object) -> Rate:
    if item == "max":
        return Rate("max")
    if item == "curve":
        return Rate("curve_max")
    if isinstance(item, int | float) and not isinstance(item, bool) and 0 < item <= RATE_IOPS_MAX:
        return Rate("fixed", float(item))
    if isinstance(item, str) and item.endswith("%"):
        try:
            percent = float(item[:-1])
        except ValueError:
            percent = 0.0
        if 0 < percent <= 1000:
            return Rate("percent", percent)
    raise ValueError('not a rate; write I/Os per second, "max", "curve" or "50%" of the last maximum')


def _names(value: object) -> object:
    if value == []:
        raise ValueError("an empty list")
    return [value] if isinstance(value, str) else value


Bytes = Annotated[int, PlainValidator(_size), WithJsonSchema(_SIZE_SCHEMA)]
IoBytes = Annotated[int, PlainValidator(_io_size), WithJsonSchema(_SIZE_SCHEMA)]
Seconds = Annotated[float, PlainValidator(_time), WithJsonSchema(_TIME_SCHEMA)]
PositiveSeconds = Annotated[
    float, PlainValidator(_time), AfterValidator(_above_zero), WithJsonSchema(_TIME_SCHEMA)
]
SizesField = Annotated[
    SizeMix | SizeRange,
    PlainValidator(_sizes),
    WithJsonSchema(
        {
            "anyOf": [
                _SIZE_SCHEMA,
                {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"size": _SIZE_SCHEMA, "percent": _NUMBER},
                        "required": ["size", "percent"],
                        "additionalProperties": False,
                    },
                },
                {
                    "type": "object",
                    "properties": {"min": _SIZE_SCHEMA, "max": _SIZE_SCHEMA, "align": _SIZE_SCHEMA},
                    "required": ["min", "max"],
                    "additionalProperties": False,
                },
            ]
        }
    ),
]
RegionField = Annotated[
    Region,
    PlainValidator(_region),
    WithJsonSchema(
        {
            "type": "object",
            "properties": {
                "percent": {"type": "array", "items": _NUMBER, "minItems": 2, "maxItems": 2},
                "bytes": {"type": "array", "items": _SIZE_SCHEMA, "minItems": 2, "maxItems": 2},
            },
            "minProperties": 1,
            "maxProperties": 1,
        }
    ),
]
_RATE_SCHEMA = {"anyOf": [_NUMBER, {"enum": ["max", "curve"]}, {"type": "string", "pattern": "^[0-9.]+%$"}]}
RatesField = Annotated[
    tuple[Rate, ...],
    PlainValidator(_rates),
    WithJsonSchema({"anyOf": [*_RATE_SCHEMA["anyOf"], {"type": "array", "items": _RATE_SCHEMA}]}),
]
Names = Annotated[
    tuple[str, ...],
    BeforeValidator(_names),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]


class VolumeTable(Frozen):
    """[[volume]]: one volume, or `count` of them."""

    name: str = Field(min_length=1)
    """May hold {n}, the number of the volume; with a count and no {n} the number is appended."""
    count: int = Field(default=1, ge=1, le=10_240)
    """Number of volumes, numbered from 1."""
    target: str | None = None
    """iscsi://host/target/lun, a path, or null:SIZE; may hold {n} or {n-1}. Without one, --map must say
    it."""
    user: str | None = None
    """CHAP user."""
    secret: SecretStr | None = None
    """CHAP secret."""
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
    iscsi: SessionOptions = SessionOptions()
    """Options of this volume's iSCSI session, over those of the file."""


class StrideTable(Frozen):
    """stride: how far to skip ahead instead of a random jump."""

    min: Bytes
    max: Bytes

    def span(self) -> ByteSpan:
        """As the run spec has it."""
        return ByteSpan(min_bytes=self.min, max_bytes=self.max)


class HitAreaTable(Frozen):
    """hit_area: a small part of the volume that is meant to sit in the array's cache."""

    size: Bytes = 1 << 20
    read: Percent = 0.0
    """Percent of the reads that go there."""
    write: Percent = 0.0
    """Percent of the writes that go there."""

    def area(self) -> HitArea:
        """As the run spec has it."""
        return HitArea(bytes=self.size, read_percent=self.read, write_percent=self.write)


class StreamTable(Frozen):
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


class SweepTable(Frozen):
    """sweep: every combination of these values, in the order in which they are given, rates last."""

    outstanding: tuple[Outstanding, ...] | None = Field(default=None, min_length=1)
    size: Annotated[tuple[IoBytes, ...] | None, WithJsonSchema(_SIZE_LIST_SCHEMA)] = Field(
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


class LimitTable(Frozen):
    """limit: ends a run early, counted after the warm-up."""

    total: Bytes | None = None
    read: Bytes | None = None
    written: Bytes | None = None


class RunSettings(Frozen):
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
    wait: Literal["block", "spin"] = "block"
    iscsi: SessionOptions = SessionOptions()
    """Options of all iSCSI sessions."""
    volume: tuple[VolumeTable, ...] = Field(min_length=1)
    stream: tuple[StreamTable, ...] = Field(min_length=1)
    run: tuple[RunTable, ...] = ()
