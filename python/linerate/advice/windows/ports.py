"""Ports of a Windows host, from the JSON of `facts.ps1`: adapters, their drivers' properties, what is bound to them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from typing import Any

from linerate.advice.facts import AuditSubject, FactValue
from linerate.advice.outline import as_list, as_number, as_table, as_text

_ETHERNET_HEADER_BYTES = 14
_MONTH_DAYS = 30.44
_PAUSE = {0: "off", 1: "tx", 2: "rx", 3: "on"}
_CHECKSUM = {0: "off", 1: "tx", 2: "rx", 3: "on"}
_BINDINGS = {
    "ms_tcpip6": "IPv6",
    "ms_msclient": "Client for Microsoft Networks",
    "ms_server": "File and Printer Sharing",
    "ms_pacer": "QoS Packet Scheduler",
    "ms_lltdio": "Link-Layer Topology Discovery Mapper",
    "ms_rspndr": "Link-Layer Topology Discovery Responder",
    "ms_implat": "Network Adapter Multiplexor",
}
_NETBIOS_OFF = 2
_WIRELESS = ("native 802.11", "native802_11", "wireless lan", "9")


def _switch(number: float) -> FactValue:
    return "on" if number else "off"


def _mtu(number: float) -> FactValue:
    return max(0, int(number) - _ETHERNET_HEADER_BYTES)


_KEYWORDS: Mapping[str, tuple[str, Callable[[float], FactValue]]] = {
    "*JumboPacket": ("mtu", _mtu),
    "*FlowControl": ("flow_control", lambda number: _PAUSE.get(int(number), "negotiated")),
    "*ReceiveBuffers": ("rx_ring_frames", int),
    "*TransmitBuffers": ("tx_ring_frames", int),
    "*RSS": ("rss", _switch),
    "*LsoV2IPv4": ("lso", _switch),
    "*RscIPv4": ("rsc", _switch),
    "*TCPChecksumOffloadIPv4": ("checksum_offload", lambda number: _CHECKSUM.get(int(number), "off")),
    "*InterruptModeration": ("interrupt_moderation_us", _switch),
    "*TCPConnectionOffloadIPv4": ("toe", _switch),
}
"""Standard keyword of a driver -> fact and its value."""


def port_subjects(
    document: Mapping[str, Any], reasons: Mapping[str, str], used: Collection[str]
) -> list[AuditSubject]:
    """The adapters that carry sessions; all of them where none is known to."""
    adapters = [one for one in map(as_table, as_list(document.get("adapters"))) if as_text(one.get("name"))]
    chosen = [one for one in adapters if not used or one["name"] in used]
    return [_port(one, document, reasons) for one in chosen]


def _port(
    adapter: Mapping[str, Any], document: Mapping[str, Any], reasons: Mapping[str, str]
) -> AuditSubject:
    name = as_text(adapter.get("name"))
    facts: dict[str, FactValue] = {"iscsi_priority": "4"}
    unknown = {fact: f"the driver has no {keyword}" for keyword, (fact, _) in _KEYWORDS.items()}
    unknown["switch"] = "Windows keeps no LLDP neighbour; say which switch by other means"
    facts |= _properties(name, document, unknown)
    facts |= _hardware(adapter, document, unknown)
    facts |= _protocols(adapter, document)
    facts |= _traffic(adapter, document, reasons, unknown)
    interface = as_table(next(iter(as_list(adapter.get("interface"))), None))
    facts["delayed_ack"] = "off" if as_number(interface.get("ack_frequency")) == 1 else "on"
    facts["nagle"] = "off" if as_number(interface.get("no_delay")) == 1 else "on"
    chimney = as_text(as_table(next(iter(as_list(document.get("offload"))), None)).get("chimney")).lower()
    if chimney:
        facts["chimney"] = "off" if chimney == "disabled" else "on"
    else:
        unknown["chimney"] = reasons.get("offload") or "this Windows has no TCP offload engine"
    return AuditSubject(
        "port", name, "windows", facts, {key: why for key, why in unknown.items() if key not in facts}
    )


def _properties(name: str, document: Mapping[str, Any], unknown: dict[str, str]) -> dict[str, FactValue]:
    facts: dict[str, FactValue] = {}
    for one in map(as_table, as_list(document.get("properties"))):
        number = as_number(one.get("value"))
        if one.get("name") != name or number is None or as_text(one.get("keyword")) not in _KEYWORDS:
            continue
        fact, meaning = _KEYWORDS[as_text(one.get("keyword"))]
        facts[fact] = meaning(number)
        most = as_number(one.get("most"))
        if most:
            facts[f"{fact}_most"] = int(most)
        else:
            unknown[f"{fact}_most"] = "the driver does not say how large it can be"
    return facts


def _hardware(
    adapter: Mapping[str, Any], document: Mapping[str, Any], unknown: dict[str, str]
) -> dict[str, FactValue]:
    facts: dict[str, FactValue] = {"duplex": "full" if adapter.get("full_duplex") is True else "half"}
    rate = as_number(adapter.get("bits_per_s"))
    if rate:
        facts["speed_mbit_s"] = round(rate / 1e6)
    else:
        unknown["speed_mbit_s"] = "the adapter has no link"
    facts["wireless"] = as_text(adapter.get("medium")).lower() in _WIRELESS
    if location := as_text(adapter.get("location")):
        facts["card"] = location
    else:
        unknown["card"] = "the location of the adapter is not known"
    cpus = as_number(next(iter(as_list(document.get("cpus"))), None))
    if cpus:
        facts["cpus"] = int(cpus)
    now, made = _time(document.get("time")), _time(adapter.get("driver_date"))
    if now is not None and made is not None:
        facts["driver_age_months"] = max(0, round((now - made).days / _MONTH_DAYS))
    else:
        unknown["driver_age_months"] = "the date of the driver is not known"
    _add_team(adapter, document, facts, unknown)
    return facts


def _add_team(
    adapter: Mapping[str, Any],
    document: Mapping[str, Any],
    facts: dict[str, FactValue],
    unknown: dict[str, str],
) -> None:
    """Teams of Windows (LBFO), and those inside a virtual switch of Hyper-V (SET)."""
    teams = {as_text(one.get("name")) for one in _tables(document, "team_members")}
    in_switch = {as_text(one.get("description")) for one in _tables(document, "switch_team_members")}
    if as_text(adapter.get("name")) in teams or as_text(adapter.get("description")) in in_switch:
        facts["teamed"] = True
        return
    for part in ("team_members", "switch_team_members"):
        if part in as_table(document.get("missing")) or part not in document:
            reason = as_text(as_table(document.get("missing")).get(part))
            unknown["teamed"] = reason or f"the facts have no {part}; collect them with the present script"
            return
    facts["teamed"] = False


def _protocols(adapter: Mapping[str, Any], document: Mapping[str, Any]) -> dict[str, FactValue]:
    """What is bound besides IPv4, and NetBIOS."""
    bound = {as_text(one).lower() for one in as_list(adapter.get("bindings"))}
    others = [title for component, title in _BINDINGS.items() if component in bound]
    index = as_number(adapter.get("index"))
    for one in map(as_table, as_list(document.get("netbios"))):
        if as_number(one.get("index")) == index and as_number(one.get("option")) != _NETBIOS_OFF:
            others.append("NetBIOS")
    if not bound:
        return {}
    return {"other_protocols": ", ".join(others) or "none"}


def _traffic(
    adapter: Mapping[str, Any],
    document: Mapping[str, Any],
    reasons: Mapping[str, str],
    unknown: dict[str, str],
) -> dict[str, FactValue]:
    """Connections that are not iSCSI, default routes, priorities with PFC."""
    facts: dict[str, FactValue] = {}
    index = as_number(adapter.get("index"))
    own = {
        as_text(one.get("address"))
        for one in map(as_table, as_list(document.get("addresses")))
        if as_number(one.get("index")) == index
    }
    if "connections" in document and "connections" not in reasons:
        facts["other_traffic"] = sum(
            as_text(one.get("own")) in own and 3260 not in (one.get("port"), one.get("own_port"))
            for one in map(as_table, as_list(document["connections"]))
        )
    else:
        unknown["other_traffic"] = reasons.get("connections") or "the facts have no connections"
    facts["default_route"] = any(as_number(one.get("index")) == index for one in _tables(document, "routes"))
    if "pfc" in document and "pfc" not in reasons:
        found = sorted(int(as_number(one.get("priority")) or 0) for one in _tables(document, "pfc"))
        facts["pfc_priorities"] = ",".join(map(str, found)) or "none"
    else:
        unknown["pfc_priorities"] = reasons.get("pfc") or "the facts have no pfc"
    return facts


def _tables(document: Mapping[str, Any], part: str) -> Iterator[dict[str, Any]]:
    return (one for one in map(as_table, as_list(document.get(part))) if one)


def _time(value: object) -> datetime | None:
    """A date without its zone: days matter, hours do not."""
    try:
        return datetime.fromisoformat(as_text(value).replace("Z", "")).replace(tzinfo=None)
    except ValueError:
        return None
