"""Reads the facts of a Windows host from the JSON of `facts.ps1`. What is missing or strange in it is unknown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from importlib import resources
from ipaddress import IPv4Interface
from typing import Any

from linerate.advice.derive import PathKey, derived
from linerate.advice.facts import AuditSubject, FactValue, SanFactSheet, SessionFact, VolumePath, printable
from linerate.advice.outline import as_list, as_number, as_table, as_text
from linerate.advice.windows.ports import port_subjects
from linerate.advice.windows.volumes import volume_subjects

SCHEMA = "linerate.windows-facts/1"
_POLICIES = {1: "failover", 2: "round robin", 3: "round robin with subset", 4: "least queue depth"}
_POLICIES |= {5: "weighted paths", 6: "least blocks"}
_ALL_ACTIVE = (2, 4, 6)
_FAILOVER = 1
_PROFILES = ("DatacenterCustom", "InternetCustom")
_DEFAULT_ACK = 2
_ISCSI_PORT = 3260


def facts_script() -> str:
    """The script that a user runs on a Windows host."""
    return (resources.files("linerate.advice.windows") / "facts.ps1").read_text(encoding="ascii")


def read_windows(document: Mapping[str, Any]) -> SanFactSheet:
    """The facts of a document with `schema` linerate.windows-facts/1."""
    return _Reader(document).sheet()


class _Reader:
    """Reads one document; `reasons` says why a part of it is missing."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._reasons = {key: as_text(value) for key, value in as_table(document.get("missing")).items()}
        self._system = self._first("system")
        self._name = as_text(self._system.get("name")) or "windows host"
        self._addresses = list(self._own_addresses())
        self._adapters = {
            as_number(one.get("index")): as_text(one.get("name")) for one in self.rows("adapters")
        }

    def rows(self, part: str) -> Iterator[dict[str, Any]]:
        """The objects of a part."""
        return (one for one in map(as_table, as_list(self._document.get(part))) if one)

    def _first(self, part: str) -> dict[str, Any]:
        return next(self.rows(part), {})

    def reason(self, part: str) -> str:
        """Why a part is unknown."""
        return self._reasons.get(part) or f"the facts have no {part}"

    def sheet(self) -> SanFactSheet:
        """All facts."""
        sessions = list(self._sessions())
        used = {one.port for one in sessions}
        ports = port_subjects(self._document, self._reasons, used)
        guess = "no iSCSI session is connected, so every adapter of the facts is looked at"
        notes = (*(() if used else (guess,)), *self._strange_ports())
        volumes, paths, policies = self._volumes(sessions)
        subjects = (
            self._host(sessions),
            *ports,
            *self._paths(),
            *volumes,
            *self._arrays(sessions, volumes, paths),
        )
        return derived(SanFactSheet(subjects, tuple(sessions), tuple(paths), notes), policies)

    def _own_addresses(self) -> Iterator[tuple[float | None, IPv4Interface]]:
        for one in self.rows("addresses"):
            try:
                interface = IPv4Interface(
                    f"{as_text(one.get('address'))}/{int(as_number(one.get('prefix')) or 32)}"
                )
            except ValueError:
                continue
            yield as_number(one.get("index")), interface

    def _port_of(self, address: str) -> str:
        """The adapter that has this address; empty where none has it."""
        index = next((index for index, one in self._addresses if str(one.ip) == address), None)
        return self._adapters.get(index, "") if index is not None else ""

    def _sessions(self) -> Iterator[SessionFact]:
        for one in self.rows("sessions"):
            port, portal = self._port_of(as_text(one.get("own"))), as_text(one.get("portal"))
            if port and portal:
                yield SessionFact(self._name, port, portal, as_text(one.get("target")))

    def _strange_ports(self) -> Iterator[str]:
        """Sessions over adapters that are not among the physical ones: of a team or a virtual switch."""
        own = [as_text(one.get("own")) for one in self.rows("sessions")]
        for address in dict.fromkeys(one for one in own if one and not self._port_of(one)):
            shown = printable(address)
            yield f"sessions from {shown} are over no physical adapter, so the rules of ports do not see them"

    def _host(self, sessions: list[SessionFact]) -> AuditSubject:
        facts: dict[str, FactValue] = {}
        if "sessions" not in self._reasons:
            facts["sessions"] = sum(1 for _ in self.rows("sessions"))
        unknown: dict[str, str] = {
            "sessions": self.reason("sessions"),
            "receive_buffer_max_bytes": "Windows sizes its receive buffers itself",
        }
        offload = self._first("offload")
        if rss := as_text(offload.get("rss")):
            facts["os_rss"] = "on" if rss.lower() == "enabled" else "off"
        else:
            unknown["os_rss"] = self.reason("offload")
        self._add_profile(facts, unknown)
        self._add_restart(facts, unknown)
        self._add_target(facts, unknown)
        known = {one.get("portal") for one in self.rows("portals") if one.get("portal")}
        if known:
            facts["array_ports"] = len(known)
        else:
            unknown["array_ports"] = self.reason("portals")
        return AuditSubject("host", self._name, "windows", facts, unknown)

    def _add_profile(self, facts: dict[str, FactValue], unknown: dict[str, str]) -> None:
        """Auto-tuning of the profile that iSCSI uses; whether a changed profile has a filter."""
        profiles = {as_text(one.get("name")): one for one in self.rows("tcp")}
        filters = [
            as_text(one.get("name"))
            for one in self.rows("filters")
            if (as_number(one.get("first")), as_number(one.get("last"))) == (_ISCSI_PORT, _ISCSI_PORT)
            or as_text(one.get("prefix")) not in ("", "*")
        ]
        if not profiles:
            unknown |= dict.fromkeys(("receive_window_autotuning", "profile_changed"), self.reason("tcp"))
            return
        used = next((one for one in filters if one in profiles), "") or "Datacenter"
        level = as_text(profiles.get(used, next(iter(profiles.values()))).get("autotuning")).lower()
        if level:
            facts["receive_window_autotuning"] = "on" if level in ("normal", "experimental") else "off"
        else:
            unknown["receive_window_autotuning"] = self.reason("tcp")
        custom = [profiles[name] for name in _PROFILES if name in profiles]
        facts["profile_changed"] = any(
            as_number(one.get("ack")) not in (None, _DEFAULT_ACK) for one in custom
        )
        facts["profile_filter"] = bool(filters)

    def _add_restart(self, facts: dict[str, FactValue], unknown: dict[str, str]) -> None:
        pending = self._first("pending").get("reboot")
        if isinstance(pending, bool):
            facts["reboot_pending"] = pending
        else:
            unknown["reboot_pending"] = self.reason("pending")
        started = _time(self._system.get("started"))
        installed = [_time(one.get("installed")) for one in self.rows("adapters")]
        times = [one for one in installed if one is not None]
        if started is not None and times and len(times) == len(installed):
            facts["adapter_after_start"] = max(times) > started
        else:
            unknown["adapter_after_start"] = (
                "the start of the host or the installation of an adapter is not known"
            )

    def _add_target(self, facts: dict[str, FactValue], unknown: dict[str, str]) -> None:
        """Addresses of a target that this host serves, against its own."""
        portals = {as_text(one.get("address")): one.get("listens") is True for one in self.rows("target")}
        portals = {address: listens for address, listens in portals.items() if address.count(".") == 3}
        facts["serves_target"] = bool(portals)
        own = {str(one.ip) for _, one in self._addresses if not one.ip.is_loopback}
        if not own and portals:
            unknown |= dict.fromkeys(
                ("target_addresses_gone", "target_addresses_missing"), self.reason("addresses")
            )
            return
        facts["target_addresses_gone"] = ", ".join(sorted(portals.keys() - own)) or "none"
        missing = own - {address for address, listens in portals.items() if listens}
        facts["target_addresses_missing"] = ", ".join(sorted(missing)) or "none"

    def _paths(self) -> Iterator[AuditSubject]:
        seen = set()
        for one in self.rows("sessions"):
            name = PathKey(self._port_of(as_text(one.get("own"))), as_text(one.get("portal"))).name
            if name in seen:
                continue
            seen.add(name)
            facts: dict[str, FactValue] = {}
            if hop := as_text(one.get("hop")):
                facts["routed"] = hop not in ("0.0.0.0", "::")
            subnet = next(
                (str(own.network) for _, own in self._addresses if _inside(own, as_text(one.get("portal")))),
                "",
            )
            if subnet:
                facts["subnet"] = subnet
            yield AuditSubject("path", name, "windows", facts, {"routed": "Find-NetRoute gave no next hop"})

    def _volumes(
        self, sessions: list[SessionFact]
    ) -> tuple[list[AuditSubject], list[VolumePath], dict[str, str]]:
        """Disks, their paths, and the policy of each."""
        subjects = volume_subjects(self._document, self._reasons)
        policy, active = self._policy()
        paths: list[VolumePath] = []
        for disk in subjects:
            number = float(str(disk.facts["number"]))
            mine = [
                one for one in self.rows("sessions") if number in map(as_number, as_list(one.get("disks")))
            ]
            ends = [(self._port_of(as_text(one.get("own"))), as_text(one.get("portal"))) for one in mine]
            for at, (port, portal) in enumerate(ends):
                paths.append(
                    VolumePath(disk.name, self._name, port, portal, _is_active(policy, active, at, len(ends)))
                )
        del sessions
        return subjects, paths, {one.name: _POLICIES.get(policy or 0, "") for one in subjects}

    def _policy(self) -> tuple[int | None, int | None]:
        """The policy and the number of active paths, where all disks have the same ones."""
        found = {
            (as_number(one.get("policy")), as_number(one.get("active"))) for one in self.rows("policies")
        }
        if len(found) != 1:
            return None, None
        policy, active = found.pop()
        return (int(policy) if policy is not None else None), (int(active) if active is not None else None)

    def _arrays(
        self, sessions: list[SessionFact], volumes: list[AuditSubject], paths: list[VolumePath]
    ) -> Iterator[AuditSubject]:
        for target in dict.fromkeys(one.array for one in sessions if one.array):
            portals = {one.portal for one in sessions if one.array == target}
            names = {one.volume for one in paths if one.portal in portals}
            mine = [one for one in volumes if one.name in names]
            known = {
                as_text(one.get("portal")) for one in self.rows("portals") if one.get("target") == target
            }
            facts: dict[str, FactValue] = {"portals": len(portals | known)}
            vendors = {str(one.facts["vendor_id"]) for one in mine if "vendor_id" in one.facts}
            if len(vendors) == 1:
                facts["vendor_id"] = vendors.pop()
            kinds = {(one.facts.get("logical"), one.facts.get("physical")) for one in mine}
            if kinds and not any(None in kind for kind in kinds):
                facts["sector_kinds"] = len(kinds)
            yield AuditSubject("array", target, "windows", facts, {"sector_kinds": self.reason("disks")})


def _is_active(policy: int | None, active: int | None, at: int, count: int) -> bool | None:
    """Whether the path of that number carries I/O. Of a subset only the number of active paths is known."""
    if count == 1 or policy in _ALL_ACTIVE:
        return True
    if policy == _FAILOVER:
        return at == 0
    if active == count:
        return True
    return None


def _time(value: object) -> datetime | None:
    try:
        return datetime.fromisoformat(as_text(value).replace("Z", "+00:00"))
    except ValueError:
        return None


def _inside(own: IPv4Interface, address: str) -> bool:
    try:
        return IPv4Interface(address).ip in own.network
    except ValueError:
        return False
