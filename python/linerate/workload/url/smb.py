"""URLs of files on SMB shares; `linerate.workload.url` gives the form."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from urllib.parse import quote, unquote_to_bytes

from pydantic import SecretStr

from linerate.errors import UserError
from linerate.workload.url.iscsi import without_secret
from linerate.workload.url.target import Target

SMB_PORT = 445
SMB_SERVER_FORM = "smb://[[domain;]user[%secret]@]host[:port], as in smb://backup@nas"
SMB_FOLDER_FORM = "smb://[[domain;]user[%secret]@]host[:port]/share/folder, as in smb://backup@nas/disks/tree"
SMB_FORM = "smb://[[domain;]user[%secret]@]host[:port]/share/file, as in smb://backup@nas/disks/test.img"
_HOST_NAME = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?\.?", re.IGNORECASE)
_FORBIDDEN = re.compile(r'[\x00-\x1f"*:<>?\\|]')
"""Of the names of files (MS-FSCC 2.1.5)."""
_UNC = re.compile(
    r"(?:(?:smb|cifs):)?(?:\\\\|//)(?P<host>[^\\/.?@][^\\/@]*)(?P<path>(?:[\\/].*)?)",
    re.DOTALL | re.IGNORECASE,
)
_LONGEST_SHARE = 80
"""MS-SMB2 2.2.9, with MS-SRVS's limit of names."""


def smb_url_meant(text: str) -> str | None:
    r"""The URL of a server, share or file in another form: \\host\share\file, //host/share/file, cifs://host/share."""
    if (found := _UNC.fullmatch(text)) is None or text.lower().startswith("smb://"):
        return None
    return f"smb://user@{found['host']}{quote(found['path'].replace(chr(92), '/').rstrip('/'))}"


def parse_smb(text: str, environ: Mapping[str, str]) -> Target:
    """The file that a URL names; the environment fills in user and password. Raises UserError without showing a
    secret."""
    shown = without_secret(text)
    if text[len("smb:") :][:2] != "//":
        raise UserError(f"{shown}: // is missing after smb:", f"write {smb_url_meant(text) or SMB_FORM}")
    authority, rest = _parts(shown, text[len("smb://") :])
    user, secret, server = _login(shown, authority, SMB_FORM, environ)
    share, _, path = rest.partition("/")
    return Target(
        kind="smb",
        url=f"smb://{_server(shown, server)}/{quote(_share(shown, share))}/{quote(_path(shown, path))}",
        user=user,
        secret=secret,
    )


def parse_smb_folder(text: str, environ: Mapping[str, str]) -> Target:
    """The folder that a URL names, which may be the share itself; as in `parse_smb`."""
    shown = without_secret(text)
    scheme, separator, rest = text.partition("://")
    if scheme.lower() != "smb" or not separator:
        raise UserError(f"{shown}: this is no address of a folder of a share", f"write {SMB_FOLDER_FORM}")
    authority, place = _parts(shown, rest)
    user, secret, server = _login(shown, authority, SMB_FOLDER_FORM, environ)
    share, _, path = place.partition("/")
    path = path.rstrip("/")
    inner = f"/{quote(_path(shown, path))}" if path else ""
    return Target(
        kind="smb",
        url=f"smb://{_server(shown, server)}/{quote(_share(shown, share))}{inner}",
        user=user,
        secret=secret,
    )


def parse_smb_server(text: str, environ: Mapping[str, str]) -> Target:
    """The server that a URL without share and file names, as in `parse_smb`."""
    shown = without_secret(text)
    scheme, separator, rest = text.partition("://")
    other = UserError(f"{shown}: this is no address of a server alone", f"write {SMB_SERVER_FORM}")
    if scheme.lower() != "smb" or not separator:
        raise other
    authority, path = _parts(shown, rest)
    if path:
        raise other
    user, secret, server = _login(shown, authority, SMB_SERVER_FORM, environ)
    return Target(kind="smb", url=f"smb://{_server(shown, server)}", user=user, secret=secret)


