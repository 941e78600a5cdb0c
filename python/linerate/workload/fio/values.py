"""Values of a job file: sizes, times, numbers, percentages, lists by direction, splits."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Sequence
from dataclasses import dataclass

from linerate.workload.spec import IO_BYTES_MAX, TIME_S_MAX, PlaceDistribution, SizeMix, SizeRange, Sizes

_SIZE = re.compile(r"(0x[0-9a-f]+|\d+)(?:([kmgtp])(ib|i|b)?|b)?", re.IGNORECASE | re.ASCII)
_TIME = re.compile(r"(\d+)(d|h|m|s|sec|ms|msec|us|usec)?", re.IGNORECASE | re.ASCII)
_TIME_S = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}
_POWER = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_MOST = 1 << 62
_EXPRESSION_MAX = 200
_EXPONENT_MAX = 62
_AREAS_MAX = 256
_SUFFIXED = re.compile(r"\b(0x[0-9a-f]+|\d+)([kmgtp](?:ib|i|b)?)\b", re.IGNORECASE)
_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}

SIZE_FORM = "a number of bytes, or one with k, m, g, t or p, for example 64k"
TIME_FORM = "a number of seconds, or one with us, ms, s, m, h or d, for example 60s"


class JobValueError(ValueError):
    """A value that does not have the accepted form; the message says which."""


@dataclass(frozen=True, slots=True)
class Amount:
    """Bytes, or percent of a file."""

    value: int
    is_percent: bool = False


def size_bytes(text: str, kb_base: int = 1024) -> int:
    """Bytes of `4k`, `0x1000`, `(4 * 1024)`. k, kb and ki are `kb_base`, kib is the other base, as in fio.

    Raises JobValueError.
    """
    if text.startswith("("):
        return _expression(text, kb_base)
    match = _SIZE.fullmatch(text)
    if match is None:
        raise JobValueError(f"not {SIZE_FORM}")
    digits, prefix, unit = match.groups()
    base = kb_base
    if (unit or "").lower() == "ib":
        base = 1000 if kb_base == 1024 else 1024
    number = int(digits, 16) if digits[:2].lower() == "0x" else _decimal(digits)
    return _bounded(number * base ** _POWER[(prefix or "").lower()])


def _decimal(digits: str) -> int:
    if len(digits) > 20:
        raise JobValueError("too large")
    return int(digits)


def _bounded(number: int) -> int:
    if not 0 <= number <= _MOST:
        raise JobValueError("below 0" if number < 0 else "too large")
    return number


def _expression(text: str, kb_base: int) -> int:
    """An expression in parentheses of + - * / % ^."""
    if len(text) > _EXPRESSION_MAX:
        raise JobValueError("an expression may have 200 characters")
    plain = _SUFFIXED.sub(lambda match: str(size_bytes(match.group(), kb_base)), text)
    try:
        tree = ast.parse(plain.replace("^", "**"), mode="eval")
        return _bounded(_computed(tree.body))
    except (SyntaxError, ZeroDivisionError, RecursionError, MemoryError) as error:
        raise JobValueError("not an expression of numbers, + - * / % ^ and parentheses") from error


def _computed(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _computed(node.left), _computed(node.right)
        if isinstance(node.op, ast.Pow) and not 0 <= right <= _EXPONENT_MAX:
            raise JobValueError(f"an exponent is between 0 and {_EXPONENT_MAX}")
        number: int = _OPERATORS[type(node.op)](left, right)
        if abs(number) > _MOST:
            raise JobValueError("too large")
        return number
    raise JobValueError("not an expression of numbers, + - * / % ^ and parentheses")


def amount(text: str, kb_base: int = 1024) -> Amount:
    """A size, or a percentage such as `50%`; `50%%` is the same, as in fio. Raises JobValueError."""
    if text.endswith("%"):
        percent = whole(text.rstrip("%"))
        if percent > 100:
            raise JobValueError("a percentage is at most 100")
        return Amount(percent, is_percent=True)
    return Amount(size_bytes(text, kb_base))


def last_amount(text: str, kb_base: int = 1024) -> Amount:
    """The last of several amounts with colons between them: fio reads all and keeps that. Raises JobValueError."""
    return [amount(part.strip(), kb_base) for part in text.split(":")][-1]


def whole(text: str) -> int:
    """A whole number, or an expression; `2k` is 2048, as in fio. Raises JobValueError."""
    if not text.startswith("(") and _SIZE.fullmatch(text) is None:
        raise JobValueError("not a whole number")
    return size_bytes(text)


def percent(text: str) -> float:
    """A percentage between 0 and 100. Raises JobValueError."""
    number = whole(text.removesuffix("%"))
    if number > 100:
        raise JobValueError("a percentage is at most 100")
    return float(number)


def flag(text: str) -> bool:
    """0 or 1. Raises JobValueError."""
    if text not in ("0", "1"):
        raise JobValueError("neither 0 nor 1")
    return text == "1"


def time_s(text: str) -> float:
    """Seconds of `30`, `90s`, `5m`, `500ms`, `1d`. Raises JobValueError."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise JobValueError(f"not {TIME_FORM}")
    unit = (match.group(2) or "s").lower()
    seconds = _decimal(match.group(1)) * _TIME_S[unit.removesuffix("ec")]
    if seconds > TIME_S_MAX:
        raise JobValueError("more than 366 days")
    return seconds


def think_time_s(text: str) -> float:
    """Seconds of a pause: a number without a unit is in microseconds. Raises JobValueError."""
    return time_s(f"{text}us" if text.isdecimal() else text)


