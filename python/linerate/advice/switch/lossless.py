"""Facts of priority flow control (802.1Qbb) and transmission selection (802.1Qaz) in a switch configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from linerate.advice.facts import FactValue
from linerate.advice.switch.classes import ISCSI_PRIORITY, PRIORITIES, SwitchDcb, is_wrong
from linerate.advice.switch.config import ConfigBlock, SwitchConfig
from linerate.advice.switch.dell_dcb import dell_dcb
from linerate.advice.switch.eos_dcb import eos_dcb
from linerate.advice.switch.nxos_dcb import nxos_dcb

_READERS: Mapping[str, Callable[[SwitchConfig, Mapping[str, ConfigBlock], str], SwitchDcb]] = {
    "dell": dell_dcb,
    "nxos": nxos_dcb,
    "eos": eos_dcb,
}
_NO_PFC = "IOS has no priority flow control; a converged SAN needs another switch or ports of its own"
_NONE = "none"


def dcb_of(
    system: str, config: SwitchConfig, ports: Mapping[str, ConfigBlock], priority: str
) -> SwitchDcb | None:
    """DCB of these ports; None for a kind of switch that has none. `priority` is that of iSCSI, as a digit."""
    return _READERS[system](config, ports, priority) if system in _READERS else None


def switch_facts(dcb: SwitchDcb | None) -> tuple[dict[str, FactValue], dict[str, str]]:
    """Facts of the switch, and what cannot be known. Priorities are texts such as 4 or 3,4 or none."""
    facts: dict[str, FactValue] = {"iscsi_priority": ISCSI_PRIORITY, "dcb": False, "ets": False}
    if dcb is None:
        return facts, {"pfc_priorities": _NO_PFC, "iscsi_share_percent": _NO_PFC}
    kinds: dict[str, list[str]] = {}
    for name, port in dcb.ports.items():
        if port.no_drop and not port.missing:
            kinds.setdefault(_text(port.no_drop), []).append(name)
    facts |= {
        "pfc_priorities": _text(frozenset("".join(kinds)) & frozenset(PRIORITIES)),
        "no_drop_differs": "; ".join(f"{kind} on {_few(names)}" for kind, names in kinds.items())
        if len(kinds) > 1
        else _NONE,
        "dcb_unused": ", ".join(dcb.unused) or _NONE,
        "ets_wrong_sums": _wrong_sums(dcb),
        "dcb": bool(dcb.unused or dcb.schedules or any(port.state != "off" for port in dcb.ports.values())),
        "ets": bool(dcb.schedules),
    }
    if dcb.iscsi_share_percent is None:
        return facts, {"iscsi_share_percent": "no class of the configuration can be told to be that of iSCSI"}
    return {**facts, "iscsi_share_percent": dcb.iscsi_share_percent}, {}


def port_facts(
    dcb: SwitchDcb | None, name: str, pauses: bool, is_san_port: bool
) -> tuple[dict[str, FactValue], dict[str, str]]:
    """Facts of a port. `pauses`: it obeys or sends pause frames of the whole link."""
    if dcb is None:
        return {"pfc": False, "pfc_given": False, "beside_pfc": False}, {}
    port = dcb.ports[name]
    given = port.state != "off" or bool(port.missing)
    facts: dict[str, FactValue] = {
        "pfc_given": given,
        "pfc_missing": port.missing or "nothing",
        "beside_pfc": is_san_port
        and any(one.state != "off" and not one.missing for one in dcb.ports.values()),
        "lacks_pfc": not given,
    }
    if port.state == "negotiated":
        why = "PFC is negotiated here (mode auto): `show interface priority-flow-control` says the result"
        if pauses:
            return facts, {"pfc": why, "pause_beside_pfc": why}
        return {**facts, "pause_beside_pfc": False}, {"pfc": why}
    on = port.state == "on"
    return {**facts, "pfc": on, "pause_beside_pfc": on and pauses}, {}


def _text(found: frozenset[str]) -> str:
    return ",".join(sorted(found)) or _NONE


def _few(names: list[str]) -> str:
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return f"{', '.join(names[:2])}{more}"


def _wrong_sums(dcb: SwitchDcb) -> str:
    wrong = [
        f"{name}: {sum(share or 0 for share in shares)} %"
        for name, shares in dcb.schedules.items()
        if is_wrong(shares)
    ]
    return _few(wrong) if wrong else _NONE
