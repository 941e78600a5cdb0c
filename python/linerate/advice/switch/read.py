"""Reads the facts of a switch from its configuration: which kind it is, its ports, its aggregates, its classes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from linerate.advice.facts import AuditSubject, FactValue, SanFactSheet
from linerate.advice.switch.config import ConfigBlock, SwitchConfig, parse_config, read_config_text
from linerate.advice.switch.dialect import DIALECTS, SwitchDialect, is_physical, members
from linerate.advice.switch.lossless import lossless_facts
from linerate.errors import UserError

_PORTS_MAX = 1024
_ARRAY_WORDS = re.compile(
    r"\b(array|storage|target|portal|controller|equallogic|powervault|netapp|qnap|synology)"
)
_TAGS = ("tagged", "untagged")


def read_switch(given: str, vlan: int | None = None) -> SanFactSheet:
    """The facts of a file, or KIND:FILE where the kind cannot be told. `vlan`: only ports in this VLAN.

    Raises UserError for a file that is no configuration of a known kind, or a VLAN without a port.
    """
    kind, colon, rest = given.partition(":")
    known: dict[str, SwitchDialect] = {one.system: one for one in DIALECTS}
    forced = known.get(kind) if colon else None
    path = Path(rest if forced else given)
    text = read_config_text(path)
    dialect = forced or _dialect(text, str(path))
    return _sheet(parse_config(text), dialect, path.stem, str(path), vlan)


def _dialect(text: str, shown: str) -> SwitchDialect:
    """The kind whose marks the text has most of."""
    lines = [" ".join(line[:200].lower().split()) for line in text.splitlines()]
    scores = {
        one.system: sum(any(re.match(mark, line) for line in lines) for mark in one.marks) for one in DIALECTS
    }
    best = max(scores.values())
    found = [one for one in DIALECTS if scores[one.system] == best]
    if best == 0 or len(found) > 1:
        kinds = ", ".join(f"{one.system} ({one.name})" for one in DIALECTS)
        raise UserError(
            f"{shown}: the kind of switch cannot be told",
            f"say it: --switch KIND:FILE, where KIND is {kinds}",
        )
    return found[0]


def _sheet(
    config: SwitchConfig, dialect: SwitchDialect, name: str, shown: str, vlan: int | None
) -> SanFactSheet:
    interfaces = config.interfaces()
    ports = [one for one in interfaces if is_physical(one)][:_PORTS_MAX]
    if not ports:
        raise UserError(
            f"{shown}: no port is in this configuration", "give the output of `show running-config`"
        )
    vlans = _vlan_members(config)
    used = [one for one in ports if not interfaces[one].has("shutdown")]
    if vlan is not None:
        used = [one for one in used if _carries(one, interfaces[one], vlan, vlans)]
        if not used:
            raise UserError(
                f"{shown}: no port that is up is in VLAN {vlan}", "give the SAN's VLAN with --vlan"
            )
    facts, unknown = lossless_facts(dialect.system, config)
    subjects = [
        AuditSubject(
            "switch",
            config.value("hostname") or config.value("switchname") or name,
            dialect.system,
            facts,
            unknown,
        )
    ]
    grouped = _grouped(config)
    subjects += [_port(config, dialect, one, interfaces[one], vlans, grouped) for one in used]
    subjects += _aggregates(config, dialect, interfaces)
    idle = len(ports) - len(used)
    left_out = f"{idle} that are shut down or in other VLANs are not"
    notes = (f"{shown}: read as {dialect.name}; {len(used)} ports are checked, {left_out}",)
    return SanFactSheet(tuple(subjects), notes=notes)


def _vlan_members(config: SwitchConfig) -> dict[int, set[str]]:
    """VLAN -> its ports, where the configuration lists ports below VLANs (Dell)."""
    found: dict[int, set[str]] = {}
    for rest, block in config.headed("interface vlan"):
        if rest.isdecimal():
            for tag in _TAGS:
                for text in block.values(tag):
                    found.setdefault(int(rest), set()).update(members(text))
    return found


def _carries(name: str, port: ConfigBlock, vlan: int, vlans: dict[int, set[str]]) -> bool:
    if members(name) & vlans.get(vlan, set()):
        return True
    if port.value("switchport access vlan") == str(vlan):
        return True
    allowed = port.value("switchport trunk allowed vlan") or ""
    return any(_in_range(part, vlan) for part in allowed.removeprefix("add ").split(","))


def _in_range(part: str, vlan: int) -> bool:
    first, dash, last = part.strip().partition("-")
    if not first.isdecimal() or (dash and not last.isdecimal()):
        return False
    return int(first) <= vlan <= int(last if dash else first)


def _port(
    config: SwitchConfig,
    dialect: SwitchDialect,
    name: str,
    port: ConfigBlock,
    vlans: dict[int, set[str]],
    grouped: set[str],
) -> AuditSubject:
    receive, send = dialect.flow_control(port)
    aggregated = _is_member(name, port, grouped)
    routed = port.has("no switchport") or port.has("ip address")
    unused = dialect.system == "dell" and not (port.has("switchport") or port.has("portmode"))
    facts: dict[str, FactValue] = {
        "mtu": dialect.mtu(config, port),
        "flow_control_receive": receive,
        "flow_control_send": send,
        "pfc": _has_pfc(port),
        "edge": dialect.edge(config, port),
        "aggregated": aggregated,
        "is_edge_candidate": not (aggregated or routed or unused),
        "in_default_vlan": _in_default_vlan(name, port, vlans),
    }
    unknown: dict[str, str] = {}
    description = port.value("description")
    if description is not None and _ARRAY_WORDS.search(description):
        facts["leads_to_array"] = True
    elif not aggregated or description is not None:
        facts["leads_to_array"] = False
    else:
        unknown["leads_to_array"] = (
            "the port is in an aggregate and has no description that says what is behind it"
        )
    return AuditSubject("switch_port", name, dialect.system, facts, unknown)


def _grouped(config: SwitchConfig) -> set[str]:
    """Ports that a port-channel names as its members (Dell)."""
    found: set[str] = set()
    for _, block in config.headed("interface port-channel"):
        for text in block.values("channel-member"):
            found |= members(text)
    return found


def _is_member(name: str, port: ConfigBlock, grouped: set[str]) -> bool:
    words = ("channel-group", "port-channel-protocol", "port-channel")
    return any(port.has(word) for word in words) or bool(members(name) & grouped)


def _has_pfc(port: ConfigBlock) -> bool:
    words = ("priority-flow-control mode on", "priority-flow-control on", "dcb-map", "dcb-policy input")
    return any(port.has(word) for word in words)


def _in_default_vlan(name: str, port: ConfigBlock, vlans: dict[int, set[str]]) -> bool:
    if port.has("switchport mode trunk"):
        return False
    if vlan := port.value("switchport access vlan"):
        return vlan == "1"
    return not any(members(name) & ports for number, ports in vlans.items() if number != 1)


def _aggregates(
    config: SwitchConfig, dialect: SwitchDialect, interfaces: dict[str, ConfigBlock]
) -> Iterator[AuditSubject]:
    for name, block in interfaces.items():
        if name.startswith("port-channel") and not block.has("shutdown"):
            facts: dict[str, FactValue] = {
                "mtu": dialect.mtu(config, block),
                "mtu_wanted": dialect.mtu_wanted,
            }
            yield AuditSubject("trunk", name, dialect.system, facts)
