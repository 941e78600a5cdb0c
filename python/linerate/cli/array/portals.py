"""What `linerate array check` says about portals: addresses and interfaces that this host does not have."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linerate.array import ArrayConfig
    from linerate.array.file import Places
    from linerate.results.environment import IpAddress


def strange_portals(config: ArrayConfig, places: Places) -> Iterator[tuple[str, str]]:
    """Each portal that cannot listen on this host, and why, with its place in the array file and what the host has."""
    from linerate.array.config import Portal
    from linerate.results.environment import host_addresses

    for index, given in enumerate(config.portals):
        at = places.of("portals", index)
        portal = given if isinstance(given, Portal) else Portal(address=given)
        if portal.interface is not None:
            names = [name for _, name in socket.if_nameindex()]
            if portal.interface not in names:
                has = ", ".join(sorted(names))
                yield portal.place, f"{at}: this host has no such interface; it has {has}"
        elif portal.address is not None and not _is_here(portal.address):
            has = ", ".join(_shown(one) for one in host_addresses() if not one.is_link_local)
            yield portal.place, f"{at}: this host does not have the address; it has {has}"


def _shown(address: IpAddress) -> str:
    return f"[{address}]" if address.version == 6 else str(address)


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
