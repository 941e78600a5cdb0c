"""Facts of data center bridging that follow from both ends of a link: hosts against their switches."""

from __future__ import annotations

from dataclasses import replace

from linerate.advice.facts import SWITCHES, AuditSubject, FactValue, SanFactSheet

_NONE = "none"
_HOSTS = ("linux", "windows")
_PAUSES = ("on", "rx", "tx")


def with_dcb(sheet: SanFactSheet) -> SanFactSheet:
    """The sheet with what ports of hosts have beside PFC, and how hosts and switches differ."""
    switches = [one for one in sheet.of("switch") if "pfc_priorities" in one.facts]
    subjects = tuple(
        _port(one, [switch for switch in switches if switch.system in SWITCHES])
        if one.kind == "port"
        else _switch(one, switches)
        for one in sheet.subjects
    )
    return replace(sheet, subjects=subjects)


def _port(port: AuditSubject, switches: list[AuditSubject]) -> AuditSubject:
    """Pause frames of the whole link are wanted where PFC is off; a topology has one or the other."""
    if port.system not in _HOSTS:
        return port.having({"pause_wanted": True})
    facts: dict[str, FactValue] = {"dcb_at_switch": bool(switches)}
    unknown: dict[str, str] = {}
    pause = port.facts.get("flow_control")
    mine = port.facts.get("pfc_priorities")
    if mine is not None or pause in _PAUSES:
        facts["pause_wanted"] = mine in (None, _NONE)
    else:
        why = port.unknown.get("pfc_priorities") or "PFC was not found"
        unknown["pause_wanted"] = f"PFC may be on in its place: {why}"
    if mine == _NONE or (mine is not None and pause is not None):
        facts["pause_beside_pfc"] = mine != _NONE and pause in _PAUSES
    else:
        unknown["pause_beside_pfc"] = port.unknown.get("flow_control") or "flow control was not found"
    called = str(port.facts.get("switch_name", "")).partition(".")[0].lower()
    found = {
        one.facts["pfc_priorities"] for one in [one for one in switches if one.name == called] or switches
    }
    if len(found) == 1:
        facts["switch_pfc_priorities"] = found.pop()
    elif found:
        unknown["switch_pfc_priorities"] = (
            "the switches of the audit differ, and which of them the port leads to is not known (LLDP)"
        )
    return port.having(facts, unknown)


def _switch(one: AuditSubject, switches: list[AuditSubject]) -> AuditSubject:
    """A switch whose own ports agree may differ from the other ones."""
    if one not in switches or one.facts.get("no_drop_differs", _NONE) != _NONE:
        return one
    kinds: dict[FactValue, list[str]] = {}
    for switch in switches:
        if switch.facts["pfc_priorities"] != _NONE:
            kinds.setdefault(switch.facts["pfc_priorities"], []).append(switch.name)
    differs = "; ".join(f"{kind} on {', '.join(names)}" for kind, names in kinds.items())
    return one.having({"no_drop_differs": differs if len(kinds) > 1 else _NONE})
