"""Reads the facts of a switch from its configuration: which kind it is, its ports, its aggregates, its classes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from linerate.advice.facts import AuditSubject, FactValue, SanFactSheet
from linerate.advice.switch.classes import ISCSI_PRIORITY, SwitchDcb
from linerate.advice.switch.clean import cleaned_lines
from linerate.advice.switch.config import ConfigBlock, SwitchConfig, parse_config, read_config_text
from linerate.advice.switch.dialect import DIALECTS, SwitchDialect
from linerate.advice.switch.lossless import dcb_of, port_facts, switch_facts
from linerate.advice.switch.membership import PortMembership
from linerate.advice.switch.names import is_physical
from linerate.advice.switch.neighbour import neighbour
from linerate.errors import UserError

_PORTS_MAX = 1024
_MARKED_LINES_MAX = 10_000
_PAYLOAD_BYTES = 9000
_MANAGEMENT = (
    "vrf forwarding mgmt",
    "ip vrf forwarding mgmt",
    "vrf member management",
    "vrf mgmt",
    "vrf management",
)


def read_switch(given: str, vlan: int | None = None, priority: str = ISCSI_PRIORITY) -> SanFactSheet:
    """The facts of a file, or KIND:FILE where the kind cannot be told. `vlan`: only ports in this VLAN.

    `priority` is that of iSCSI frames (802.1p), as a digit.

    Raises UserError for a file that is no configuration of a known kind, or a VLAN without a port.
    """
    kind, colon, rest = given.partition(":")
    known: dict[str, SwitchDialect] = {one.system: one for one in DIALECTS}
    forced = known.get(kind) if colon else None
    path = Path(rest if forced else given)
    text = read_config_text(path)
    dialect = forced or _dialect(text, path)
    return _sheet(parse_config(text), dialect, path, vlan, priority)


def kind_of_switch(path: Path) -> str | None:
    """The kind of switch whose configuration a file is; None: it is none that is known."""
    try:
        return _dialect(read_config_text(path), path).name
    except UserError:
        return None


def _dialect(text: str, path: Path) -> SwitchDialect:
    """The kind whose marks the text has most of."""
    lines = [" ".join(line[:200].lower().split()) for line in cleaned_lines(text)[:_MARKED_LINES_MAX]]
    scores = {
        one.system: sum(any(re.match(mark, line) for line in lines) for mark in one.marks) for one in DIALECTS
    }
    best = max(scores.values())
    found = [one for one in DIALECTS if scores[one.system] == best]
    if best == 0 or len(found) > 1:
        kinds = ", ".join(f"{one.system} ({one.name})" for one in DIALECTS)
        raise UserError(
            f"{path}: the kind of switch cannot be told",
            f"say it: --switch KIND:FILE, where KIND is {kinds}",
        )
    return found[0]


def _sheet(
    config: SwitchConfig, dialect: SwitchDialect, path: Path, vlan: int | None, priority: str
) -> SanFactSheet:
    interfaces = config.interfaces
    ports = [name for name, port in interfaces.items() if is_physical(name) and not _is_management(port)]
    if not ports:
        raise UserError(
            f"{path}: no port is in this configuration", "give the output of `show running-config`"
        )
    membership = PortMembership(config, interfaces)
    down = config.says("system default switchport shutdown")
    used = [one for one in ports[:_PORTS_MAX] if not _is_down(interfaces[one], down)]
    if vlan is not None:
        used = [one for one in used if membership.carries(one, vlan)]
        if not used:
            raise UserError(
                f"{path}: no port that is up is in VLAN {vlan}", "give the SAN's VLAN with --vlan"
            )
    dcb = dcb_of(dialect.system, config, {one: interfaces[one] for one in used}, priority)
    called = config.value("hostname") or config.value("switchname") or path.stem
    reader = _PortReader(config, dialect, membership, dcb, vlan is not None)
    subjects = [AuditSubject("switch", called.strip('"'), dialect.system, *switch_facts(dcb))]
    subjects += [reader.subject(one, interfaces[one]) for one in used]
    subjects += _aggregates(config, dialect, interfaces)
    left_out = f"{len(ports) - len(used)} that are shut down or in other VLANs are not"
    notes = (f"{path}: read as {dialect.name}; {len(used)} ports are checked, {left_out}",)
    return SanFactSheet(tuple(subjects), notes=notes)


def _is_management(port: ConfigBlock) -> bool:
    """A port for management, by its VRF or its name, is none of the SAN."""
    return port.head == "fastethernet0" or any(line.startswith(_MANAGEMENT) for line in port.lines)


def _is_down(port: ConfigBlock, by_default: bool) -> bool:
    return port.has("shutdown") or (by_default and not port.has("no shutdown"))


class _PortReader:
    """Facts of ports. `in_san_vlan`: all of them are in a VLAN that the user has called the SAN's."""

    def __init__(
        self,
        config: SwitchConfig,
        dialect: SwitchDialect,
        membership: PortMembership,
        dcb: SwitchDcb | None,
        in_san_vlan: bool,
    ) -> None:
        self._config = config
        self._dialect = dialect
        self._membership = membership
        self._dcb = dcb
        self._in_san_vlan = in_san_vlan

    def subject(self, name: str, port: ConfigBlock) -> AuditSubject:
        """One port."""
        dialect = self._dialect
        receive, send = dialect.flow_control(port)
        aggregated = self._membership.is_member(name)
        beyond = neighbour(port, aggregated)
        mtu = dialect.mtu(self._config, port)
        pfc, pfc_unknown = port_facts(
            self._dcb, name, "on" in (receive, send), self._in_san_vlan or beyond.array is True
        )
        routed = port.has("no switchport") or port.has("ip address")
        unused = dialect.system == "dell" and not (port.has("switchport") or port.has("portmode"))
        switches = not (aggregated or routed or unused)
        edge = dialect.edge(self._config, port)
        facts: dict[str, FactValue] = {
            "mtu": mtu,
            "jumbo": mtu > dialect.mtu_default,
            "mtu_for_jumbo": _PAYLOAD_BYTES + dialect.header_bytes,
            "flow_control_receive": receive,
            "flow_control_send": send,
            "edge": edge,
            "aggregated": aggregated,
            "switches_frames": switches,
            "in_default_vlan": self._membership.in_default_vlan(name),
            **pfc,
        }
        unknown = dict(pfc_unknown)
        if not switches or edge or beyond.switch is not None:
            facts["is_edge_candidate"] = switches and (edge or not beyond.switch)
        else:
            unknown["is_edge_candidate"] = "it does not say whether a switch or a host is behind the port"
        if beyond.array is not None:
            facts["leads_to_array"] = beyond.array
        else:
            unknown["leads_to_array"] = "the port has no description that says what is behind it"
        return AuditSubject("switch_port", name, dialect.system, facts, unknown)


def _aggregates(
    config: SwitchConfig, dialect: SwitchDialect, interfaces: Mapping[str, ConfigBlock]
) -> Iterator[AuditSubject]:
    for name, block in interfaces.items():
        if name.startswith("port-channel") and not block.has("shutdown"):
            facts: dict[str, FactValue] = {
                "mtu": dialect.mtu(config, block),
                "mtu_wanted": dialect.mtu_wanted,
            }
            yield AuditSubject("trunk", name, dialect.system, facts)
