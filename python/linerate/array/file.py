"""Reads an array file (TOML) and says, for every mistake, file, line and key."""

from __future__ import annotations

import os
import re
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from linerate.array.config import TABLE, TEXT, ArrayConfig
from linerate.errors import UserError

_SIZE = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[kmgt]?)(?:i?b)?", re.IGNORECASE)
_FACTOR = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_HEADER = re.compile(r"\s*(\[\[?)\s*([\w.\"-]+)\s*\]")
_KEY = re.compile(r"\s*\"?([\w-]+)\"?\s*=")

EXAMPLE = "example.toml"

_Path = tuple[str | int, ...]


def example_text() -> str:
    """A commented array file that works as it is."""
    return resources.files("linerate.array").joinpath(EXAMPLE).read_text("ascii")


def load_array_file(path: Path) -> ArrayConfig:
    """The array that a TOML file describes. Paths in it count from the file's folder. Raises UserError."""
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise UserError(
            f"{path}: {error.strerror or error}",
            "`linerate array serve --example` prints a file to start from",
        ) from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not a text file", "an array file is TOML in UTF-8") from error
    return parse_array_text(text, name=str(path), folder=path.parent)


def parse_array_text(text: str, *, name: str = "array file", folder: Path = Path()) -> ArrayConfig:
    """The array that a TOML text describes; `name` stands in messages. Raises UserError."""
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{name}: {error}", "the file must be TOML: key = value") from error
    lines = key_lines(text)
    _resolve(raw, _Source(name, lines, folder))
    try:
        return ArrayConfig.model_validate(raw)
    except ValidationError as error:
        raise UserError(_first_fault(error, name, lines), _hint(error)) from error


class _Source:
    """Where a mistake stands."""

    def __init__(self, name: str, lines: dict[_Path, int], folder: Path) -> None:
        self.name = name
        self.lines = lines
        self.folder = folder

    def error(self, where: _Path, message: str, hint: str) -> UserError:
        return UserError(f"{self.name}:{_line_of(where, self.lines)}: {_dotted(where)}: {message}", hint)


def _resolve(raw: dict[str, Any], source: _Source) -> None:
    """Replaces what only the file form knows: sizes as text, secrets from elsewhere, paths from the file's folder."""
    for number, target in enumerate(_tables(raw.get("targets"))):
        chap = target.get("chap")
        if isinstance(chap, dict):
            for key in ("secret", "mutual_secret"):
                _resolve_secret(chap, key, ("targets", number, "chap"), source)
        for place, volume in enumerate(_tables(target.get("volumes"))):
            where: _Path = ("targets", number, "volumes", place)
            _resolve_size(volume, where, source)
            if isinstance(volume.get("path"), str):
                volume["path"] = str((source.folder / volume["path"]).absolute())


def _tables(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _resolve_size(volume: dict[str, Any], where: _Path, source: _Source) -> None:
    if "size" not in volume:
        return
    if "size_bytes" in volume:
        raise source.error((*where, "size"), "size and size_bytes say the same twice", "keep one of them")
    size = volume.pop("size")
    match = _SIZE.fullmatch(size.strip()) if isinstance(size, str) else None
    if match is None:
        raise source.error(
            (*where, "size"), f"{size!r} is no size", 'write a number with k, m, g or t: size = "8g"'
        )
    volume["size_bytes"] = int(float(match["number"]) * _FACTOR[match["unit"].lower()])


def _resolve_secret(chap: dict[str, Any], key: str, where: _Path, source: _Source) -> None:
    given = [name for name in (key, f"{key}_file", f"{key}_env") if name in chap]
    if len(given) > 1:
        raise source.error((*where, given[1]), f"{' and '.join(given)} are given", "keep one of them")
    if f"{key}_file" in chap:
        path = source.folder / str(chap.pop(f"{key}_file"))
        try:
            chap[key] = path.read_text("utf-8").rstrip("\r\n")
        except OSError as error:
            raise source.error(
                (*where, f"{key}_file"), f"{path}: {error.strerror}", "name a readable file"
            ) from error
    elif f"{key}_env" in chap:
        variable = str(chap.pop(f"{key}_env"))
        if variable not in os.environ:
            raise source.error(
                (*where, f"{key}_env"), f"{variable} is not set", f"export {variable} and try again"
            )
        chap[key] = os.environ[variable]


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
    """The line of the longest part of the path that stands in the file."""
    for length in range(len(where), 0, -1):
        if where[:length] in lines:
            return lines[where[:length]]
    return 1


def _dotted(where: _Path) -> str:
    text = ""
    for part in where:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _first_fault(error: ValidationError, name: str, lines: dict[_Path, int]) -> str:
    fault = error.errors(include_input=False, include_url=False)[0]
    where: _Path = tuple(part for part in fault["loc"] if part not in (TEXT, TABLE))
    message = (
        "unknown key" if fault["type"] == "extra_forbidden" else fault["msg"].removeprefix("Value error, ")
    )
    at = f"{name}:{_line_of(where, lines)}"
    return f"{at}: {_dotted(where)}: {message}" if where else f"{at}: {message}"


def _hint(error: ValidationError) -> str:
    fault = error.errors(include_input=False, include_url=False)[0]
    if fault["type"] == "extra_forbidden":
        return "`linerate array serve --example` shows every key"
    return "`linerate array serve --example` prints a file that works"
