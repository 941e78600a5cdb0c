"""Volumes of a Linux host: disks of iSCSI sessions, joined by multipath maps; block sizes, caches, file systems."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from linerate.advice.facts import AuditSubject, FactValue
from linerate.advice.linux.iscsi import KernelSession
from linerate.advice.linux.source import LinuxSource
from linerate.advice.outline import as_list, as_table, as_text
from linerate.errors import HostError

_BLOCK = "sys/class/block"
_SECTOR_BYTES = 512  # the unit of `start`
_HOLDERS_MAX = 256
_ENTRY = re.compile(r"\b(vendor|product)\s+\"([^\"]{0,200})\"")
_PLAIN = re.compile(r"[\w .^$*?\-+|()\[\],/]*")
_NESTED = re.compile(r"\)[*+?{]")
_PRODUCT_LENGTH_MAX = 16  # of an INQUIRY (SPC-5)


@dataclass(frozen=True, slots=True)
class MultipathMap:
    """A map of multipathd: its policy, and disk -> whether it is in the group that carries I/O."""

    name: str
    policy: str
    disks: Mapping[str, bool]


@dataclass(frozen=True, slots=True)
class HostVolume:
    """A volume with its disks; `active` is None for a disk of which that is not known."""

    name: str
    disks: Mapping[str, bool | None]
    policy: str
    subject: AuditSubject


def multipath_maps(source: LinuxSource) -> list[MultipathMap]:
    """The maps of multipathd. Raises HostError where it cannot be asked."""
    found = []
    for one in map(
        as_table, as_list(as_table(source.json("multipathd", "show", "maps", "json")).get("maps"))
    ):
        groups = [as_table(group) for group in as_list(one.get("path_groups"))]
        disks = {
            as_text(as_table(path).get("dev")): as_text(group.get("dm_st")) == "active"
            for group in groups
            for path in as_list(group.get("paths"))
        }
        active = next((group for group in groups if as_text(group.get("dm_st")) == "active"), {})
        found.append(MultipathMap(as_text(one.get("name")), as_text(active.get("selector")), disks))
    return found


def host_volumes(source: LinuxSource, sessions: Sequence[KernelSession]) -> list[HostVolume]:
    """The volumes that the sessions reach."""
    disks = [disk for session in sessions for disk in session.disks]
    if not disks:
        return []
    try:
        maps, reason = multipath_maps(source), ""
    except HostError as error:
        maps, reason = [], f"multipathd cannot be asked: {error.message}"
    known, why_not = _known_products(source)
    fullness = _fullness(source)
    volumes = []
    for name, members, policy in _joined(source, disks, maps):
        subject = _volume(source, name, list(members), fullness)
        unknown = (
            {"round_robin_over_mesh": reason, "active_paths": reason} if reason and len(members) > 1 else {}
        )
        subject = subject.having(
            _section(source, next(iter(members)), known), {"vendor_section": why_not} if why_not else {}
        )
        volumes.append(HostVolume(subject.name, members, policy, subject.having({}, unknown)))
    return volumes


def _joined(
    source: LinuxSource, disks: Sequence[str], maps: Sequence[MultipathMap]
) -> Iterator[tuple[str, Mapping[str, bool | None], str]]:
    """Maps first; then disks that no map has, joined by their world wide name."""
    mapped: set[str] = set()
    for one in maps:
        ours = {disk: active for disk, active in one.disks.items() if disk in disks}
        if ours:
            mapped |= ours.keys()
            yield one.name, ours, one.policy
    others: dict[str, dict[str, bool | None]] = {}
    for disk in disks:
        if disk not in mapped:
            name = source.maybe(f"{_BLOCK}/{disk}/device/wwid") or disk
            others.setdefault(name, {})[disk] = None
    for name, members in others.items():
        alone = len(members) == 1
        yield (
            (next(iter(members)) if alone else name),
            dict.fromkeys(members, True if alone else None),
            "",
        )


def _volume(
    source: LinuxSource, name: str, disks: Sequence[str], fullness: Mapping[str, float]
) -> AuditSubject:
    facts: dict[str, FactValue] = {}
    unknown: dict[str, str] = {}
    folder = f"{_BLOCK}/{disks[0]}"
    cache = source.maybe(f"{folder}/queue/write_cache")
    if cache:
        facts["write_cache"] = "on" if cache == "write back" else "off"
    else:
        unknown["write_cache"] = "the kernel does not show the caching mode of the disk"
    optimal = source.number(f"{folder}/queue/optimal_io_size")
    if optimal:
        facts["optimal_io_bytes"] = optimal
    else:
        unknown["optimal_io_bytes"] = "the array does not say its optimal I/O size"
    for key in ("logical", "physical"):
        if (size := source.number(f"{folder}/queue/{key}_block_size")) is not None:
            facts[f"{key}_block_bytes"] = size
    vendor = source.maybe(f"{folder}/device/vendor")
    if vendor:
        facts["vendor_id"] = vendor
    held = list(_held(source, disks))
    missed = [_missed_bytes(source, one) for one in held]
    if facts.get("physical_block_bytes"):
        facts["misaligned_bytes"] = max(missed, default=0)
    else:
        unknown["misaligned_bytes"] = "the kernel does not show the physical block size"
    numbers = [source.maybe(f"{_BLOCK}/{one}/dev") or "" for one in held]
    used = [fullness[number] for number in numbers if number in fullness]
    if used:
        facts["used_percent"] = max(used)
    else:
        unknown["used_percent"] = "no file system of this volume is mounted here"
    return AuditSubject("volume", name, "linux", facts, unknown)


def _held(source: LinuxSource, disks: Iterable[str]) -> Iterator[str]:
    """The disks, their partitions, and what is built on them (multipath, LVM), each once."""
    waiting = list(disks)
    seen: set[str] = set()
    while waiting and len(seen) < _HOLDERS_MAX:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        yield one
        folder = f"{_BLOCK}/{one}"
        waiting += [
            name for name in source.names(folder) if source.maybe(f"{folder}/{name}/partition") is not None
        ]
        waiting += source.names(f"{folder}/holders")


def _missed_bytes(source: LinuxSource, block: str) -> int:
    """By how much a partition misses a physical block; 0 for a whole disk."""
    folder = f"{_BLOCK}/{block}"
    offset = source.number(f"{folder}/alignment_offset")
    if offset and offset > 0:
        return offset
    start = source.number(f"{folder}/start")
    physical = source.number(f"{folder}/../queue/physical_block_size") if start else None
    if start and physical is None and (place := source.link(folder)):
        disk = place.rstrip("/").split("/")[-2]
        physical = source.number(f"{_BLOCK}/{disk}/queue/physical_block_size")
    return (start * _SECTOR_BYTES) % physical if start and physical else 0


def _fullness(source: LinuxSource) -> dict[str, float]:
    """Device number -> used percent of the file system that is mounted from it."""
    found: dict[str, float] = {}
    for line in (source.maybe("proc/self/mountinfo") or "").splitlines():
        words = line.split(" ")
        if len(words) < 5 or words[2].startswith("0:") or words[2] in found:
            continue
        place = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), words[4])
        try:
            system = source.file_system(place)
        except OSError:
            continue
        used = system.f_blocks - system.f_bfree
        if system.f_blocks > 0 and used + system.f_bavail > 0:
            found[words[2]] = round(100 * used / (used + system.f_bavail), 1)
    return found


def _known_products(source: LinuxSource) -> tuple[list[tuple[str, str]], str]:
    """Patterns of vendor and product that multipathd knows, or none and why."""
    try:
        text = source.run(("multipathd", "show", "config"))
    except HostError as error:
        return [], f"multipathd cannot be asked: {error.message}"
    pairs: list[tuple[str, str]] = []
    vendor = ""
    for key, value in _ENTRY.findall(text):
        if key == "vendor":
            vendor = value
        else:
            pairs.append((vendor, value))
    return pairs, ""


def _section(source: LinuxSource, disk: str, known: Sequence[tuple[str, str]]) -> dict[str, FactValue]:
    """Whether a device section of multipath names the disk's vendor and product."""
    if not known:
        return {}
    vendor, product = (source.maybe(f"{_BLOCK}/{disk}/device/{key}") or "" for key in ("vendor", "model"))
    found = any(_fits(pattern[0], vendor) and _fits(pattern[1], product) for pattern in known)
    return {"vendor_section": found}


def _fits(pattern: str, text: str) -> bool:
    """Whether a pattern of multipath fits. One that fits everything names no vendor; a strange one fits nothing."""
    if pattern in ("", ".*") or not _PLAIN.fullmatch(pattern) or _NESTED.search(pattern):
        return pattern == ".*" and bool(text)
    try:
        return re.match(pattern, text[:_PRODUCT_LENGTH_MAX]) is not None
    except re.error:
        return False
