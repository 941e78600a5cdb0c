"""Facts that follow from how ports, portals and volumes belong together: ratios, spreads, shared ports, subnets."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from linerate.advice.facts import AuditSubject, FactValue, SanFactSheet, VolumePath

_ROUND_ROBIN = ("round-robin", "round_robin", "rr", "round robin")


@dataclass(frozen=True, slots=True)
class PathKey:
    """The name of a path: a port of the host and a portal."""

    port: str
    portal: str

    @property
    def name(self) -> str:
        """As reports show it."""
        return f"{self.port or '?'} -> {self.portal}"


@dataclass(slots=True)
class _Found:
    """Facts of one subject, and facts that cannot be known with the reason."""

    facts: dict[str, FactValue]
    unknown: dict[str, str]


def derived(sheet: SanFactSheet, policies: Mapping[str, str]) -> SanFactSheet:
    """The sheet with what follows from its sessions and paths; `policies` are by volume."""
    subjects = []
    for one in sheet.subjects:
        if one.kind == "host":
            found = _of_host(sheet, one.name)
        elif one.kind == "volume":
            found = _of_volume(sheet, one.name, policies.get(one.name))
        elif one.kind == "array":
            found = _of_array(sheet, one)
        else:
            subjects.append(one)
            continue
        subjects.append(one.having(found.facts, found.unknown))
    return replace(sheet, subjects=tuple(subjects))


def with_backup(sheet: SanFactSheet) -> SanFactSheet:
    """The sheet with `backs_up` for each port: whether a backup image is part of the audit."""
    facts = {"backs_up": any(True for _ in sheet.of("image"))}
    subjects = tuple(one.having(facts) if one.kind == "port" else one for one in sheet.subjects)
    return replace(sheet, subjects=subjects)


def _of_host(sheet: SanFactSheet, host: str) -> _Found:
    sessions = [one for one in sheet.sessions if one.host == host]
    used = list(dict.fromkeys(one.port for one in sessions)) or [one.name for one in sheet.of("port")]
    ports = [one for one in sheet.of("port") if one.name in used]
    found = _Found({}, {})
    if sessions:
        pairs = Counter((one.port, one.portal) for one in sessions)
        found.facts |= {
            "sessions": len(sessions),
            "active_ports": len(set(used)),
            "session_spread": max(pairs.values()) - min(pairs.values()),
            "port_ratio": round(len({one.portal for one in sessions}) / len(set(used)), 2),
        }
    else:
        reason = "no iSCSI session is logged in"
        found.unknown |= dict.fromkeys(("active_ports", "session_spread", "port_ratio"), reason)
    _add_distinct(found, "adapter_cards", ports, ("card",), "the card of a port is not known")
    _add_distinct(found, "port_kinds", ports, ("speed_mbit_s", "duplex"), "the speed of a port is not known")
    _add_window(found, sheet, ports)
    return found


def _add_distinct(
    found: _Found, name: str, subjects: Iterable[AuditSubject], facts: tuple[str, ...], reason: str
) -> None:
    """How many different values subjects have; a missing one makes it unknown."""
    values = [tuple(one.facts.get(fact) for fact in facts) for one in subjects]
    if values and not any(None in value for value in values):
        found.facts[name] = len(set(values))
    else:
        found.unknown[name] = reason


def _add_window(found: _Found, sheet: SanFactSheet, ports: Iterable[AuditSubject]) -> None:
    """Twice the largest product of a port's rate and a path's round trip: what one session needs on a full line."""
    rates = {one.name: one.facts.get("speed_mbit_s") for one in ports}
    needed = [
        2 * float(rate) * 1e6 / 8 * float(path.facts["rtt_us"]) / 1e6
        for path in sheet.of("path")
        if "rtt_us" in path.facts and (rate := rates.get(path.name.partition(" -> ")[0]))
    ]
    if needed:
        found.facts["needed_window_bytes"] = int(max(needed))
    else:
        found.unknown["needed_window_bytes"] = "no session's round trip on a port of known speed"


def _of_volume(sheet: SanFactSheet, volume: str, policy: str | None) -> _Found:
    paths = [one for one in sheet.paths if one.volume == volume]
    found = _Found({}, {})
    if not paths:
        reason = "no path of the volume is known"
        facts = ("host_ports", "switches", "active_paths", "paths_per_portal", "round_robin_over_mesh")
        return _Found({}, dict.fromkeys(facts, reason))
    by_host: defaultdict[str, list[VolumePath]] = defaultdict(list)
    for one in paths:
        by_host[one.host].append(one)
    if all(one.port for one in paths):
        found.facts["host_ports"] = min(len({one.port for one in mine}) for mine in by_host.values())
        _add_switches(found, sheet, by_host)
    else:
        reason = "the port of a session is not known"
        found.unknown |= dict.fromkeys(("host_ports", "switches"), reason)
    if any(one.active is None for one in paths):
        reason = "which paths are active is not known: multipathing shows no map of the volume"
        found.unknown |= dict.fromkeys(("active_paths", "paths_per_portal", "round_robin_over_mesh"), reason)
        return found
    active = [[one for one in mine if one.active] for mine in by_host.values()]
    shared = max((max(Counter(one.portal for one in mine).values(), default=0) for mine in active), default=0)
    found.facts["active_paths"] = max(map(len, active))
    found.facts["paths_per_portal"] = shared
    if policy is None or (not policy and len(paths) > 1):
        found.unknown["round_robin_over_mesh"] = "the load balancing policy is not known"
    else:
        found.facts["round_robin_over_mesh"] = shared > 1 and policy.lower().startswith(_ROUND_ROBIN)
    return found


def _add_switches(found: _Found, sheet: SanFactSheet, by_host: Mapping[str, list[VolumePath]]) -> None:
    """The fewest switches that the paths of one host use at its end."""
    ports = {one.name: one for one in sheet.of("port")}
    counts = []
    for mine in by_host.values():
        ends = [ports.get(one.port) for one in mine]
        switches = [end.facts.get("switch") if end else None for end in ends]
        if None in switches:
            missing = next((end for end in ends if end and "switch" not in end.facts), None)
            found.unknown["switches"] = (
                missing.unknown.get("switch", "") if missing else ""
            ) or "the switch of a port is not known"
            return
        counts.append(len(set(switches)))
    found.facts["switches"] = min(counts)


def _of_array(sheet: SanFactSheet, array: AuditSubject) -> _Found:
    """Subnets of its portals. `subnets_wanted` follows from the vendor, see `linerate.advice.vendors`."""
    found = _Found({}, {})
    portals = {one.portal for one in sheet.sessions if one.array == array.name}
    subnets = {
        path.name.partition(" -> ")[2]: path.facts.get("subnet")
        for path in sheet.of("path")
        if path.name.partition(" -> ")[2] in portals
    }
    if subnets and None not in subnets.values():
        found.facts["subnets"] = len(set(subnets.values()))
        found.facts.setdefault("portals", len(portals))
    elif "subnets" not in array.facts:
        found.unknown["subnets"] = "the subnet of a portal is not known"
    return found
