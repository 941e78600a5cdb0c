"""Paths and multipath settings in a TOML file and on the command line.

    paths = ["10.1.0.1 -> 10.1.0.10", "p1 -> 10.1.1.10:3261 standby"]
    paths = [{ name = "left", source_address = "10.1.0.1", portal = "10.1.0.10", sessions = 2 }]
    multipath = { policy = "least_queue_depth", failback = "10s", no_path_queue = "forever" }

Before the arrow is the start of a path: a local IP address, or an interface's name; * leaves it to the routes.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, GetJsonSchemaHandler, PositiveInt, WithJsonSchema
from pydantic_core import CoreSchema

from linerate.workload.spec import Connections, FrozenSpec, MultipathPolicy, MultipathSpec, PathSpec
from linerate.workload.toml_fields import TIME_SCHEMA, Bytes, Seconds, seconds

ISCSI_PORT = 3260
PATH_FORM = (
    '"10.1.0.1 -> 10.1.0.10:3260", where needed with "standby", "weight 10", "sessions 2" '
    'or "connections 2" behind it'
)
FOR_EVER = "forever"
TIMEOUT_S_MIN = 0.05
TIME_S_MAX = 1e6
WEIGHT_MAX = (1 << 32) - 1
_LAYOUTS = ("one-to-one", "mesh", "partial")
_HOST = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?\.?", re.IGNORECASE)
_INTERFACE = re.compile(r"[^\s/:*>]{1,15}")
_PLACE_FIELD = re.compile(r"\{n[^}]*\}")
"""{n} and {n-1}, which become numbers."""


def _portal(text: str) -> str:
    """`host:port` of an address with or without its port."""
    host, port = text, str(ISCSI_PORT)
    if match := re.fullmatch(r"\[(.*)\](?::(.*))?", text):
        host, port = match[1], match[2] or port
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    if not (port.isdecimal() and 0 < int(port) < 1 << 16):
        raise ValueError(f"{port!r} is no TCP port; 1 to 65535")
    try:
        host = str(ipaddress.ip_address(host))
    except ValueError:
        if not _HOST.fullmatch(host):
            raise ValueError(f"{text!r} is not an address; write 10.1.0.10 or 10.1.0.10:3260") from None
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise ValueError(f"{text!r} is not a local IP address; write 10.1.0.1") from None


def _where_filled(check: Callable[[str], str]) -> AfterValidator:
    """A text that holds {n} is checked once the number is in it."""
    return AfterValidator(lambda text: text if _PLACE_FIELD.search(text) else check(text))


class PathTable(FrozenSpec):
    """One of `paths`: a way to the volume."""

    name: str | None = Field(default=None, min_length=1)
    """In events and results; made from where it starts and ends if not given."""
    portal: Annotated[str, _where_filled(_portal)] | None = None
    """Address of the array's end, with its port unless that is 3260; the target's own if not given."""
    source_address: Annotated[str, _where_filled(_address)] | None = None
    """Local IP address that it starts from."""
    interface: str | None = Field(default=None, min_length=1, max_length=15)
    """Local interface whose link it depends on."""
    sessions: PositiveInt = 1
    """Sessions on this path; each counts as a path of its own, name#1, name#2, ..."""
    connections: Connections = 1
    """Connections of each session (MC/S), which count as one path."""
    weight: int = Field(default=0, ge=0, le=WEIGHT_MAX)
    """For the policy weighted_paths: the path with the least weight is used."""
    standby: bool = False
    """Used only while no other path lives."""


def parse_path(value: object) -> PathTable:
    """A path as text or as table. Raises ValueError, whose text says what is accepted behind a semicolon."""
    if not isinstance(value, str):
        return PathTable.model_validate(value)
    if value in _LAYOUTS:
        raise ValueError(
            f"{value} is a layout of a topology, which a workload does not know; list the paths, or run a study"
        )
    words = value.replace("->", " -> ").split()
    fields: dict[str, Any] = {}
    while words and words[-1] != "->":
        if words[-1] == "standby":
            fields["standby"] = True
            words = words[:-1]
        elif len(words) > 1 and words[-2] in ("weight", "sessions", "connections") and words[-1].isdecimal():
            fields[words[-2]] = int(words[-1])
            words = words[:-2]
        else:
            break
    match words:
        case [portal] if portal != "->":
            return PathTable(portal=portal, **fields)
        case [start, "->", portal] if portal != "->":
            return PathTable(portal=portal, **(fields | _start(start)))
    raise ValueError(f"{value!r} is not a path; write {PATH_FORM}")


