"""URLs of iSCSI LUNs; `linerate.workload.url` gives the form."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast
from urllib.parse import unquote_to_bytes

from pydantic import SecretStr

from linerate.errors import UserError
from linerate.workload.spec import SessionSpec
from linerate.workload.url.target import Target

ISCSI_PORT = 3260
ISCSI_FORM = "iscsi://[user%secret@]host[:port]/target/lun, as in iscsi://10.0.0.5/iqn.2026-11.lab:disk/0"
PORTAL_FORM = "iscsi://[user%secret@]host[:port][/target]"
NAME_FORM = "iqn.YYYY-MM.reversed.domain[:text], eui. and 16 hex digits, or naa. and 16 or 32 hex digits"
_LARGEST_LUN = 16383
"""Flat space addressing, SAM-5 4.7.7.4."""
_LONGEST_NAME_BYTES = 223
"""RFC 7143 4.2.7.1."""
_QUERY_KEYS = ("header_digest", "target_user", "target_password")

_IQN = re.compile(r"iqn\.\d{4}-(?:0[1-9]|1[0-2])\.[a-z0-9][a-z0-9.-]*(?::[^\s/]+)?")
_EUI = re.compile(r"eui\.[0-9a-f]{16}")
_NAA = re.compile(r"naa\.(?:[0-9a-f]{16}|[0-9a-f]{32})")
_HOST_NAME = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?\.?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class IscsiPortal:
    """A portal, or one target behind it, and how to log in there."""

    place: str
    """host:port."""
    target: str | None
    login: SecretStr
    """`user%secret@`, or empty."""

    @property
    def shown(self) -> str:
        """Its URL as it may be printed."""
        return self._with_login("")

    @property
    def url(self) -> str:
        """Its URL with the secret, for the data plane only."""
        return self._with_login(self.login.get_secret_value())

    def _with_login(self, login: str) -> str:
        return f"iscsi://{login}{self.place}{f'/{self.target}' if self.target else ''}"


def parse_iscsi_portal(text: str, environ: Mapping[str, str]) -> IscsiPortal:
    """The portal that a URL without a LUN names. The environment fills in credentials.

    Raises UserError without showing a secret.
    """
    shown = without_secret(text)
    if not text.lower().startswith("iscsi://"):
        raise UserError(f"{shown}: this is no iSCSI portal", f"write {PORTAL_FORM}")
    body, question, _ = text[len("iscsi://") :].partition("?")
    if question:
        raise UserError(f"{shown}: nothing is known after ?", f"write {PORTAL_FORM}")
    user, secret, place = _login_and_place(shown, body, environ)
    portal, _, path = place.partition("/")
    name, slash, _ = path.partition("/")
    if slash:
        raise UserError(f"{shown}: a LUN cannot be asked for alone", f"leave it out: {PORTAL_FORM}")
    target = _target_name(shown, name) if name else None
    login = SecretStr(f"{user}%{secret}@" if user and secret else "")
    return IscsiPortal(_portal(shown, portal), target, login)


def parse_iscsi(text: str, environ: Mapping[str, str]) -> Target:
    """The LUN that a URL names; the environment fills in credentials. Raises UserError without showing a secret."""
    shown = without_secret(text)
    if text[len("iscsi:") :][:2] != "//":
        raise UserError(f"{shown}: // is missing after iscsi:", f"write {ISCSI_FORM}")
    body, _, query = text[len("iscsi://") :].partition("?")
    user, secret, place = _login_and_place(shown, body, environ)
    portal, _, path = place.partition("/")
    name, _, lun = path.partition("/")
    fields = _parse_query(shown, query)
    mutual_user = fields.get("target_user") or environ.get("LIBISCSI_CHAP_TARGET_USERNAME", "")
    mutual_secret = fields.get("target_password") or environ.get("LIBISCSI_CHAP_TARGET_PASSWORD", "")
    mutual = bool(user and secret and mutual_user and mutual_secret)
    digest = cast("Literal['none', 'crc32c'] | None", fields.get("header_digest"))
    return Target(
        kind="iscsi",
        is_raw=True,
        url=f"iscsi://{_portal(shown, portal)}/{_target_name(shown, name)}/{_lun(shown, lun)}",
        user=user or None if secret else None,
        secret=SecretStr(secret) if user and secret else None,
        mutual_user=mutual_user if mutual else None,
        mutual_secret=SecretStr(mutual_secret) if mutual else None,
        iscsi=SessionSpec(header_digest=digest),
    )


def _login_and_place(shown: str, body: str, environ: Mapping[str, str]) -> tuple[str, str, str]:
    """User, secret, and what follows them."""
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
    return user, secret, place


def _split_login(login: str) -> tuple[str, str]:
    mark = "%" if "%" in login else ":"
    user, _, secret = login.partition(mark)
    return user, secret


def without_secret(text: str) -> str:
    """A target as it may be shown: user, secret and query values of a URL replaced by stars."""
    scheme, colon, _ = text.partition("://")
    if not colon or scheme.lower() not in ("iscsi", "smb"):
        return "***@" + text.rpartition("@")[2] if "%" in text and "@" in text else text
    at = text.rfind("@")
    start = len(scheme) + len(colon)
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
    wrong = UserError(
        f"{shown}: {portal!r} is not a portal", "write host:port; an IPv6 address as [::1]:3260"
    )
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
            raise UserError(f"{shown}: {host!r} is not a host name or address", f"write {ISCSI_FORM}")
        port_text = port_text if colon else str(ISCSI_PORT)
    if not (port_text.isascii() and port_text.isdigit() and 0 < int(port_text[:6]) < 65536):
        raise UserError(
            f"{shown}: {port_text!r} is not a port", f"a port is 1 to 65535, default {ISCSI_PORT}"
        )
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
