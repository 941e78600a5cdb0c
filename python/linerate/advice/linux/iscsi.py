"""iSCSI sessions of a Linux host, from the kernel's files; and portals that its initiator has on record."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address

from linerate.advice.linux.network import PortAddress
from linerate.advice.linux.source import LinuxSource
from linerate.errors import HostError

_HOST = re.compile(r"/(host\d+)/(session\d+)/")
_RECORD = re.compile(r"([\d.]+|\[[0-9a-fA-F:]+\]):(\d+),\S+ (\S+)")
_SOFTWARE = ("iscsi_tcp", "iser", "")
_CLASS = "sys/class"


@dataclass(frozen=True, slots=True)
class KernelSession:
    """A session that is logged in. `port` is empty where the kernel does not say over which port it goes."""

    name: str
    target: str
    portal: str
    port: str
    own_address: str
    driver: str
    disks: tuple[str, ...]

    @property
    def offloaded(self) -> bool:
        """Whether the adapter runs iSCSI itself."""
        return self.driver not in _SOFTWARE


@dataclass(frozen=True, slots=True)
class PortalRecord:
    """A portal that a discovery has found."""

    portal: str
    tcp_port: int
    target: str


def kernel_sessions(source: LinuxSource, addresses: Sequence[PortAddress]) -> list[KernelSession]:
    """The sessions of the host."""
    devices = {one.address: one.device for one in addresses}
    known = {one.device for one in addresses}
    disks = _disks(source)
    found = []
    for name in source.names(f"{_CLASS}/iscsi_session"):
        place = _HOST.search(source.link(f"{_CLASS}/iscsi_session/{name}") + "/")
        host = place[1] if place else ""
        connection = f"{_CLASS}/iscsi_connection/connection{name.removeprefix('session')}:0"
        portal = (
            source.maybe(f"{connection}/persistent_address") or source.maybe(f"{connection}/address") or ""
        )
        own = source.maybe(f"{_CLASS}/iscsi_host/{host}/ipaddress") or ""
        device = source.maybe(f"{_CLASS}/iscsi_host/{host}/netdev") or ""
        found.append(
            KernelSession(
                name,
                source.maybe(f"{_CLASS}/iscsi_session/{name}/targetname") or "",
                portal,
                device if device in known else devices.get(own, ""),
                own,
                source.maybe(f"{_CLASS}/scsi_host/{host}/proc_name") or "",
                tuple(disks.get(name, ())),
            )
        )
    return found


def _disks(source: LinuxSource) -> dict[str, list[str]]:
    """Session -> its disks; partitions are left out."""
    found: dict[str, list[str]] = {}
    for name in source.names(f"{_CLASS}/block"):
        place = source.link(f"{_CLASS}/block/{name}")
        session = _HOST.search(place)
        if session and place.endswith(f"/block/{name}"):
            found.setdefault(session[2], []).append(name)
    return found


def portal_records(source: LinuxSource) -> list[PortalRecord]:
    """The portals of the initiator's records. Raises HostError where iscsiadm cannot be used."""
    found = []
    for line in source.run(("iscsiadm", "-m", "node")).splitlines():
        if match := _RECORD.fullmatch(line.strip()):
            try:
                address = str(ip_address(match[1].strip("[]")))
            except ValueError:
                continue
            found.append(PortalRecord(address, min(int(match[2]), 65_535), match[3]))
    return found


def offload_mtu(source: LinuxSource, driver: str) -> int | None:
    """The smallest MTU of the interfaces of an offload engine; None where none is shown."""
    del driver
    folder = f"{_CLASS}/iscsi_iface"
    found = [source.number(f"{folder}/{name}/mtu") for name in source.names(folder)]
    return min((mtu for mtu in found if mtu is not None), default=None)


def target_addresses(source: LinuxSource) -> set[str]:
    """Addresses on which the kernel's own target listens (configfs); empty without a target."""
    base = "sys/kernel/config/target/iscsi"
    found = set()
    for target in source.names(base):
        for group in source.names(f"{base}/{target}"):
            found |= {
                one.rpartition(":")[0].strip("[]") for one in source.names(f"{base}/{target}/{group}/np")
            }
    return found


def records_or_reason(source: LinuxSource) -> tuple[list[PortalRecord], str]:
    """The records, or none and why."""
    try:
        return portal_records(source), ""
    except HostError as error:
        return [], error.message
