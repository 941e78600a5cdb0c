"""Reads an array file (TOML) and says, for every mistake, file, line and key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from linerate.array.base import NAME_FORM, NAME_PATTERN
from linerate.array.config import TABLE, TEXT, ArrayConfig
from linerate.array.credentials import SECRET_KEYS, SecretError, secret_in_file, secret_in_variable
from linerate.errors import UserError, fault_text

_AMOUNT = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[kmgtsh]?)(?:i?b)?", re.IGNORECASE)
_BYTES = {"": 1.0, "k": float(1 << 10), "m": float(1 << 20), "g": float(1 << 30), "t": float(1 << 40)}
_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_SIZE_FORM = ("size", 'write a number with k, m, g or t: size = "8g"')
_RATE_FORM = ("rate", 'write bytes per second with k, m or g: "50m"')
_TIME_FORM = ("time", 'write a number with s, m or h: interval = "10m"')
_AS_TEXT = {
    "size": ("size_bytes", _SIZE_FORM, _BYTES),
    "chunk": ("chunk_bytes", _SIZE_FORM, _BYTES),
    "page": ("page_bytes", _SIZE_FORM, _BYTES),
    "rebuild_rate": ("rebuild_bytes_per_s", _RATE_FORM, _BYTES),
    "rate": ("rate_bytes_per_s", _RATE_FORM, _BYTES),
    "interval": ("interval_s", _TIME_FORM, _SECONDS),
    "io_timeout": ("io_timeout_s", _TIME_FORM, _SECONDS),
}
"""Keys that a file may give as text -> the plain key, what is expected, and what the units stand for."""

_PATHS = {"path", "token_file", "certificate", "key", "identity"}
_HEADER = re.compile(r"\s*(\[\[?)\s*([\w.\"-]+)\s*\]")
_KEY = re.compile(r"\s*\"?([\w-]+)\"?\s*=")

EXAMPLE = "all-keys"
"""The example that shows every key."""

_Path = tuple[str | int, ...]


def example_names() -> list[str]:
    """The array files that come with Linerate."""
    return sorted(
        path.name.removesuffix(".toml") for path in _examples().iterdir() if path.name.endswith(".toml")
    )


def example_text(name: str = EXAMPLE) -> str:
    """A commented array file that works as it is. Raises UserError for a name that none has."""
    if name not in example_names():
        raise UserError(f"there is no example {name!r}", f"examples: {', '.join(example_names())}")
    return _examples().joinpath(f"{name}.toml").read_text("ascii")


def _examples() -> Traversable:
    return resources.files("linerate.array").joinpath("examples")


def load_array_file(path: Path, *, secrets: bool = True) -> ArrayConfig:
    """The array that a TOML file describes. Paths in it count from the file's folder. Raises UserError.

    Without `secrets`, files and variables that hold some need not be there yet; the array is not fit to be served.
    """
    return parse_array_text(read_array_text(path), name=str(path), folder=path.parent, secrets=secrets)


def read_array_text(path: Path) -> str:
    """The text of an array file. Raises UserError."""
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise UserError(
            f"{path}: {error.strerror or error}",
            "`linerate array serve --example` prints a file to start from",
        ) from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not a text file", "an array file is TOML in UTF-8") from error


def parse_array_text(
    text: str, *, name: str = "array file", folder: Path = Path(), secrets: bool = True
) -> ArrayConfig:
    """The array that a TOML text describes; messages show `name`. Raises UserError."""
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{name}: {error}", "the file must be TOML: key = value") from error
    lines = _with_plain_keys(key_lines(text))
    _resolve(raw, _Source(name, lines, folder), secrets)
    try:
        return ArrayConfig.model_validate(raw)
    except ValidationError as error:
        raise UserError(_first_fault(error, name, lines), _hint(error)) from error


class _Source:
    """The source location of a mistake."""

    def __init__(self, name: str, lines: dict[_Path, int], folder: Path) -> None:
        self.name = name
        self.lines = lines
        self.folder = folder

    def error(self, where: _Path, message: str, hint: str) -> UserError:
        return UserError(f"{self.name}:{_line_of(where, self.lines)}: {_dotted(where)}: {message}", hint)


def _resolve(raw: dict[str, Any], source: _Source, secrets: bool) -> None:
    """Replaces what only the file form knows: sizes as text, secrets from elsewhere, paths from the file's folder."""
    for where, table in _all_tables(raw, ()):
        for key in [key for key in table if key in _AS_TEXT]:
            _resolve_amount(table, key, where, source)
        for key in SECRET_KEYS:
            _resolve_secret(table, key, where, source, secrets)
        for key in _PATHS & table.keys():
            if isinstance(table[key], str):
                table[key] = str((source.folder / table[key]).absolute())