def _parts(shown: str, text: str) -> tuple[str, str]:
    """What is before the first slash of a URL, user and server, and what follows it.

    Raises UserError for a URL whose password seems to hold a slash: what follows that would be taken for server, share
    and file, and be shown and sent as such.
    """
    authority, _, rest = text.partition("/")
    login, at, _ = authority.rpartition("@")
    _, mark, after = rest.rpartition("@")
    if at:
        # host/share/file after another @: the first one may be of the password, too
        is_cut = "/" in after.partition("/")[2] and ("%" in login or ":" in login)
    else:
        _, colon, port = authority.rpartition(":")
        is_port = not colon or port.isdigit() or authority.startswith("[")
        if "%" in authority and not mark:
            raise UserError("smb://***: there is no @ between password and host", f"write {SMB_FORM}")
        is_cut = "%" in authority or not is_port
    if mark and is_cut:
        raise UserError(
            f"{shown}: there is an @ after the first /, and a password with / cannot stand in a URL",
            "set LINERATE_SMB_PASSWORD, or write user and secret in a TOML file; in the name of a share or a file "
            "write @ as %40",
        )
    return authority, rest


def _login(
    shown: str, authority: str, form: str, environ: Mapping[str, str]
) -> tuple[str | None, SecretStr | None, str]:
    """User, password and server of a URL; the environment fills in the first two."""
    login, at, server = authority.rpartition("@")
    user, _, secret = login.partition("%") if "%" in login else login.partition(":")
    if at and not user:
        raise UserError(f"{shown}: the user is missing before @", f"write {form}")
    secret = secret or environ.get("LINERATE_SMB_PASSWORD", "")
    user = user or environ.get("LINERATE_SMB_USER", "")
    if not user:
        return None, None, server
    if not secret:
        raise UserError(
            f"{shown}: the password of {user} is missing",
            "set LINERATE_SMB_PASSWORD, or write user and secret in a TOML file; Kerberos tickets are not used",
        )
    return user.replace(";", "\\", 1), SecretStr(secret), server


def _server(shown: str, server: str) -> str:
    """host:port, with an IPv6 address in brackets."""
    if server.startswith("["):
        address, bracket, port = server[1:].partition("]")
        colon, port = port[:1], port[1:]
        if not bracket or colon not in ("", ":"):
            raise UserError(f"{shown}: {server!r} is no server", f"write {SMB_FORM}")
        try:
            host = f"[{ipaddress.IPv6Address(address)}]"
        except ValueError as error:
            raise UserError(
                f"{shown}: {address!r} is no IPv6 address", "write for example [::1]:445"
            ) from error
    else:
        if server.count(":") > 1:
            raise UserError(
                f"{shown}: an IPv6 address is written in brackets", "write for example smb://[::1]/share/file"
            )
        host, colon, port = server.partition(":")
        if not _HOST_NAME.fullmatch(host):
            raise UserError(f"{shown}: {host!r} is not a host name or address", f"write {SMB_FORM}")
    port = port if colon else str(SMB_PORT)
    if not (port.isascii() and port.isdigit() and 0 < int(port[:6]) < 65536):
        raise UserError(f"{shown}: {port!r} is not a port", f"a port is 1 to 65535, default {SMB_PORT}")
    return f"{host}:{int(port)}"


def _share(shown: str, encoded: str) -> str:
    share = _decoded(encoded)
    if not share:
        raise UserError(f"{shown}: the share is missing after the host", f"write {SMB_FORM}")
    if _FORBIDDEN.search(share) or len(share) > _LONGEST_SHARE:
        raise UserError(f"{shown}: {share!r} is not the name of a share", f"write {SMB_FORM}")
    return share


def _path(shown: str, encoded: str) -> str:
    path = _decoded(encoded)
    if not path or path.endswith("/"):
        raise UserError(f"{shown}: the file is missing after the share", f"write {SMB_FORM}")
    parts = path.split("/")
    if wrong := [part for part in parts if part in ("", ".", "..") or _FORBIDDEN.search(part)]:
        raise UserError(f"{shown}: {wrong[0]!r} is not the name of a file or folder", f"write {SMB_FORM}")
    return path


def _decoded(encoded: str) -> str:
    return unquote_to_bytes(encoded).decode("utf-8", "replace")
