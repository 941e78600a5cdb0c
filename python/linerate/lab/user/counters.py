"""The fabric's counters of a link under the names that every fabric uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_AT_THE_SWITCH = ("queue", "buffer", "headroom")
_ON_THE_WIRE = ("loss", "down", "mtu")


def link_counters(name: str, sent: Mapping[str, Any], received: Mapping[str, Any]) -> dict[str, float]:
    """`port.NAME.*` from both directions of a cable, seen from the node (or from the trunk's switch `a`).

    `drops` are the adapter's own, in its queue or its receive ring; `switch_drops` those in the switch's buffer towards
    it; `lost` what a wire did not deliver. `pauses` counts how often the node was stopped, `switch_pauses` how often
    the switch was. `switch_queue_bytes_max` is the deepest that any priority's buffer ever was.
    """
    prefix = f"port.{name}."
    to_switch, to_node = sent["drops"], received["drops"]
    return {
        f"{prefix}bytes_sent": sent["bytes"],
        f"{prefix}frames_sent": sent["frames"],
        f"{prefix}bytes_received": received["bytes"],
        f"{prefix}frames_received": received["frames"],
        f"{prefix}drops": sum(to_switch[cause] for cause in _AT_THE_SWITCH) + to_node["ring"],
        f"{prefix}switch_drops": sum(to_node[cause] for cause in _AT_THE_SWITCH),
        f"{prefix}lost": sum(lane[cause] for lane in (to_switch, to_node) for cause in _ON_THE_WIRE),
        f"{prefix}pauses": _total(sent, "pauses"),
        f"{prefix}switch_pauses": _total(received, "pauses"),
        f"{prefix}switch_queue_bytes_max": max(
            (queue["queued_bytes_max"] for queue in _queues(received)), default=0
        ),
    }


def queue_lengths(name: str, sent: Mapping[str, Any], received: Mapping[str, Any]) -> dict[str, float]:
    """`port.NAME.queue_bytes`: what waits at the node's end now; `.switch_queue_bytes`: at the switch's."""
    return {
        f"port.{name}.queue_bytes": _total(sent, "queued_bytes"),
        f"port.{name}.switch_queue_bytes": _total(received, "queued_bytes"),
    }


def each_link_counters(name: str, links: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """`link.NAME.N.bytes_sent` and `.bytes_received` of each of several links that are one, N from 1."""
    counted: dict[str, float] = {}
    for number, link in enumerate(links, start=1):
        counted[f"link.{name}.{number}.bytes_sent"] = link["outbound"]["bytes"]
        counted[f"link.{name}.{number}.bytes_received"] = link["inbound"]["bytes"]
    return counted if len(links) > 1 else {}


def _total(lane: Mapping[str, Any], counter: str) -> float:
    return float(sum(queue[counter] for queue in _queues(lane)))


def _queues(lane: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(lane["queues"].values())
