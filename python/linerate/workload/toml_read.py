"""Reads a TOML text into a model and says, for every mistake, file, line and key: workloads, topologies, studies."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from linerate.errors import UserError, fault_text
from linerate.toml_lines import Key, key_lines, line_of
from linerate.workload.problems import Problems, SourceLocation
from linerate.workload.text import read_content

Model = TypeVar("Model", bound=BaseModel)
_FILE_BYTES_MAX = 16 << 20
_KEY_PARTS_MAX = 64
_LONG_KEY = re.compile(rf"(?<![\w\"'-])(?:[\w\"'-]++[ \t]*+\.[ \t]*+){{{_KEY_PARTS_MAX}}}")
"""Of keys with very many parts tomllib takes time and memory by their square."""


def read_text(path: Path, kind: str) -> str:
    """The text of a file; `kind` says what it should be. Raises UserError."""
    hint = f"give the path of a {kind}"
    content = read_content(path, _FILE_BYTES_MAX, unreadable=hint, too_large=hint)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not a text file", hint) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def checked(text: str, shown: str, model: type[Model], kind: str, problems: Problems) -> Model:
    """The text as a `model`; `shown` is the file's name in messages.

    Raises UserError with everything that is wrong, what `problems` holds already included.
    """
    data = _parsed(text, shown, kind)
    _refuse_other_kind(data, shown, kind, set(model.model_fields))
    try:
        return model.model_validate(data)
    except ValidationError as error:
        lines = key_lines(text)
        for one in error.errors():
            key = _key_in(data, one["loc"])
            if one["type"] == "too_short" and key == one["loc"] and one["input"]:
                continue  # only valid elements were counted; the others have errors of their own
            what, accepted = _explain(one["type"], one["msg"], key, model)
            named = f"{key_text(key)}: {what}" if key else what
            problems.error(SourceLocation(shown, line_of(lines, key)), named, accepted)
        problems.raise_if_any()
        raise


_KINDS = {
    "an array file": ({"targets"}, "linerate array serve"),
    "a topology": ({"switch", "host"}, "linerate lab up"),
    "a study": ({"san", "baseline"}, "linerate study run"),
    "a workload": ({"stream", "volume"}, "linerate run"),
}
"""TOML files of Linerate: the keys that no other kind has together, and the command that takes them."""


def _refuse_other_kind(data: dict[str, Any], shown: str, kind: str, known: set[str]) -> None:
    """Raises UserError for a file of another kind: each of its keys would be reported as unknown."""
    for other, (keys, command) in _KINDS.items():
        if keys <= data.keys() and not keys & known:
            raise UserError(f"{shown}: this is {other}, not a {kind}", f"use it with: {command} {shown}")


def key_text(key: Key) -> str:
    """A key as people write it: `host[0].port`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in key).lstrip(".")


def _parsed(text: str, shown: str, kind: str) -> dict[str, Any]:
    if (found := _LONG_KEY.search(text)) is not None:
        place = SourceLocation(shown, text.count("\n", 0, found.start()) + 1)
        raise UserError(f"{place}: a key of more than {_KEY_PARTS_MAX} parts", f"the file must be a {kind}")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        place = SourceLocation(shown, int(at.group(1)) if at else text.count("\n") + 1)
        message = re.sub(r" \(at .*\)$", "", str(error))
        raise UserError(
            f"{place}: {message}", "the file must be TOML: key = value, text in quotes"
        ) from error
    except RecursionError as error:
        raise UserError(f"{shown}: nested too deeply", f"the file must be a {kind}") from error


def _key_in(data: object, loc: Sequence[str | int]) -> Key:
    """The part of pydantic's location that is a path in the file, and the key that is missing or wrong at
    its end."""
    key: Key = ()
    for part in loc:
        if isinstance(data, dict):
            if part in data:
                key, data = (*key, part), data[part]
            elif part == loc[-1]:
                return (*key, part)
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            key, data = (*key, part), data[part]
    return key


def _explain(kind: str, message: str, key: Key, model: type[BaseModel]) -> tuple[str, str]:
    if kind == "extra_forbidden":
        known = list(_model_at(model, key[:-1]).model_fields)
        close = difflib.get_close_matches(str(key[-1]), known, n=1)
        return fault_text(message), f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"
    if kind == "missing":
        return "missing", "it must be given"
    what, _, accepted = fault_text(message).partition("; ")
    return what[:1].lower() + what[1:], accepted


def _model_at(model: type[BaseModel], key: Key) -> type[BaseModel]:
    """The model of the table at a key; the nearest one around it where the annotation names none."""
    for part in key:
        if field := model.model_fields.get(str(part)):
            model = next(_models_in(field.annotation), model)
    return model


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)
