"""Facts of an array: its portals and subnets, and of each LUN what INQUIRY, capacity, mode and log pages tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_address
from typing import Any

from linerate.advice.facts import AuditSubject, FactValue, SanFactSheet, safe_text
from linerate.plural import plural

_OF_A_LUN = ("write_cache", "optimal_io_bytes", "used_percent", "misaligned_bytes")
_ONE_ADDRESS = "eqlogic"
"""INQUIRY's vendor of arrays whose group shows one address and redirects each login to a port."""


@dataclass(frozen=True, slots=True)
class KnownNetworks:
    """IPv4 networks of this host, with prefix lengths; where they could not be read, why."""

    networks: tuple[str, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Lun:
    """A LUN of a target. `portals` are the addresses that lead to it."""

    target: str
    answer: Mapping[str, Any]
    portals: frozenset[str]

    @property
    def name(self) -> str:
        return f"LUN {self.answer['lun']} of {self.target}"


def array_sheet(place: str, targets: Sequence[Mapping[str, Any]], known: KnownNetworks) -> SanFactSheet:
    """The facts of the array at `place`, from the answer of `linerate.volumes.targets`."""
    luns = _disks(targets)
    volumes = [_volume(one) for one in luns]
    notes = [_note(one) for one in targets if one["failure"] or not one["luns"]]
    shut = [one["iqn"] for one in targets if one["failure"]]
    portals = frozenset(address for one in targets for address in _addresses(one))
    facts: dict[str, FactValue] = {"portals": len(portals)}
    unknown: dict[str, str] = {}
    vendors = {str(one.facts["vendor_id"]) for one in volumes if "vendor_id" in one.facts}
    if len(vendors) == 1:
        facts["vendor_id"] = vendors.pop()
    _add_subnets(facts, unknown, portals, known)
    _add_sector_kinds(facts, unknown, volumes, shut)
    return SanFactSheet((AuditSubject("array", place, "iscsi", facts, unknown), *volumes), notes=tuple(notes))


def _note(target: Mapping[str, Any]) -> str:
    why = f"was not looked at: {target['failure']}" if target["failure"] else "shows no LUN to this host"
    return safe_text(f"{target['iqn']} {why}")


def _disks(targets: Sequence[Mapping[str, Any]]) -> list[_Lun]:
    """The LUNs, each once: one that several targets show is told by its identifier. What is no disk is left out."""
    found: dict[str, _Lun] = {}
    for target in targets:
        for answer in target["luns"]:
            if answer["blame"] == "user":
                continue
            one = _Lun(target["iqn"], answer, _addresses(target))
            key = f"{answer['unit_id']} {answer['serial']} {answer['capacity_bytes']}"
            key = key if answer["unit_id"] else one.name
            earlier = found.get(key)
            found[key] = (
                _Lun(earlier.target, earlier.answer, earlier.portals | one.portals) if earlier else one
            )
    return list(found.values())


def _addresses(target: Mapping[str, Any]) -> frozenset[str]:
    """The addresses of a target's portals: those of IPv4 where it has some, for a port may have one of each."""
    hosts = [portal.partition(",")[0].rpartition(":")[0].strip("[]") for portal in target["portals"]]
    ipv6 = {host for host in hosts if isinstance(_parsed(host), IPv6Address)}
    return frozenset(set(hosts) - ipv6 or ipv6)


def _parsed(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _add_subnets(
    facts: dict[str, FactValue], unknown: dict[str, str], portals: Iterable[str], known: KnownNetworks
) -> None:
    """How many subnets the portals are in. iSCSI tells no prefix length: it is that of a network of this host."""
    hosts = sorted(portals)
    found = {host: address for host in hosts if isinstance(address := _parsed(host), IPv4Address)}
    networks = [IPv4Network(one) for one in known.networks]
    own = {host: next((one for one in networks if found[host] in one), None) for host in found}
    outside = [host for host, network in own.items() if network is None]
    if len(hosts) == 1:
        facts["subnets"] = 1
    elif len(found) < len(hosts):
        strange = next(host for host in hosts if host not in found)
        unknown["subnets"] = f"the subnet of {strange} is not known: it is no IPv4 address"
    elif len(outside) <= 1:
        facts["subnets"] = len(set(own.values()))
    else:
        reason = known.reason or "this host has no port there"
        unknown["subnets"] = (
            f"iSCSI tells no prefix length of {plural(len(outside), 'portal')} "
            f"({', '.join(outside[:2])}), and {reason}"
        )


def _add_sector_kinds(
    facts: dict[str, FactValue],
    unknown: dict[str, str],
    volumes: Sequence[AuditSubject],
    shut: Sequence[str],
) -> None:
    """How many pairs of block sizes its volumes have; one kind is known only where every volume has told its own."""
    sizes = [(one.facts.get("logical_block_bytes"), one.facts.get("physical_block_bytes")) for one in volumes]
    kinds = {size for size in sizes if None not in size}
    silent = [one.name for one, size in zip(volumes, sizes, strict=True) if None in size]
    if len(kinds) > 1 or (kinds and not silent and not shut):
        facts["sector_kinds"] = len(kinds)
    elif missing := [*silent, *shut]:
        unknown["sector_kinds"] = f"the block sizes of {missing[0]} are not known"
    else:
        unknown["sector_kinds"] = "no volume shows its block sizes"


def _volume(lun: _Lun) -> AuditSubject:
    answer = lun.answer
    facts: dict[str, FactValue] = {}
    unknown: dict[str, str] = {}
    if answer["failure"]:
        unknown |= dict.fromkeys(_OF_A_LUN, f"the LUN could not be looked at: {answer['failure']}")
    else:
        facts |= {
            "size_bytes": answer["capacity_bytes"],
            "logical_block_bytes": answer["block_bytes"],
            "product": answer["product"],
            "alua": answer["alua"],
        }
        if answer["vendor"]:
            facts["vendor_id"] = answer["vendor"]
        _add_blocks(facts, unknown, answer)
        _add_pages(facts, unknown, answer)
    if str(answer["vendor"]).lower().startswith(_ONE_ADDRESS):
        unknown["portals"] = (
            "the array shows one address and redirects each login to a port of its own choice"
        )
    else:
        facts["portals"] = len(lun.portals)
    return AuditSubject("volume", lun.name, "iscsi", facts, unknown)


def _add_blocks(facts: dict[str, FactValue], unknown: dict[str, str], answer: Mapping[str, Any]) -> None:
    """READ CAPACITY (16): physical blocks, and by how much the volume's beginning misses one."""
    physical, lowest = answer["physical_block_bytes"], answer["lowest_aligned_block"]
    if physical is None or lowest is None:
        unknown["misaligned_bytes"] = "the array does not tell the physical block size"
        return
    facts["physical_block_bytes"] = physical
    if missed := (lowest * answer["block_bytes"]) % physical:
        facts["misaligned_bytes"] = missed
    else:
        unknown["misaligned_bytes"] = "the volume fits; where its partitions begin is read on its hosts"


def _add_pages(facts: dict[str, FactValue], unknown: dict[str, str], answer: Mapping[str, Any]) -> None:
    """The caching mode page, VPD page B0, and the log page of thin provisioning."""
    if answer["write_cache"] is None:
        unknown["write_cache"] = "the array does not show the caching mode page of the volume"
    else:
        facts["write_cache"] = "on" if answer["write_cache"] else "off"
    if answer["optimal_io_bytes"] is None:
        unknown["optimal_io_bytes"] = "the array does not say its optimal I/O size"
    else:
        facts["optimal_io_bytes"] = answer["optimal_io_bytes"]
    if answer["thin"] is not None:
        facts["thin"] = answer["thin"]
    if answer["used_percent"] is not None:
        facts["used_percent"] = answer["used_percent"]
    elif answer["thin"]:
        unknown["used_percent"] = "the array does not say how full the space behind the thin volume is"
    else:
        unknown["used_percent"] = "how full the file systems of the volume are is read on its hosts"
