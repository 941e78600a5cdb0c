"""The kinds of volume URLs: one row for each scheme. No other module knows which schemes there are.

A new protocol needs a module with its parser, and a row here; in Rust a row in `crates/load/src/backend/router.rs`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from linerate.errors import UserError
from linerate.quantity import SIZE_FORM, parse_size
from linerate.workload.url.iscsi import parse_iscsi
from linerate.workload.url.path import parse_path
from linerate.workload.url.smb import parse_smb
from linerate.workload.url.target import Target

_NULL_SIZE_BYTES = 8 << 30


@dataclass(frozen=True, slots=True)
class UrlText:
    """A URL to parse: as written, the part after its scheme, where relative paths start, the environment."""

    text: str
    rest: str
    folder: Path | None
    environ: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class UrlKind:
    """A URL scheme of volumes.

    remote: the volume is on another host, which the URL names; its contents are read through the data plane.
    paths: it can have several paths, and options of sessions.
    """

    scheme: str
    parse: Callable[[UrlText], Target]
    remote: bool = False
    paths: bool = False


def _parse_null(reading: UrlText) -> Target:
    text, size = reading.text, reading.rest
    try:
        size_bytes = parse_size(size) if size else _NULL_SIZE_BYTES
    except ValueError as error:
        hint = f"write null:SIZE, where SIZE is {SIZE_FORM}"
        raise UserError(f"{text}: {size!r} is not a size", hint) from error
    if size_bytes < 1:
        raise UserError(f"{text}: the size must be more than 0", "write for example null:8g")
    return Target("null", f"null:{size_bytes}")


def _parse_array(reading: UrlText) -> Target:
    if not reading.rest:
        raise UserError(f"{reading.text}: the volume's name is missing", "write array:NAME")
    return Target("array", array_url(reading.rest))


_KINDS = (
    UrlKind("iscsi", lambda reading: parse_iscsi(reading.text, reading.environ), remote=True, paths=True),
    UrlKind("smb", lambda reading: parse_smb(reading.text, reading.environ), remote=True),
    UrlKind(
        "file", lambda reading: parse_path(reading.text, reading.rest.removeprefix("//"), reading.folder)
    ),
    UrlKind("null", _parse_null),
    UrlKind("array", _parse_array),
)
_BY_SCHEME = {kind.scheme: kind for kind in _KINDS}


def kind_of(url: str) -> UrlKind | None:
    """The kind of a URL by its scheme; None for any other text."""
    scheme, colon, _ = url.partition(":")
    return _BY_SCHEME.get(scheme.lower()) if colon else None


def is_remote(url: str) -> bool:
    """Whether the volume is on another host; see `UrlKind`."""
    return (kind := kind_of(url)) is not None and kind.remote


def is_share(url: str) -> bool:
    """Whether the volume is a file on an SMB share."""
    return (kind := kind_of(url)) is not None and kind.scheme == "smb"


def has_paths(url: str) -> bool:
    """Whether the volume can have several paths; see `UrlKind`."""
    return (kind := kind_of(url)) is not None and kind.paths


def portal_of(url: str) -> str | None:
    """host:port of a remote volume."""
    return urlsplit(url).netloc if is_remote(url) else None


def path_of(url: str) -> str | None:
    """The path of a file or a block device."""
    return url.removeprefix("file:") if url.startswith("file:") else None


def null_bytes(url: str) -> int | None:
    """The size of a null volume."""
    return int(url.removeprefix("null:")) if url.startswith("null:") else None


def array_url(name: str) -> str:
    """The URL of an array file's volume, in virtual time."""
    return f"array:{name}"
