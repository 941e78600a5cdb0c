"""Ports of a Linux host: addresses, links, routes, neighbours, other traffic."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Interface, ip_address
from typing import Any

from linerate.advice.facts import AuditSubject, FactValue
from linerate.advice.linux.source import LinuxSource
from linerate.advice.outline import as_list, as_table, as_text
from linerate.errors import HostError
from linerate.host import Shown

ISCSI_PORT = "3260"
_TEAMS = ("bond", "team")
_RTT = re.compile(r"\brtt:([\d.]+)/")


@dataclass(slots=True)
class PortReading:
    """Facts of a port (or of the host) as they are gathered."""

    facts: dict[str, FactValue] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PortAddress:
    """An IPv4 address of a device."""

    device: str
    address: str
    network: str
    """With the prefix length."""


def addresses(source: LinuxSource) -> list[PortAddress]:
    """The IPv4 addresses of the host. Raises HostError where `ip` cannot be used."""
    found = []
    for link in as_list(source.json("ip", "-j", "addr", "show")):
        for one in as_list(as_table(link).get("addr_info")):
            entry = as_table(one)
            try:
                interface = IPv4Interface(f"{as_text(entry.get('local'))}/{entry.get('prefixlen')}")
            except ValueError:
                continue
            name = as_text(as_table(link).get("ifname"))
            found.append(PortAddress(name, str(interface.ip), str(interface.network)))
    return found


def port_subjects(
    source: LinuxSource, devices: Iterable[str], offloaded: Iterable[str], values: Iterable[Shown]
) -> list[AuditSubject]:
    """A subject for each port; `offloaded` are ports of iSCSI offload engines, `values` the host's settings."""
    names = list(devices)
    ports = {name: PortReading() for name in names}
    for shown in values:
        if shown.device in ports:
            add_setting(ports[shown.device], shown)
    _links(source, ports)
    _other_traffic(source, ports)
    _neighbours(source, ports)
    cpus = len([name for name in source.names("sys/devices/system/cpu") if re.fullmatch(r"cpu\d+", name)])
    for name, port in ports.items():
        port.facts["cpus"] = cpus
        port.facts["offload"] = name in set(offloaded)
        port.facts["nagle"] = "off"  # open-iscsi sets TCP_NODELAY
        port.facts["iscsi_priority"] = "4"
        port.unknown["driver_age_months"] = (
            "Linux keeps no date of a driver; compare its kernel with the vendor's list"
        )
        _device(source, name, port)
        _ethtool(source, name, port)
        _lossless(source, name, port)
    return [AuditSubject("port", name, "linux", port.facts, port.unknown) for name, port in ports.items()]


def add_setting(reading: PortReading, shown: Shown) -> None:
    """A setting of the catalogue as facts: switches as on and off, the device's maximum beside the value."""
    name = shown.setting.name
    if shown.value is None:
        reading.unknown[name] = shown.why
        return
    value = shown.value
    reading.facts[name] = ("on" if value else "off") if isinstance(value, bool) else value
    if shown.most is not None:
        reading.facts[f"{name}_most"] = shown.most
    else:
        reading.unknown[f"{name}_most"] = "the driver does not say how large it can be"


def _links(source: LinuxSource, ports: Mapping[str, PortReading]) -> None:
    """Teams, IPv6 addresses and listening services, default routes."""
    try:
        links = {
            as_text(one.get("ifname")): one
            for one in map(as_table, as_list(source.json("ip", "-j", "-d", "link", "show")))
        }
        routes = [as_table(one) for one in as_list(source.json("ip", "-j", "route", "show"))]
        protocols = _other_protocols(source)
    except HostError as error:
        for port in ports.values():
            for fact in ("teamed", "default_route", "other_protocols"):
                port.unknown[fact] = error.message
        return
    for name, port in ports.items():
        info = as_table(links.get(name, {}).get("linkinfo"))
        kinds = {as_text(info.get(key)) for key in ("info_kind", "info_slave_kind")}
        port.facts["teamed"] = bool(kinds & set(_TEAMS))
        port.facts["default_route"] = any(
            as_text(route.get("dst")) == "default" and as_text(route.get("dev")) == name for route in routes
        )
        port.facts["other_protocols"] = ", ".join(sorted(protocols.get(name, set()))) or "none"


def _other_protocols(source: LinuxSource) -> dict[str, set[str]]:
    """Device -> IPv6, and services that listen on one of its addresses alone."""
    found: dict[str, set[str]] = {}
    holders: dict[str, str] = {}
    for link in map(as_table, as_list(source.json("ip", "-j", "addr", "show"))):
        name = as_text(link.get("ifname"))
        for one in map(as_table, as_list(link.get("addr_info"))):
            holders[as_text(one.get("local"))] = name
            if as_text(one.get("family")) == "inet6":
                found.setdefault(name, set()).add("IPv6")
    for line in source.run(("ss", "-Htln")).splitlines():
        words = line.split()
        address, _, port = words[3].rpartition(":") if len(words) > 3 else ("", "", "")
        device = holders.get(address.strip("[]"))
        if device is not None and port != ISCSI_PORT:
            found.setdefault(device, set()).add(f"TCP port {port}")
    return found


