"""A topology and its counters as the page shows them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from linerate.lab import utilisation
from linerate.san import (
    NARROW,
    PAGE,
    Drawing,
    Fault,
    Topology,
    drawing,
    is_joined,
    links_hit,
    paths,
    rate_text,
)
from linerate.watch.feed import Update
from linerate.watch.run.point import MIB, short

SAN_KINDS = ("san", "traffic")
"""The kinds of messages of a SAN."""
PATHS_MOST = 64
"""Paths in the table."""
_SILENT = ("controller", "one_way")
"""Faults that leave a link up and let no path through it."""
_DROPS = {"drops": "drops", "switch_drops": "switch_drops", "lost": "lost"}

Figures = dict[str, float | None]


def san_update(topology: Topology, faults: Sequence[Fault], **about: Any) -> Update:
    """What changes only when somebody changes the SAN. `about` says whose SAN it is."""
    hit = {fault.label: links_hit(topology, fault) for fault in faults}
    silent = {link for fault in faults if fault.kind in _SILENT for link in hit[fault.label]}
    down = {name for name, link in topology.links.items() if not link.up}
    counts = topology.link_counts
    shown = {
        **about,
        "topology": topology.name,
        "description": topology.description,
        "faults": [{"label": label, "links": list(links)} for label, links in hit.items()],
        "links": [
            {
                "name": name,
                "up": link.up,
                "rate": f"{counts[name]} x {rate_text(link.rate_bits_per_s)}"
                if counts[name] > 1
                else rate_text(link.rate_bits_per_s),
            }
            for name, link in topology.links.items()
        ],
        "paths": _paths(
            topology, down | silent, {fault.target for fault in faults if fault.kind == "address"}
        ),
        "drawings": {
            "wide": _drawn(drawing(topology, PAGE, dict.fromkeys(topology.links, ""))),
            "narrow": _drawn(drawing(topology, NARROW, {})),
        },
    }
    return Update("san", shown, "san")


def traffic_update(topology: Topology, before: Mapping[str, float], after: Mapping[str, float]) -> Update:
    """What each link carried between two readings of the counters, and its drops and queues at the second one.

    Counters of drops are cumulative: `drops` are all so far, `new_drops` those between the readings.
    """
    seconds = after["machine.clock_s"] - before["machine.clock_s"]
    used = utilisation(topology.line_rates, before, after)
    found = {name: _figures(name, used[name], seconds, before, after) for name in used}
    return Update("traffic", {"links": found}, "traffic")


def _figures(
    link: str, share: float, seconds: float, before: Mapping[str, float], after: Mapping[str, float]
) -> Figures:
    def passed(counter: str) -> float:
        return after.get(f"port.{link}.{counter}", 0.0) - before.get(f"port.{link}.{counter}", 0.0)

    dropped = {name: after.get(f"port.{link}.{counter}", 0.0) for name, counter in _DROPS.items()}
    return {
        "sent_mib_s": short(passed("bytes_sent") / seconds / MIB),
        "received_mib_s": short(passed("bytes_received") / seconds / MIB),
        "load_percent": short(100 * share),
        **dropped,
        "new_drops": sum(map(passed, _DROPS.values())),
        "queue_bytes": after.get(f"port.{link}.queue_bytes"),
        "switch_queue_bytes": after.get(f"port.{link}.switch_queue_bytes"),
    }


def _paths(topology: Topology, broken: Collection[str], lost: Collection[str]) -> list[dict[str, Any]]:
    """Every way from a host to an array, and whether frames can take it now."""
    every = [path for host in topology.hosts for path in paths(topology, host.name)][:PATHS_MOST]
    return [
        {
            "name": path.name,
            "host": f"{path.host}.{path.host_interface}",
            "array": f"{path.array}.{path.array_interface}",
            "is_alive": is_joined(topology, path, broken)
            and not {f"{path.host}.{path.host_interface}", f"{path.array}.{path.array_interface}"}
            & set(lost),
        }
        for path in every
    ]


def _drawn(found: Drawing) -> dict[str, Any]:
    return {
        "width": found.width,
        "height": found.height,
        "elements": [
            {"tag": one.tag, "attributes": dict(one.attributes), "text": one.text, "link": one.link}
            for one in found.elements
        ],
    }
