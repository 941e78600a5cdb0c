"""How single values stand in a Linerate TOML file: sizes, times, mixes of sizes, parts of a volume, rates, names.

Each is a pydantic type that reads what people write, refuses the rest with the accepted form, and has a JSON Schema.
"""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, PlainValidator, WithJsonSchema

from linerate.quantity import SIZE_FORM, TIME_FORM, parse_size, parse_time_s
from linerate.workload.plan import Rate
from linerate.workload.spec import IO_BYTES_MAX, RATE_IOPS_MAX, TIME_S_MAX, SizeMix, SizeRange, VolumeRegion

_SIZE_SCHEMA = {"type": ["integer", "string"], "description": SIZE_FORM}
TIME_SCHEMA = {"type": ["number", "string"], "description": TIME_FORM}
SIZE_LIST_SCHEMA = {"type": "array", "items": _SIZE_SCHEMA, "minItems": 1}
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


def seconds(value: object) -> float:
    """Seconds of a number, or of a text such as 5m. Raises ValueError."""
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
            raise ValueError("no multiple of align is between min and max")
        return SizeRange(min_bytes=low, max_bytes=high, align_bytes=align)
    return SizeMix.one(_io_size(value))


def _part(part: object) -> tuple[int, float]:
    if not isinstance(part, dict) or part.keys() != {"size", "percent"}:
        raise ValueError('write [{ size = "4k", percent = 60 }, { size = "8k", percent = 40 }]')
    percent = part["percent"]
    if not isinstance(percent, int | float) or isinstance(percent, bool) or not 0 < percent <= 100:
        raise ValueError("a percent is above 0 and at most 100")
    return _io_size(part["size"]), float(percent)


def _region(value: object) -> VolumeRegion:
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
        raise ValueError("the start must be below the end; in percent the end may wrap beyond 100")
    return VolumeRegion(unit=unit, start=start, end=end)


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
Seconds = Annotated[float, PlainValidator(seconds), WithJsonSchema(TIME_SCHEMA)]
PositiveSeconds = Annotated[
    float, PlainValidator(seconds), AfterValidator(_above_zero), WithJsonSchema(TIME_SCHEMA)
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
    VolumeRegion,
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