def _other_traffic(source: LinuxSource, ports: Mapping[str, PortReading]) -> None:
    """TCP connections over a port that are not iSCSI."""
    try:
        holders = {one.address: one.device for one in addresses(source)}
        lines = source.run(("ss", "-Htn")).splitlines()
    except HostError as error:
        for port in ports.values():
            port.unknown["other_traffic"] = error.message
        return
    for port in ports.values():
        port.facts["other_traffic"] = 0
    for line in lines:
        words = line.split()
        if len(words) < 5:
            continue
        address, _, own = words[3].rpartition(":")
        device = holders.get(address)
        if device is not None and device in ports and ISCSI_PORT not in (own, words[4].rpartition(":")[2]):
            ports[device].facts["other_traffic"] = int(ports[device].facts["other_traffic"]) + 1


def _neighbours(source: LinuxSource, ports: Mapping[str, PortReading]) -> None:
    """The switch at the other end of each port, by LLDP."""
    try:
        answer = source.json("lldpctl", "-f", "json0")
        reason = "no switch has announced itself on this port (LLDP)"
    except HostError as error:
        answer, reason = None, f"the switch is not known: {error.message} (LLDP)"
    for port in ports.values():
        port.unknown["switch"] = reason
    for top in map(as_table, as_list(as_table(answer).get("lldp"))):
        for one in map(as_table, as_list(top.get("interface"))):
            chassis = as_table(next(iter(as_list(one.get("chassis"))), None))
            ids, names = (
                [as_text(as_table(value).get("value")) for value in as_list(chassis.get(key))]
                for key in ("id", "name")
            )
            name = as_text(one.get("name"))
            if name in ports and (ids or names):
                ports[name].facts["switch"] = [*ids, *names][0]
            if name in ports and names:
                ports[name].facts["switch_name"] = names[0]


def _device(source: LinuxSource, name: str, port: PortReading) -> None:
    """What sysfs says of the device: card, speed, duplex, radio."""
    folder = f"sys/class/net/{name}"
    place = source.link(f"{folder}/device").rpartition("/")[2]
    if re.fullmatch(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]", place):
        port.facts["card"] = place.rpartition(".")[0]
    else:
        port.unknown["card"] = "the port is no PCI device"
    speed = source.number(f"{folder}/speed")
    if speed is not None and speed > 0:
        port.facts["speed_mbit_s"] = speed
    else:
        port.unknown["speed_mbit_s"] = "the driver does not say the speed"
    duplex = source.maybe(f"{folder}/duplex")
    if duplex in ("full", "half"):
        port.facts["duplex"] = duplex
    else:
        port.unknown["duplex"] = "the driver does not say the duplex mode"
    port.facts["wireless"] = bool({"wireless", "phy80211"} & set(source.names(folder)))


def _ethtool(source: LinuxSource, name: str, port: PortReading) -> None:
    """Negotiation at both ends, and the firmware."""
    try:
        lines = dict(_pairs(source.run(("ethtool", name))))
        port.facts["autoneg"] = lines.get("Auto-negotiation", "off")
        partner = lines.get("Link partner advertised auto-negotiation")
        if partner in ("Yes", "No"):
            port.facts["partner_autoneg"] = "on" if partner == "Yes" else "off"
        else:
            port.unknown["partner_autoneg"] = "the driver does not say what the other end does"
    except HostError as error:
        port.unknown["autoneg"] = error.message
    try:
        firmware = dict(_pairs(source.run(("ethtool", "-i", name)))).get("firmware-version", "")
    except HostError as error:
        port.unknown["firmware"] = error.message
        return
    if firmware and firmware != "N/A":
        port.facts["firmware"] = firmware
    else:
        port.unknown["firmware"] = "the driver does not say the firmware"


def _pairs(text: str) -> Iterable[tuple[str, str]]:
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            yield key.strip(), value.strip()


def _lossless(source: LinuxSource, name: str, port: PortReading) -> None:
    """Priorities with PFC, as a text such as 3,4. A driver without DCB has none."""
    try:
        answer = as_table(source.json("dcb", "-j", "pfc", "show", "dev", name))
    except HostError as error:
        if "not supported" in error.message:
            port.facts["pfc_priorities"] = "none"
        else:
            port.unknown["pfc_priorities"] = error.message
        return
    flags = as_list(answer.get("prio_pfc") or answer.get("prio-pfc"))
    if flags:
        port.facts["pfc_priorities"] = ",".join(str(at) for at, flag in enumerate(flags) if flag) or "none"
    else:
        port.unknown["pfc_priorities"] = "dcb does not show prio-pfc"


def round_trips_us(source: LinuxSource) -> dict[tuple[str, str], float]:
    """(own address, portal address) -> smoothed round trip of an iSCSI connection. Raises HostError."""
    found: dict[tuple[str, str], float] = {}
    ends: tuple[str, str] | None = None
    for line in source.run(("ss", "-Htin", "dport", "=", f":{ISCSI_PORT}")).splitlines():
        words = line.split()
        if not line[:1].isspace() and len(words) >= 5:
            ends = (words[3].rpartition(":")[0], words[4].rpartition(":")[0])
        elif ends is not None and (match := _RTT.search(line)):
            found[ends] = float(match[1]) * 1000
    return found


def route(source: LinuxSource, portal: str) -> dict[str, Any]:
    """The route to a portal as `ip` shows it. Raises HostError."""
    ip_address(portal)
    return as_table(next(iter(as_list(source.json("ip", "-j", "route", "get", portal))), None))
