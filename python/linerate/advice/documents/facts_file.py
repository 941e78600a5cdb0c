"""Facts as a file: what a Windows host's script wrote, or what `linerate advise --show-facts` printed elsewhere."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, ValidationError

from linerate.advice.facts import (
    THIS_HOST,
    AuditSubject,
    FactValue,
    Kind,
    SanFactSheet,
    SessionFact,
    System,
    VolumePath,
)
from linerate.advice.windows.read import SCHEMA as WINDOWS
from linerate.advice.windows.read import read_windows
from linerate.errors import UserError
from linerate.model import Model
from linerate.workload.text import read_content, text_of

SCHEMA = "linerate.facts/1"
_FILE_BYTES_MAX = 32 << 20
_HINT = "give a file that `linerate advise --show-facts` or the script of `linerate advise --facts-script` has written"


class _Subject(Model):
    model_config = ConfigDict(extra="forbid", strict=True)

    kind: Kind
    name: str
    system: System
    facts: dict[str, FactValue] = Field(default_factory=dict)
    unknown: dict[str, str] = Field(default_factory=dict)


class _Session(Model):
    model_config = ConfigDict(extra="forbid", strict=True)

    host: str
    port: str
    portal: str
    array: str


class _Path(Model):
    model_config = ConfigDict(extra="forbid", strict=True)

    volume: str
    host: str
    port: str
    portal: str
    active: bool | None


class _Document(Model):
    model_config = ConfigDict(extra="forbid", strict=True)

    version: Literal["linerate.facts/1"] = Field(alias="schema")
    subjects: list[_Subject]
    sessions: list[_Session] = Field(default_factory=list)
    paths: list[_Path] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)


def read_facts(path: Path) -> SanFactSheet:
    """The facts of a file; a host that names itself only as the one that it was read on has the file's name.

    Raises UserError when it is none.
    """
    document = _parsed(path)
    if document.get("schema") == WINDOWS:
        return read_windows(document)
    if document.get("schema") != SCHEMA:
        raise UserError(f"{path}: its schema is neither {SCHEMA} nor {WINDOWS}", _HINT)
    try:
        read = _Document.model_validate_json(json.dumps(document))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"][:4]))
        raise UserError(f"{path}: {place[:80]}: {first['msg']}", _HINT) from error

    def host(name: str) -> str:
        return f"host of {path.name}" if name == THIS_HOST else name

    return SanFactSheet(
        tuple(
            AuditSubject(
                one.kind,
                host(one.name) if one.kind == "host" else one.name,
                one.system,
                one.facts,
                one.unknown,
            )
            for one in read.subjects
        ),
        tuple(SessionFact(host(one.host), one.port, one.portal, one.array) for one in read.sessions),
        tuple(VolumePath(one.volume, host(one.host), one.port, one.portal, one.active) for one in read.paths),
        tuple(read.notes),
    )


def facts_object(sheet: SanFactSheet) -> dict[str, Any]:
    """The facts as `read_facts` reads them."""
    return {
        "schema": SCHEMA,
        "subjects": [
            {
                "kind": one.kind,
                "name": one.name,
                "system": one.system,
                "facts": dict(one.facts),
                "unknown": dict(one.unknown),
            }
            for one in sheet.subjects
        ],
        "sessions": [
            {"host": one.host, "port": one.port, "portal": one.portal, "array": one.array}
            for one in sheet.sessions
        ],
        "paths": [
            {
                "volume": one.volume,
                "host": one.host,
                "port": one.port,
                "portal": one.portal,
                "active": one.active,
            }
            for one in sheet.paths
        ],
        "notes": list(sheet.notes),
    }


def _parsed(path: Path) -> Mapping[str, Any]:
    data = read_content(path, _FILE_BYTES_MAX, unreadable=_HINT, too_large=_HINT)
    try:
        document = json.loads(text_of(path, data))
    except UserError as error:
        raise UserError(error.message, _HINT) from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not JSON", _HINT) from error
    if not isinstance(document, dict):
        raise UserError(f"{path}: not an object", _HINT)
    return document
