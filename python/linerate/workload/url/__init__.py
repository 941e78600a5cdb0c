"""Where a volume is: an iSCSI LUN, a file, a block device, or nothing at all.

    iscsi://[user%secret@]host[:port]/target/lun[?header_digest=none|crc32c&target_user=..&target_password=..]
    file:/path   /path   ./path   (a block device is a path, too)
    null:8g
    array:NAME       a volume of an array file, in virtual time

The iSCSI form is the one that libiscsi's tools and QEMU take, read by the same rules: `user:secret@` works as
well, the secret may hold `/`, `%xx` is decoded in the target's name only, and LIBISCSI_CHAP_USERNAME,
_PASSWORD, _TARGET_USERNAME and _TARGET_PASSWORD in the environment stand in for what the URL leaves out. The
secret leaves the URL here: what is passed on, shown and stored has none.
"""

from __future__ import annotations

import ipaddress
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast
from urllib.parse import unquote_to_bytes

from pydantic import SecretStr

from linerate.errors import UserError
from linerate.workload.spec import SessionSpec
from linerate.workload.units import SIZE_FORM, parse_size
from linerate.workload.url.host_like import url_meant

ISCSI_PORT = 3260
ISCSI_FORM = "iscsi://[user%secret@]host[:port]/target/lun, as in iscsi://10.0.0.5/iqn.2026-11.lab:disk/0"
TARGET_FORM = "iscsi://host[:port]/target/lun, a path such as ./disk.img or /dev/sdb, or null:SIZE"
NAME_FORM = "iqn.YYYY-MM.reversed.domain[:text], eui. and 16 hex digits, or naa. and 16 or 32 hex digits"
_LARGEST_LUN = 16383
"""Flat space addressing, SAM-5 4.7.7.4."""
_LONGEST_NAME_BYTES = 223
"""RFC 7143 4.2.7.1."""
_NULL_SIZE_BYTES = 8 << 30
_DEV = "/dev"
NO_DEVICE = "name a device that is there (lsblk lists them); no file is made in /dev"
"""The way out where a device is missing."""
_QUERY_KEYS = ("header_digest", "target_user", "target_password")

