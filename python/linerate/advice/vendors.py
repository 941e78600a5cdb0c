"""How many subnets the vendors of arrays ask for, by what their volumes and their users call them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from linerate.advice.facts import AuditSubject, SanFactSheet


@dataclass(frozen=True, slots=True)
class ArrayVendor:
    """A vendor. `ids` begin the vendor field of an INQUIRY (SPC-5), in lower case."""

    name: str
    ids: tuple[str, ...]
    subnets: Literal["one for each port", "one", "not published"]


VENDORS = (
    ArrayVendor("equallogic", ("eqlogic",), "one"),
    ArrayVendor("dell", ("dell",), "one for each port"),
    ArrayVendor("dell-emc", ("dgc", "emc", "dellemc"), "one for each port"),
    ArrayVendor("microsoft", ("msft",), "one for each port"),
    ArrayVendor("netapp", ("netapp", "lsi"), "not published"),
    ArrayVendor("netgear", ("netgear", "readynas"), "one for each port"),
    ArrayVendor("qnap", ("qnap",), "one for each port"),
    ArrayVendor("synology", ("synology", "synoiscs"), "one for each port"),
    ArrayVendor("d-link", ("d-link", "dlink"), "not published"),
)
"""Seed 003, lines 436 to 458; D-Link is there for its chunk size (004:103)."""


def with_vendors(sheet: SanFactSheet, answered: str | None) -> SanFactSheet:
    """The sheet with `vendor` and `subnets_wanted` of each array. An answer goes before what its volumes say."""
    return replace(
        sheet, subjects=tuple(_told(one, answered) if one.kind == "array" else one for one in sheet.subjects)
    )


def _told(array: AuditSubject, answered: str | None) -> AuditSubject:
    said = str(array.facts.get("vendor_id", "")).lower()
    vendor = next(
        (one for one in VENDORS if one.name == answered or (answered is None and said.startswith(one.ids))),
        None,
    )
    if vendor is None:
        shown = f"the vendor {said!r} is not in the table" if said else "the vendor is not known"
        names = ", ".join(one.name for one in VENDORS)
        reason = f"{shown}; ask the vendor, or say --answer vendor=NAME ({names})"
        return array.having({"vendor": said} if said else {}, {"subnets_wanted": reason, "vendor": reason})
    wanted = {"one": 1, "one for each port": array.facts.get("portals")}.get(vendor.subnets)
    if wanted is None:
        return array.having(
            {"vendor": vendor.name}, {"subnets_wanted": f"{vendor.name} has published no number of subnets"}
        )
    return array.having({"vendor": vendor.name, "subnets_wanted": wanted})
