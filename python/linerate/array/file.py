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
from linerate.toml_lines import Key, key_lines, line_of

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

EXAMPLE = "all-keys"
"""The example that shows every key."""


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
    return placed_array_file(path, secrets=secrets)[0]


def placed_array_file(path: Path, *, secrets: bool = True) -> tuple[ArrayConfig, Places]:
    """The same, and where its keys are. Raises UserError."""
    text = read_array_text(path)
    places = Places(str(path), text)
    return _parsed(text, places, path.parent, secrets), places


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
    return _parsed(text, Places(name, text), folder, secrets)


def _parsed(text: str, places: Places, folder: Path, secrets: bool) -> ArrayConfig:
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{places.name}: {error}", "the file must be TOML: key = value") from error
    _resolve(raw, places, folder, secrets)
    try:
        return ArrayConfig.model_validate(raw)
    except ValidationError as error:
        raise _first_fault(error, places) from error


class Places:
    """Where the keys of an array file are, and the entries of its lists."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self._lines = _with_plain_keys(key_lines(text))

    def of(self, *where: str | int) -> str:
        """File, line and key, as messages begin. What the file does not have is in the nearest table around it."""
        at = f"{self.name}:{line_of(self._lines, where) or 1}"
        return f"{at}: {_dotted(where)}" if where else at

    def error(self, where: Key, message: str, hint: str) -> UserError:
        """The mistake of a user at a place."""
        return UserError(f"{self.of(*where)}: {message}", hint)


def _resolve(raw: dict[str, Any], places: Places, folder: Path, secrets: bool) -> None:
    """Replaces what only the file form knows: sizes as text, secrets from elsewhere, paths from the file's folder."""
    for where, table in _all_tables(raw, ()):
        for key in [key for key in table if key in _AS_TEXT]:
            _resolve_amount(table, key, where, places)
        for key in SECRET_KEYS:
            _resolve_secret(table, key, where, places, folder if secrets else None)
        for key in _PATHS & table.keys():
            if isinstance(table[key], str):
                table[key] = str((folder / table[key]).absolute())


def _all_tables(value: object, where: Key) -> Iterator[tuple[Key, dict[str, Any]]]:
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


def _resolve_amount(table: dict[str, Any], key: str, where: Key, places: Places) -> None:
    plain, form, factors = _AS_TEXT[key]
    if plain in table:
        raise places.error((*where, key), f"{key} and {plain} say the same twice", "keep one of them")
    given = table.pop(key)
    match = _AMOUNT.fullmatch(given.strip()) if isinstance(given, str) else None
    if match is None or match["unit"].lower() not in factors:
        raise places.error((*where, key), f"{given!r} is not a {form[0]}", form[1])
    amount = float(match["number"]) * factors[match["unit"].lower()]
    table[plain] = int(amount) if factors is _BYTES else amount


def _resolve_secret(chap: dict[str, Any], key: str, where: Key, places: Places, folder: Path | None) -> None:
    """Without a folder, nothing is read."""
    given = [name for name in (key, f"{key}_file", f"{key}_env") if name in chap]
    if len(given) > 1:
        raise places.error((*where, given[1]), f"{' and '.join(given)} are given", "keep one of them")
    for name in given:
        if name == key:
            continue
        place = str(chap.pop(name))
        if folder is None:
            chap[key] = f"the {key}, not read"
            continue
        try:
            is_file = name.endswith("_file")
            chap[key] = secret_in_file(folder / place) if is_file else secret_in_variable(place)
        except SecretError as fault:
            raise places.error((*where, name), fault.message, fault.hint) from fault


def _with_plain_keys(lines: dict[Key, int]) -> dict[Key, int]:
    """The same, with the plain keys that only the text forms of a file stand for."""
    both = dict(lines)
    for where, line in lines.items():
        key = where[-1]
        if isinstance(key, int):
            continue
        plain = _AS_TEXT[key][0] if key in _AS_TEXT else key.removesuffix("_file").removesuffix("_env")
        both.setdefault((*where[:-1], plain), line)
    return both


def _dotted(where: Key) -> str:
    text = ""
    for part in where:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _first_fault(error: ValidationError, places: Places) -> UserError:
    fault = error.errors(include_input=False, include_url=False)[0]
    place = (*fault["loc"], *fault.get("ctx", {}).get("at", ()))
    where = tuple(part for part in place if part not in (TEXT, TABLE))
    return places.error(where, fault_text(fault["msg"]), _hint(error))


def _hint(error: ValidationError) -> str:
    fault = error.errors(include_input=False, include_url=False)[0]
    if fault["type"] == "extra_forbidden":
        return "`linerate array serve --example` shows every key"
    if fault.get("ctx", {}).get("pattern") == NAME_PATTERN:
        return f"a name has {NAME_FORM}"
    return "`linerate array serve --example` prints a file that works"