def _all_tables(value: object, where: _Path) -> Iterator[tuple[_Path, dict[str, Any]]]:
    """Every table below a value, with its path."""
    if isinstance(value, dict):
        yield where, value
        items: Iterable[tuple[str | int, object]] = list(value.items())
    elif isinstance(value, list):
        items = enumerate(value)
    else:
        return
    for key, item in items:
        yield from _all_tables(item, (*where, key))


def _resolve_amount(table: dict[str, Any], key: str, where: _Path, source: _Source) -> None:
    plain, form, factors = _AS_TEXT[key]
    if plain in table:
        raise source.error((*where, key), f"{key} and {plain} say the same twice", "keep one of them")
    given = table.pop(key)
    match = _AMOUNT.fullmatch(given.strip()) if isinstance(given, str) else None
    if match is None or match["unit"].lower() not in factors:
        raise source.error((*where, key), f"{given!r} is not a {form[0]}", form[1])
    amount = float(match["number"]) * factors[match["unit"].lower()]
    table[plain] = int(amount) if factors is _BYTES else amount


def _resolve_secret(chap: dict[str, Any], key: str, where: _Path, source: _Source, secrets: bool) -> None:
    given = [name for name in (key, f"{key}_file", f"{key}_env") if name in chap]
    if len(given) > 1:
        raise source.error((*where, given[1]), f"{' and '.join(given)} are given", "keep one of them")
    for name in given:
        if name == key:
            continue
        place = str(chap.pop(name))
        if not secrets:
            chap[key] = f"the {key}, not read"
            continue
        try:
            is_file = name.endswith("_file")
            chap[key] = secret_in_file(source.folder / place) if is_file else secret_in_variable(place)
        except SecretError as fault:
            raise source.error((*where, name), fault.message, fault.hint) from fault


def key_lines(text: str) -> dict[_Path, int]:
    """Line of every table header and key in a TOML text, by path; later tables of an array count up."""
    lines: dict[_Path, int] = {}
    counts: dict[_Path, int] = {}
    table: _Path = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            names = [name.strip('"') for name in header[2].split(".")]
            table = _table_path(names, counts, grows=header[1] == "[[")
            lines.setdefault(table, number)
        elif key := _KEY.match(line):
            lines.setdefault((*table, key[1]), number)
    return lines


def _with_plain_keys(lines: dict[_Path, int]) -> dict[_Path, int]:
    """The same, with the plain keys that only the text forms of a file stand for."""
    both = dict(lines)
    for where, line in lines.items():
        key = str(where[-1])
        plain = _AS_TEXT[key][0] if key in _AS_TEXT else key.removesuffix("_file").removesuffix("_env")
        both.setdefault((*where[:-1], plain), line)
    return both


def _table_path(names: list[str], counts: dict[_Path, int], *, grows: bool) -> _Path:
    path: _Path = ()
    for place, name in enumerate(names):
        path = (*path, name)
        if grows and place == len(names) - 1:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, counts[path])
    return path


def _line_of(where: _Path, lines: dict[_Path, int]) -> int:
    """The line of the longest part of the path that is in the file, or of the first key below it."""
    for length in range(len(where), 0, -1):
        if found := [line for path, line in lines.items() if path[:length] == where[:length]]:
            return min(found)
    return 1


def _dotted(where: _Path) -> str:
    text = ""
    for part in where:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _first_fault(error: ValidationError, name: str, lines: dict[_Path, int]) -> str:
    fault = error.errors(include_input=False, include_url=False)[0]
    place = (*fault["loc"], *fault.get("ctx", {}).get("at", ()))
    where: _Path = tuple(part for part in place if part not in (TEXT, TABLE))
    message = fault_text(fault["msg"])
    at = f"{name}:{_line_of(where, lines)}"
    return f"{at}: {_dotted(where)}: {message}" if where else f"{at}: {message}"


def _hint(error: ValidationError) -> str:
    fault = error.errors(include_input=False, include_url=False)[0]
    if fault["type"] == "extra_forbidden":
        return "`linerate array serve --example` shows every key"
    if fault.get("ctx", {}).get("pattern") == NAME_PATTERN:
        return f"a name has {NAME_FORM}"
    return "`linerate array serve --example` prints a file that works"