def _start(text: str) -> dict[str, str]:
    if text == "*":
        return {}
    if _PLACE_FIELD.search(text) or ":" in text or text.replace(".", "").isdecimal():
        return {"source_address": text}
    if not _INTERFACE.fullmatch(text):
        raise ValueError(f"{text!r} is neither a local IP address nor an interface; write {PATH_FORM}")
    return {"interface": text}


def _paths(value: object) -> object:
    if isinstance(value, str):
        parse_path(value)  # a layout's name has an answer of its own
        raise ValueError(f"a list of paths is expected; write [{PATH_FORM}]")
    return value


class _TextOrTable:
    """In a JSON Schema a path is a text or a table."""

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"anyOf": [{"type": "string"}, handler(schema)]}


Path = Annotated[
    PathTable,
    BeforeValidator(parse_path),
    _TextOrTable(),
]
PathsField = Annotated[tuple[Path, ...], BeforeValidator(_paths)]


def filled_paths(tables: Sequence[PathTable], fill: Callable[[str], str]) -> tuple[PathSpec, ...]:
    """The paths of one volume. `fill` puts the volume's number in place of {n}. Raises ValueError."""
    specs = []
    for table in tables:
        portal = _portal(fill(table.portal)) if table.portal else None
        source = _address(fill(table.source_address)) if table.source_address else None
        ends = (table.interface or source, portal and portal.removesuffix(f":{ISCSI_PORT}"))
        name = fill(table.name) if table.name else "-".join(end for end in ends if end) or "path"
        values = table.model_dump() | {"name": name, "portal": portal, "source_address": source}
        specs.append(PathSpec(**values))
    return tuple(specs)


def _timeout(value: float) -> float:
    if not TIMEOUT_S_MIN <= value <= TIME_S_MAX:
        raise ValueError(f"{value:g} s is out of range; {TIMEOUT_S_MIN:g} s to {TIME_S_MAX:g} s")
    return value


def _failback(value: object) -> object:
    return value if value in ("immediate", "manual") else seconds(value)


def _queue(value: object) -> object:
    return value if value == FOR_EVER else seconds(value)


_Failback = Annotated[
    Literal["immediate", "manual"] | float,
    BeforeValidator(_failback),
    WithJsonSchema({"anyOf": [{"enum": ["immediate", "manual"]}, TIME_SCHEMA]}),
]
_Queue = Annotated[
    Literal["forever"] | float,
    BeforeValidator(_queue),
    WithJsonSchema({"anyOf": [{"const": FOR_EVER}, TIME_SCHEMA]}),
]
_Timeout = Annotated[Seconds, AfterValidator(_timeout)]


class MultipathTable(FrozenSpec):
    """multipath: how I/O is spread over the paths of a volume; what is not given is the file's or the default."""

    policy: MultipathPolicy | None = None
    """Which path an I/O takes; default round_robin."""
    ios_per_path: PositiveInt | None = None
    """Round robin moves on after so many I/Os; default 1."""
    bytes_per_path: Annotated[Bytes, Field(gt=0)] | None = None
    """Round robin moves on after so many bytes, instead of I/Os."""
    failback: _Failback | None = None
    """When a better path that is back is used again: immediate (default), manual, or after a time."""
    path_timeout: _Timeout | None = None
    """A path over which nothing is heard for so long is dead; default 1 s."""
    checker_interval: _Timeout | None = None
    """Pause between attempts to bring a path back; default 1 s."""
    no_path_queue: _Queue | None = None
    """How long I/O waits when no path is left, or "forever"; default 30 s; 0: it fails at once."""

    def over(self, base: MultipathSpec) -> MultipathSpec:
        """`base` with what is given here."""
        given = {name: value for name, value in self.model_dump().items() if value is not None}
        update = {_FIELDS.get(name, name): value for name, value in given.items()}
        if update.get("no_path_queue_s") == FOR_EVER:
            update["no_path_queue_s"] = None
        return base.model_copy(update=update)


_FIELDS = {
    "path_timeout": "path_timeout_s",
    "checker_interval": "checker_interval_s",
    "no_path_queue": "no_path_queue_s",
}
"""What the run calls otherwise."""
