"""What `linerate array check` says about portals: addresses and interfaces that this host does not have."""

from __future__ import annotations

import errno
import re
import socket
from collections.abc import Iterator
from ipaddress import IPv6Address
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linerate.array import ArrayConfig
    from linerate.array.file import Places

_LOCAL = re.compile(r"\|-- (\S+)\n\s+/32 host LOCAL")


def strange_portals(config: ArrayConfig, places: Places) -> Iterator[tuple[str, str]]:
    """Each portal that cannot listen on this host, and why, with its place in the array file and what the host has."""
    from linerate.array.config import Portal

    for index, given in enumerate(config.portals):
        at = places.of("portals", index)
        portal = given if isinstance(given, Portal) else Portal(address=given)
        if portal.interface is not None:
            names = [name for _, name in socket.if_nameindex()]
            if portal.interface not in names:
                has = ", ".join(sorted(names))
                yield portal.place, f"{at}: this host has no such interface; it has {has}"
        elif portal.address is not None and not _is_here(portal.address):
            has = ", ".join(host_addresses())
            yield portal.place, f"{at}: this host does not have the address; it has {has}"


def host_addresses(root: Path = Path("/")) -> list[str]:
    """The addresses of this host's interfaces: IPv4, then IPv6 without those of a link."""
    old = set(_LOCAL.findall(_text(root / "proc/net/fib_trie")))
    lines = [line.split() for line in _text(root / "proc/net/if_inet6").splitlines()]
    new = [IPv6Address(bytes.fromhex(fields[0])) for fields in lines if fields]
    ordered = sorted(old, key=lambda address: tuple(map(int, address.split("."))))
    return [*ordered, *(f"[{address}]" for address in sorted(new) if not address.is_link_local)]


def _text(path: Path) -> str:
    try:
        return path.read_text("ascii")
    except OSError:
        return ""


def _is_here(address: str) -> bool:
    """Whether the kernel binds to it; false only if it says that there is no such address."""
    host = address.rpartition(":")[0].strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((host, 0))
    except OSError as error:
        return error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
    return True
