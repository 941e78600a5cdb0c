"""iSCSI disks of a Windows host, from the JSON of `facts.ps1`: sectors, partitions, clusters, caches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from linerate.advice.facts import AuditSubject, FactValue
from linerate.advice.outline import as_list, as_number, as_table, as_text


def volume_subjects(document: Mapping[str, Any], reasons: Mapping[str, str]) -> list[AuditSubject]:
    """A subject for each iSCSI disk."""
    disks = [
        one
        for one in map(as_table, as_list(document.get("disks")))
        if as_number(one.get("number")) is not None
    ]
    return [_volume(one, document, reasons) for one in disks]


def _volume(disk: Mapping[str, Any], document: Mapping[str, Any], reasons: Mapping[str, str]) -> AuditSubject:
    number = int(as_number(disk.get("number")) or 0)
    facts: dict[str, FactValue] = {"number": number}
    unknown: dict[str, str] = {}
    for key in ("logical", "physical"):
        if size := as_number(disk.get(key)):
            facts[key] = int(size)
    offsets = [as_number(one) for one in as_list(disk.get("offsets"))]
    physical = facts.get("physical")
    if physical and None not in offsets:
        facts["misaligned_bytes"] = max((int(one or 0) % int(physical) for one in offsets), default=0)
    else:
        unknown["misaligned_bytes"] = "the physical sector or the place of a partition is not known"
    if isinstance(cache := disk.get("write_cache"), bool):
        facts["write_cache"] = "on" if cache else "off"
    else:
        unknown["write_cache"] = "Windows does not say whether the disk has a write cache"
    _add_file_systems(disk, facts, unknown)
    vendor, product = as_text(disk.get("vendor")).strip(), as_text(disk.get("product")).strip()
    if vendor:
        facts["vendor_id"] = vendor
    known = [one for one in map(as_table, as_list(document.get("supported"))) if one]
    if known and vendor:
        facts["vendor_section"] = any(_claims(one, vendor, product) for one in known)
    else:
        unknown["vendor_section"] = reasons.get("supported") or "the facts have no supported hardware of MPIO"
    return AuditSubject("volume", f"disk {number}", "windows", facts, unknown)


def _add_file_systems(disk: Mapping[str, Any], facts: dict[str, FactValue], unknown: dict[str, str]) -> None:
    volumes = [one for one in map(as_table, as_list(disk.get("volumes"))) if one]
    clusters = [size for one in volumes if (size := as_number(one.get("cluster")))]
    if clusters:
        facts["cluster_bytes"] = int(min(clusters))
    else:
        unknown["cluster_bytes"] = "no file system of the disk is known"
    used = [
        100 * (size - free) / size
        for one in volumes
        if (size := as_number(one.get("size"))) and (free := as_number(one.get("free"))) is not None
    ]
    if used:
        facts["used_percent"] = round(max(used), 1)
    else:
        unknown["used_percent"] = "no file system of the disk is known"


def _claims(entry: Mapping[str, Any], vendor: str, product: str) -> bool:
    """Whether an entry of MPIO names the disk: 8 characters of vendor, 16 of product, cut at the end."""
    wanted = as_text(entry.get("vendor")).strip(), as_text(entry.get("product")).strip()
    if not wanted[0] or wanted[0].lower().startswith("vendor"):
        return False
    return vendor.lower().startswith(wanted[0].lower()) and product.lower().startswith(wanted[1].lower())
