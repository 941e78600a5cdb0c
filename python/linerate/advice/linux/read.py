"""Reads the facts of a Linux host: its SAN ports, its paths, its volumes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Address, IPv4Network, ip_address

from linerate.advice.derive import PathKey, derived
from linerate.advice.facts import AuditSubject, FactValue, SanFactSheet, SessionFact, VolumePath
from linerate.advice.linux.iscsi import (
    KernelSession,
    PortalRecord,
    kernel_sessions,
    offload_mtu,
    records_or_reason,
    target_addresses,
)
from linerate.advice.linux.network import (
    PortAddress,
    PortReading,
    add_setting,
    addresses,
    port_subjects,
    round_trips_us,
    route,
)
from linerate.advice.linux.source import LinuxSource
from linerate.advice.linux.volumes import HostVolume, host_volumes
from linerate.advice.outline import as_text
from linerate.errors import HostError, UserError
from linerate.host import Shown

_HEADERS_BYTES = 28  # IPv4 and ICMP
_SMALL_BYTES = 56
_TRIALS_MAX = 64
"""Paths that are tried, all at once: a silent portal takes 1.5 s."""
_RESYNC = re.compile(r"\b(resync|recovery|check|reshape)\s*=")


def read_linux(source: LinuxSource | None = None, devices: Sequence[str] = ()) -> SanFactSheet:
    """The facts of this host. `devices` are ports to the SAN; without them those that carry iSCSI sessions.

    Raises HostError where a named device does not exist.
    """
    host = source or LinuxSource()
    notes: list[str] = []
    known = _addresses(host, notes)
    sessions = kernel_sessions(host, known)
    records, no_records = records_or_reason(host)
    ports = _ports(host, devices, sessions, notes)
    values = host.settings(ports)
    offloaded = {one.port: one.driver for one in sessions if one.offloaded and one.port}
    subjects = port_subjects(host, ports, offloaded, values)
    subjects = [_with_offload(host, one, offloaded) for one in subjects]
    volumes = host_volumes(host, sessions)
    paths = _paths(host, sessions, records, known, values)
    session_facts = [
        SessionFact(host.name, one.port, one.portal, one.target)
        for one in sessions
        if one.port and one.portal
    ]
    sheet = SanFactSheet(
        (
            _host(host, values, known, sessions, records, no_records),
            *subjects,
            *paths,
            *(one.subject for one in volumes),
            *_arrays(sessions, records, volumes),
        ),
        tuple(session_facts),
        tuple(_volume_paths(host, sessions, volumes)),
        tuple(notes),
    )
    return derived(sheet, policies={one.name: one.policy for one in volumes})


def _addresses(source: LinuxSource, notes: list[str]) -> list[PortAddress]:
    try:
        return addresses(source)
    except HostError as error:
        notes.append(f"addresses are not known: {error.message}")
        return []


def _ports(
    source: LinuxSource, devices: Sequence[str], sessions: Sequence[KernelSession], notes: list[str]
) -> list[str]:
    """The ports to the SAN, and a note where they are a guess."""
    there = source.names("sys/class/net")
    if missing := [name for name in devices if name not in there]:
        raise UserError(f"there is no device {missing[0]}", f"there is {', '.join(there)}")
    if devices:
        return list(dict.fromkeys(devices))
    if used := sorted({one.port for one in sessions if one.port}):
        return used
    adapters = [name for name in there if source.link(f"sys/class/net/{name}/device")]
    notes.append(
        f"no iSCSI session of the kernel is logged in, so every adapter is looked at: {', '.join(adapters) or 'none'}; "
        "name the ports to the SAN with --device"
    )
    return adapters


def _with_offload(source: LinuxSource, port: AuditSubject, offloaded: dict[str, str]) -> AuditSubject:
    if port.name not in offloaded:
        return port
    mtu = offload_mtu(source, offloaded[port.name])
    if mtu is None:
        return port.having(
            {}, {"offload_mtu": "the offload engine does not show its MTU; see its vendor's tool"}
        )
    return port.having({"offload_mtu": mtu})


def _host(
    source: LinuxSource,
    values: Iterable[Shown],
    known: Sequence[PortAddress],
    sessions: Sequence[KernelSession],
    records: Sequence[PortalRecord],
    no_records: str,
) -> AuditSubject:
    reading = PortReading()
    for one in values:
        if not one.device:
            add_setting(reading, one)
    facts, unknown = reading.facts, reading.unknown
    syncing = _RESYNC.findall(source.maybe("proc/mdstat") or "")
    facts["raid_syncing"] = ", ".join(sorted(set(syncing))) or "none"
    own = {one.address for one in known}
    listening = {address for address in target_addresses(source) if address not in ("0.0.0.0", "::", "")}
    gone = sorted(address for address in listening if ":" not in address and address not in own)
    facts["serves_target"] = bool(listening)
    facts["target_addresses_gone"] = ", ".join(gone) or "none"
    facts["sessions"] = len(sessions)
    if records:
        facts["array_ports"] = len({one.portal for one in records})
    else:
        unknown["array_ports"] = (
            f"the array's portals are not known: {no_records or 'iscsiadm has no record'}"
        )
    return AuditSubject("host", source.name, "linux", facts, unknown)


def _paths(
    source: LinuxSource,
    sessions: Sequence[KernelSession],
    records: Sequence[PortalRecord],
    known: Sequence[PortAddress],
    values: Sequence[Shown],
) -> list[AuditSubject]:
    """A subject for each session, and for each portal on record without one; tried side by side."""
    mtus = {one.device: one.value for one in values if one.setting.name == "mtu"}
    try:
        rtts, no_rtt = round_trips_us(source), ""
    except HostError as error:
        rtts, no_rtt = {}, error.message
    used = [(one.port, one.portal, 3260) for one in sessions if one.portal]
    idle = [
        ("", one.portal, one.tcp_port)
        for one in records
        if one.portal not in {each.portal for each in sessions}
    ]
    own = {one.portal: one.own_address for one in sessions}

    def look(trial: tuple[str, str, int]) -> AuditSubject:
        port, portal, tcp_port = trial
        subject = _path(source, port, portal, tcp_port, mtus.get(port))
        subject = subject.having(_subnet(portal, known))
        rtt = rtts.get((own.get(portal, ""), portal))
        return subject.having(
            {"rtt_us": rtt} if rtt else {}, {} if rtt else {"rtt_us": no_rtt or "no round trip is known"}
        )

    trials = list(dict.fromkeys([*used, *idle]))[:_TRIALS_MAX]
    if not trials:
        return []
    with ThreadPoolExecutor(len(trials)) as pool:
        return list(pool.map(look, trials))


def _path(source: LinuxSource, port: str, portal: str, tcp_port: int, mtu: object) -> AuditSubject:
    facts: dict[str, FactValue] = {}
    unknown: dict[str, str] = {}
    try:
        address = ip_address(portal)
        way = route(source, portal)
        facts["routed"] = bool(as_text(way.get("gateway")) or way.get("via"))
    except ValueError:
        reason = "the portal has no numeric address"
        return AuditSubject(
            "path",
            PathKey(port, portal).name,
            "linux",
            {},
            dict.fromkeys(("routed", "carries_mtu", "portal_answers"), reason),
        )
    except HostError as error:
        unknown["routed"] = error.message
    facts["portal_answers"] = source.connects(portal, tcp_port)
    if not isinstance(mtu, int) or not isinstance(address, IPv4Address):
        unknown["carries_mtu"] = (
            "the MTU of the port is not known" if isinstance(address, IPv4Address) else "only IPv4 is tried"
        )
        return AuditSubject("path", PathKey(port, portal).name, "linux", facts, unknown)
    small = _pings(source, port, portal, _SMALL_BYTES)
    if small is True:
        facts["carries_mtu"] = _pings(source, port, portal, mtu - _HEADERS_BYTES) is True
    elif small is False:
        unknown["carries_mtu"] = "the portal answers no ping, so frame sizes cannot be tried"
    else:
        unknown["carries_mtu"] = small
    return AuditSubject("path", PathKey(port, portal).name, "linux", facts, unknown)


def _pings(source: LinuxSource, port: str, portal: str, size_bytes: int) -> bool | str:
    """Whether an echo of this size that may not be fragmented is answered; a text says why it cannot be tried."""
    words = ("ping", "-n", "-q", "-c", "1", "-W", "1", "-M", "do", "-s", str(size_bytes), "-I", port, portal)
    try:
        source.run(words)
    except HostError as error:
        return error.message if "not installed" in error.message or "permitted" in error.message else False
    return True


def _subnet(portal: str, known: Sequence[PortAddress]) -> dict[str, FactValue]:
    try:
        address = IPv4Address(portal)
    except ValueError:
        return {}
    return next(({"subnet": one.network} for one in known if address in IPv4Network(one.network)), {})


def _volume_paths(
    source: LinuxSource, sessions: Sequence[KernelSession], volumes: Sequence[HostVolume]
) -> Iterable[VolumePath]:
    by_disk = {disk: one for one in sessions for disk in one.disks}
    for volume in volumes:
        for disk, active in volume.disks.items():
            session = by_disk[disk]
            yield VolumePath(volume.name, source.name, session.port, session.portal, active)


def _arrays(
    sessions: Sequence[KernelSession], records: Sequence[PortalRecord], volumes: Sequence[HostVolume]
) -> Iterable[AuditSubject]:
    """A subject for each target: its portals, its vendor, the sector sizes of its volumes."""
    by_disk = {disk: one.target for one in sessions for disk in one.disks}
    for target in dict.fromkeys(one.target for one in sessions if one.target):
        mine = [one.subject for one in volumes if target in {by_disk[disk] for disk in one.disks}]
        portals = {one.portal for one in sessions if one.target == target}
        portals |= {one.portal for one in records if one.target == target}
        facts: dict[str, FactValue] = {"portals": len(portals)}
        vendors = {str(one.facts["vendor_id"]) for one in mine if "vendor_id" in one.facts}
        if len(vendors) == 1:
            facts["vendor_id"] = vendors.pop()
        sizes = {
            (one.facts["logical_block_bytes"], one.facts["physical_block_bytes"])
            for one in mine
            if {"logical_block_bytes", "physical_block_bytes"} <= one.facts.keys()
        }
        if sizes:
            facts["sector_kinds"] = len(sizes)
        yield AuditSubject(
            "array", target, "linux", facts, {"sector_kinds": "no volume shows its block sizes"}
        )