def by_direction(text: str) -> tuple[str, str]:
    """The texts for reads and for writes of `READ,WRITE,TRIM`; one part is for both. An empty text: not given."""
    return _reads_and_writes(text.split(","))


def numbers_by_direction(text: str) -> tuple[str, str]:
    """The same for numbers: where no comma follows, fio separates them at a colon, and else at a minus sign."""
    parts: list[str] = []
    while not text.startswith("("):
        at = next((found for mark in ",:-" if (found := text.find(mark, int(mark == "-"))) >= 0), None)
        if at is None:
            break
        parts.append(text[:at])
        text = text[at + 1 :]
    return _reads_and_writes([*parts, text])


def _reads_and_writes(texts: Sequence[str]) -> tuple[str, str]:
    parts = [part.strip() for part in texts]
    if len(parts) > 3:
        raise JobValueError("three parts at most: read,write,trim")
    return parts[0], parts[1] if len(parts) > 1 else parts[0]


def io_bytes(text: str, kb_base: int) -> int:
    """The size of an I/O: 1 byte to 1 GiB. Raises JobValueError."""
    found = size_bytes(text, kb_base)
    if not 1 <= found <= IO_BYTES_MAX:
        raise JobValueError("an I/O has 1 byte to 1 GiB")
    return found


def size_range(text: str, kb_base: int) -> Sizes:
    """`1k-4k` or `1k:4k`: even among the multiples of the lowest. Raises JobValueError."""
    parts = re.split("[-:]", text)
    if len(parts) != 2:
        raise JobValueError("not a range of sizes, for example 4k-64k")
    low, high = sorted(io_bytes(part.strip(), kb_base) for part in parts)
    return SizeMix.one(low) if low == high else SizeRange(min_bytes=low, max_bytes=high, align_bytes=low)


def size_split(text: str, kb_base: int) -> Sizes:
    """`4k/60:8k/40`; parts without a percentage share what is left. Raises JobValueError."""
    shares: list[tuple[int, float | None]] = []
    for part in text.split(":"):
        size, slash, share = part.strip().partition("/")
        shares.append((io_bytes(size, kb_base), percent(share) if slash and share else None))
    if len(shares) > 64:
        raise JobValueError("64 sizes at most")
    given = sum(share for _, share in shares if share is not None)
    open_parts = sum(share is None for _, share in shares)
    if given > 100 or (not open_parts and given < 100):
        raise JobValueError(f"the percentages add up to {given:g}, not 100")
    rest = (100 - given) / open_parts if open_parts else 0.0
    filled = [(size, rest if share is None else share) for size, share in shares]
    return SizeMix(parts=tuple((size, share) for size, share in filled if share > 0))


def distribution(text: str, kb_base: int) -> PlaceDistribution | None:
    """`zoned:50/5:50/` or `zoned_abs:50/5g:50/8g`: areas from the start of the used part, with shares; None: even.

    Raises JobValueError.
    """
    kind, _, rest = text.partition(":")
    if kind == "random":
        return None
    if kind not in ("zoned", "zoned_abs"):
        raise JobValueError(
            "is not supported: random places are even, or have areas by zoned: and zoned_abs:"
        )
    if "," in rest:
        raise JobValueError("is not supported: reads and writes have the same areas")
    parts = [part.strip().partition("/") for part in rest.split(":")]
    if len(parts) > _AREAS_MAX:
        raise JobValueError(f"{_AREAS_MAX} areas at most")
    in_percent = kind == "zoned"
    shares = [percent(share) for share, _, _ in parts]
    lengths = [
        None if not length else percent(length) if in_percent else float(size_bytes(length, kb_base))
        for _, _, length in parts
    ]
    if sum(shares) != 100:
        raise JobValueError(f"the shares add up to {sum(shares):g}, not 100")
    return _areas(shares, lengths) if in_percent else _areas_in_bytes(shares, lengths)


def _areas(shares: Sequence[float], lengths: Sequence[float | None]) -> PlaceDistribution:
    """Lengths in percent; those that are not given divide the rest."""
    rest = 100 - sum(length for length in lengths if length is not None)
    if rest < 0:
        raise JobValueError(f"the lengths add up to {100 - rest:g} percent, more than 100")
    open_lengths = lengths.count(None)
    filled = [rest / open_lengths if length is None else length for length in lengths]
    parts = [(share, length) for share, length in zip(shares, filled, strict=True) if length]
    if rest and not open_lengths:
        parts.append((0.0, rest))
    if sum(share for share, _ in parts) != 100:
        raise JobValueError("an area without length has a share")
    return PlaceDistribution(unit="percent", parts=tuple(parts))


def _areas_in_bytes(shares: Sequence[float], lengths: Sequence[float | None]) -> PlaceDistribution:
    """Lengths in bytes, all of which must be given."""
    parts = [(share, length) for share, length in zip(shares, lengths, strict=True) if length]
    if len(parts) < len(shares):
        raise JobValueError("each area of zoned_abs: has a length above 0")
    return PlaceDistribution(unit="bytes", parts=tuple(parts))


def filenames(text: str) -> tuple[str, ...]:
    r"""The names of `a:b`, where `\:` is a colon in a name. A URL is one name."""
    if re.match(r"(iscsi|smb|null|file)\\?:", text):
        return (text.replace("\\:", ":"),)
    names = [name.replace("\\:", ":") for name in re.split(r"(?<!\\):", text)]
    return tuple(name for name in names if name)