_IQN = re.compile(r"iqn\.\d{4}-(?:0[1-9]|1[0-2])\.[a-z0-9][a-z0-9.-]*(?::[^\s/]+)?")
_EUI = re.compile(r"eui\.[0-9a-f]{16}")
_NAA = re.compile(r"naa\.(?:[0-9a-f]{16}|[0-9a-f]{32})")
_HOST_NAME = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?\.?", re.IGNORECASE)
_WINDOWS_DEVICE = re.compile(r"\\\\\.\\|//\./|[a-z]:[\\/]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Target:
    """A place for a volume. `url` is canonical, absolute and free of user and secret."""

    kind: Literal["iscsi", "file", "block", "null", "array"]
    url: str
    user: str | None = None
    secret: SecretStr | None = None
    mutual_user: str | None = None
    mutual_secret: SecretStr | None = None
    iscsi: SessionSpec = field(default_factory=SessionSpec)

    @property
    def is_raw(self) -> bool:
        """A device, as opposed to a file or the null target."""
        return self.kind in ("iscsi", "block")


def parse_target(
    text: str, *, folder: Path | None = None, environ: Mapping[str, str] | None = None
) -> Target:
    """The target that `text` names. Relative paths start at `folder` (default: the current directory).

    Raises UserError; the message names the part that is wrong and never shows a secret.
    """
    scheme, colon, rest = text.partition(":")
    scheme = scheme.lower()
    if colon and scheme == "iscsi":
        return _parse_iscsi(text, os.environ if environ is None else environ)
    if colon and scheme == "null":
        return _parse_null(text, rest)
    if colon and scheme == "array":
        if not rest:
            raise UserError(f"{text}: the volume's name is missing", "write array:NAME")
        return Target("array", f"array:{rest}")
    if colon and scheme == "file":
        return _parse_path(text, rest.removeprefix("//"), folder)
    if _WINDOWS_DEVICE.match(text):
        raise UserError(
            f"{text}: a Windows device, which this host does not have",
            "say where it is with --map, for example --map '*'=iscsi://10.0.0.5/iqn.2026-11.lab:disks/{n-1}",
        )
    if colon and re.fullmatch(r"[a-z][a-z0-9+.-]*", scheme) and rest.startswith("//"):
        raise UserError(f"{scheme}://: no such kind of target", f"write {TARGET_FORM}")
    if (meant := url_meant(text, os.path.abspath(folder or "."))) is not None:
        shown = "***@" + text.rpartition("@")[2] if "@" in text else text
        raise UserError(
            f"{shown}: a host or an iSCSI name is no target by itself",
            f"write {meant}; `linerate discover` lists an array's targets and LUNs; a file of this name is ./{shown}",
        )
    return _parse_path(text, text, folder)


def _parse_null(text: str, size: str) -> Target:
    try:
        size_bytes = parse_size(size) if size else _NULL_SIZE_BYTES
    except ValueError as error:
        hint = f"write null:SIZE, where SIZE is {SIZE_FORM}"
        raise UserError(f"{text}: {size!r} is not a size", hint) from error
    if size_bytes < 1:
        raise UserError(f"{text}: the size must be more than 0", "write for example null:8g")
    return Target("null", f"null:{size_bytes}")


def _parse_path(text: str, path: str, folder: Path | None) -> Target:
    if not path or "\0" in path or "\n" in path:
        raise UserError(f"{text!r}: no path", f"write {TARGET_FORM}")
    base = os.path.abspath(folder or ".")
    full = os.path.normpath(os.path.join(base, os.path.expanduser(path)))
    mode = _mode(full)
    if stat.S_ISDIR(mode):
        raise UserError(f"{full}: a directory", "name a file in it; it is made if the volume has a size")
    return Target("block" if stat.S_ISBLK(mode) else "file", f"file:{full}")


def in_dev(path: str) -> bool:
    """Whether a path leads into /dev, also over links: no file is ever made there."""
    place = os.path.realpath(path)
    try:
        own = os.stat(os.path.dirname(place)).st_dev == os.stat(_DEV).st_dev
    except (OSError, ValueError):
        own = False
    return own or place.startswith(f"{_DEV}/")


def _mode(path: str) -> int:
    """The file's type bits, 0 if it does not exist."""
    try:
        return os.stat(path).st_mode
    except (OSError, ValueError):
        return 0


def _parse_iscsi(text: str, environ: Mapping[str, str]) -> Target:
    shown = without_secret(text)
    if text[len("iscsi:") :][:2] != "//":
        raise UserError(f"{shown}: // is missing after iscsi:", f"write {ISCSI_FORM}")
    body, _, query = text[len("iscsi://") :].partition("?")
    login, at, place = body.partition("@")
    if not at:
        login, place = "", body
    if "@" in place:
        raise UserError(
            f"{shown}: more than one @", "a secret with @ cannot stand in a URL: put it in a TOML file"
        )
    user, secret = _split_login(login)
    user = user or environ.get("LIBISCSI_CHAP_USERNAME", "")
    secret = secret or environ.get("LIBISCSI_CHAP_PASSWORD", "")
    if login and not (user and secret):
        raise UserError(f"{shown}: user and secret go together", f"write {ISCSI_FORM}")
    portal, _, path = place.partition("/")
    name, _, lun = path.partition("/")
    fields = _parse_query(shown, query)
    mutual_user = fields.get("target_user") or environ.get("LIBISCSI_CHAP_TARGET_USERNAME", "")
    mutual_secret = fields.get("target_password") or environ.get("LIBISCSI_CHAP_TARGET_PASSWORD", "")
    mutual = bool(user and secret and mutual_user and mutual_secret)
    digest = cast("Literal['none', 'crc32c'] | None", fields.get("header_digest"))
    return Target(
        kind="iscsi",
        url=f"iscsi://{_portal(shown, portal)}/{_target_name(shown, name)}/{_lun(shown, lun)}",
        user=user or None if secret else None,
        secret=SecretStr(secret) if user and secret else None,
        mutual_user=mutual_user if mutual else None,
        mutual_secret=SecretStr(mutual_secret) if mutual else None,
        iscsi=SessionSpec(header_digest=digest),
    )


def _split_login(login: str) -> tuple[str, str]:
    mark = "%" if "%" in login else ":"
    user, _, secret = login.partition(mark)
    return user, secret


def without_secret(text: str) -> str:
    """A target as it may be shown: user, secret and query values of a URL replaced by stars."""
    if not text.lower().startswith("iscsi:"):
        return "***@" + text.rpartition("@")[2] if "%" in text and "@" in text else text
    at = text.rfind("@")
    start = len("iscsi://")
    rest = text[start:] if at < 0 else "***" + text[at:]
    place, question, query = rest.partition("?")
    return text[:start] + place + question + re.sub(r"=[^&]*", "=***", query)


def _parse_query(shown: str, query: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for part in filter(None, query.split("&")):
        key, equals, value = part.partition("=")
        if key not in _QUERY_KEYS or not equals:
            raise UserError(f"{shown}: {key!r} is not known after ?", f"known are {', '.join(_QUERY_KEYS)}")
        fields[key] = value
    if fields.get("header_digest", "none") not in ("none", "crc32c"):
        raise UserError(f"{shown}: no such header_digest", "write header_digest=none or header_digest=crc32c")
    return fields


def _portal(shown: str, portal: str) -> str:
    """host:port, with an IPv6 address in brackets."""
    wrong = UserError(f"{shown}: {portal!r} is no portal", "write host:port; an IPv6 address as [::1]:3260")
    if portal.startswith("["):
        address, bracket, rest = portal[1:].partition("]")
        if not bracket or rest[:1] not in ("", ":"):
            raise wrong
        host, port_text = _ipv6(shown, address), rest[1:] if rest else str(ISCSI_PORT)
    else:
        host, colon, port_text = portal.partition(":")
        if ":" in port_text:
            raise wrong
        if not _HOST_NAME.fullmatch(host):
            raise UserError(f"{shown}: {host!r} is no host name or address", f"write {ISCSI_FORM}")
        port_text = port_text if colon else str(ISCSI_PORT)
    if not (port_text.isascii() and port_text.isdigit() and 0 < int(port_text[:6]) < 65536):
        raise UserError(f"{shown}: {port_text!r} is no port", f"a port is 1 to 65535, default {ISCSI_PORT}")
    return f"{host}:{int(port_text)}"


def _ipv6(shown: str, host: str) -> str:
    try:
        return f"[{ipaddress.IPv6Address(host)}]"
    except ValueError as error:
        raise UserError(f"{shown}: {host!r} is no IPv6 address", "write for example [::1]:3260") from error


def _target_name(shown: str, encoded: str) -> str:
    if not encoded:
        raise UserError(f"{shown}: the target's name is missing", f"write {ISCSI_FORM}")
    name = unquote_to_bytes(encoded).decode("utf-8", "replace").lower()
    known = any(form.fullmatch(name) for form in (_IQN, _EUI, _NAA))
    if not known or len(name.encode()) > _LONGEST_NAME_BYTES:
        raise UserError(f"{shown}: {encoded!r} is no iSCSI name", f"write {NAME_FORM} (RFC 7143 4.2.7)")
    return name


def _lun(shown: str, lun: str) -> int:
    if not (lun.isascii() and lun.isdigit() and int(lun[:9]) <= _LARGEST_LUN):
        what = f"{lun!r} is no LUN" if lun else "the LUN is missing after the target's name"
        raise UserError(f"{shown}: {what}", f"a LUN is a number, 0 to {_LARGEST_LUN}; write {ISCSI_FORM}")
    return int(lun)
