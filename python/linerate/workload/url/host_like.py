"""Targets that look like a host, an address or an iSCSI name without `iscsi://`: never meant as the name of a file."""

from __future__ import annotations

import ipaddress
import os
import re

_LABEL = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_DOTTED = re.compile(rf"{_LABEL}(?:\.{_LABEL})+\.?", re.IGNORECASE)
_PORT = re.compile(r"[0-9]{1,5}")
_NAME = re.compile(r"(?:iqn|eui|naa)\.[^/]*", re.IGNORECASE)
_PATH = re.compile(r"~|\.{0,2}/")
_DOMAIN = re.compile(
    r"com|net|org|edu|gov|mil|info|local|lan|lab|internal|corp|home|intranet|private|localdomain|arpa|io|dev|cloud|eu"
)
_FILE = re.compile(
    r"img|raw|bin|dat|data|disk|dsk|vol|file|iso|vhdx?|vmdk|qcow2?|vdi|bak|old|new|tmp|test|txt|out|log|copy"
)


def url_meant(text: str, folder: str) -> str | None:
    """The URL that a target was meant as, TARGET-NAME and LUN standing for what it lacks; None: it is a path.

    `./name` and `/name` are paths, and so is what exists, unless it can be nothing but an address.
    """
    if _PATH.match(text):
        return None
    _, at, place = text.rpartition("@")
    parts = place.split("/")
    named = next((number for number, part in enumerate(parts) if _NAME.fullmatch(part)), None)
    portal = parts[0]
    if named is None and not _is_address(portal):
        exists = os.path.lexists(os.path.join(folder, text))
        if exists or not _is_host_name(portal):
            return None
    if named == 0:
        portal, rest = "HOST", parts
    else:
        rest = parts[1 if named is None else named :]
    name = rest[0] if rest and _NAME.fullmatch(rest[0]) else "TARGET-NAME"
    lun = rest[1] if len(rest) > 1 and rest[1] else "0"
    return f"iscsi://{'USER%SECRET@' if at else ''}{_bracketed(portal)}/{name}/{lun}"


def _is_address(portal: str) -> bool:
    """An address with or without a port, or a name with one."""
    host, colon, port = portal.rpartition(":")
    if colon and _PORT.fullmatch(port) and host and ":" not in host:
        return True
    bare = (
        portal[1:].partition("]")[0] if portal.startswith("[") else host if "." in host and colon else portal
    )
    try:
        ipaddress.ip_address(bare)
    except ValueError:
        return False
    return True


def _is_host_name(portal: str) -> bool:
    """A name with dots that ends as domains do and not as files do."""
    if portal.lower() == "localhost":
        return True
    if not _DOTTED.fullmatch(portal):
        return False
    labels = portal.rstrip(".").lower().split(".")
    last = labels[-1]
    if _DOMAIN.fullmatch(last):
        return True
    return len(labels) > 2 and last.isalpha() and len(last) > 1 and not _FILE.fullmatch(last)


def _bracketed(portal: str) -> str:
    return f"[{portal}]" if portal.count(":") > 1 and not portal.startswith("[") else portal
