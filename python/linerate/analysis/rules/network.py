"""Rules about the network: losses, windows, buffers, congestion control.

The figures are those of the load host's side of each connection. What the array retransmits, or where it
waits for this host's window, shows only on the array.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from linerate.analysis.rules.base import Doubt, StepRule, StepView

RETRANSMITS_PERCENT_MAX = 0.1
RETRANSMITS_FEW = 20  # fewer say nothing about a rate, however short the run
LIMITED_PERCENT_MAX = 10.0


def _retransmits(step: StepView) -> Iterator[Doubt]:
    """Judged by the share of the segments that carried data from here: a reading run sends little but commands."""
    usage = step.summary.usage
    if not usage.retransmits:
        return
    percent = usage.retransmits_percent
    if percent is None:  # an older run directory does not say how many segments were sent
        share, grave = "", False
    else:
        share = f", {percent:.2g} % of those with data"
        grave = percent > RETRANSMITS_PERCENT_MAX and usage.retransmits >= RETRANSMITS_FEW
    yield Doubt(
        "suspect" if grave else "note",
        f"this host sent {usage.retransmits} TCP segments again{share}; the array's repeats show only there",
        "look for drops on the switch and the ports of both sides, flow control, MTU mismatch, and busy CPUs",
    )


def _receive_window(step: StepView) -> Iterator[Doubt]:
    percent = step.summary.usage.rwnd_limited_percent
    if percent is not None and percent >= LIMITED_PERCENT_MAX:
        yield Doubt(
            "note",
            f"sending waited for the array's receive window in {percent:.0f} % of the busy time",
            "the array reads its sockets too slowly, or its receive buffers are too small for writes",
        )


def _send_buffer(step: StepView) -> Iterator[Doubt]:
    percent = step.summary.usage.sndbuf_limited_percent
    if percent is not None and percent >= LIMITED_PERCENT_MAX:
        yield Doubt(
            "note",
            f"sending waited for this host's send buffer in {percent:.0f} % of the busy time",
            "raise send_buffer_bytes of the volumes, or net.ipv4.tcp_wmem",
        )


def _congestion_control(step: StepView) -> Iterator[Doubt]:
    wanted = {
        v.get("name"): (v.get("iscsi") or {}).get("congestion_control") for v in step.spec.get("volumes", ())
    }
    found: Counter[str] = Counter()
    for volume in step.volume_facts:
        used = (volume.get("session") or {}).get("congestion_control")
        if not used:
            continue
        found[used] += 1
        asked = wanted.get(volume.get("name"))
        if asked and asked != used:
            yield Doubt(
                "suspect",
                f"volume {volume.get('name')} uses congestion control {used} instead of {asked}",
                "load the kernel module, or allow it in net.ipv4.tcp_allowed_congestion_control",
            )
    if len(found) > 1:
        yield Doubt(
            "suspect",
            "sessions differ in congestion control: "
            + ", ".join(f"{name} x {n}" for name, n in found.items()),
            "set congestion_control for all volumes",
        )
    if found["bbr"] and not any(wanted.values()):
        yield Doubt(
            "note",
            "the sessions use bbr because it is this host's default; most hosts use cubic",
            "set congestion_control, so that results of different hosts can be compared",
        )


RULES = (
    StepRule("retransmits", _retransmits),
    StepRule("receive-window-limited", _receive_window),
    StepRule("send-buffer-limited", _send_buffer),
    StepRule("congestion-control", _congestion_control),
)
