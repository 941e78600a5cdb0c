"""Rules about the network: losses, windows, buffers, congestion control.

The figures are those of the load host's side of each connection. What the array retransmits, or where it
waits for this host's window, shows only on the array.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from linerate.analysis.rules.base import Doubt, StepRule, StepView, caution, note
from linerate.analysis.summary import UsageSummary, measured

RETRANSMITS_PERCENT_MAX = 0.1
LIMITED_PERCENT_MAX = 10.0
FEW = 20  # fewer segments say nothing about a rate, however short the run


@dataclass(frozen=True, slots=True)
class TcpShare:
    """A share that TCP keeps of itself, and what it means when it is large.

    It is told from `told_from` percent on or, where single events matter, from the first of `count` on; it is a caution
    above `caution_above` percent. `reason` shows `{percent}` and `{count}`, and `effect` `{delayed}`, the largest share
    of the I/Os that can have met one of `count`.
    """

    rule: str
    percent: Callable[[UsageSummary], float | None]
    reason: str
    advice: str
    told_from: float = 0.0
    caution_above: float = math.inf
    effect: str = ""
    count: Callable[[UsageSummary], int] | None = None

    def judge(self, step: StepView) -> Iterator[Doubt]:
        """Tell it, if it is large enough."""
        usage = step.summary.usage
        percent = self.percent(usage)  # None too where an older run directory does not say the whole
        count = self.count(usage) if self.count else None
        told = bool(count) if self.count else percent is not None and percent >= self.told_from
        if not told:
            return
        grave = percent is not None and percent > self.caution_above and (count is None or count >= FEW)
        reason = self.reason.format(count=count, percent=_shown(percent))
        if grave:
            delayed = min(100 * (count or 0) / max(step.summary.total.ios, 1), 100.0)
            yield caution(reason, self.effect.format(delayed=_shown(delayed)), self.advice)
        else:
            yield note(reason, self.advice)


# The share of retransmits is of the segments that carried data: a reading run sends little but commands.
TCP_SHARES = (
    TcpShare(
        rule="retransmits",
        percent=lambda usage: usage.retransmits_percent,
        count=lambda usage: measured(usage.retransmits),
        caution_above=RETRANSMITS_PERCENT_MAX,
        reason="{count} TCP retransmits by this host, {percent} of its segments with data; those of the array can be "
        "read on the array only",
        effect="up to {delayed} of the I/Os are too slow by a round trip, or by 200 ms and more where a timer ran out",
        advice="look for drops on the switch and the ports of both sides, flow control, MTU mismatch, and busy CPUs",
    ),
    TcpShare(
        rule="receive-window-limited",
        percent=lambda usage: usage.rwnd_limited_percent,
        told_from=LIMITED_PERCENT_MAX,
        reason="sending waited for the array's receive window in {percent} of the busy time",
        advice="the array reads its sockets too slowly, or its receive buffers are too small for writes",
    ),
    TcpShare(
        rule="send-buffer-limited",
        percent=lambda usage: usage.sndbuf_limited_percent,
        told_from=LIMITED_PERCENT_MAX,
        reason="sending waited for this host's send buffer in {percent} of the busy time",
        advice="raise send_buffer_bytes of the volumes, or net.ipv4.tcp_wmem",
    ),
)


def _shown(percent: float | None) -> str:
    if percent is None:
        return "an unknown share"
    return f"{percent:.0f} %" if percent >= 10 else f"{percent:.2g} %"


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
            yield caution(
                f"volume {volume.get('name')} uses congestion control {used} instead of {asked}",
                f"its figures are those of {used}; this run has none of {asked}",
                "load the kernel module, or allow it in net.ipv4.tcp_allowed_congestion_control",
            )
    if len(found) > 1:
        yield caution(
            "sessions differ in congestion control: "
            + ", ".join(f"{name} x {n}" for name, n in found.items()),
            _rates_by_control(step),
            "set congestion_control for all volumes",
        )
    if found["bbr"] and not any(wanted.values()):
        yield note(
            "the sessions use bbr because it is this host's default; most hosts use cubic",
            "set congestion_control, so that results of different hosts can be compared",
        )


def _rates_by_control(step: StepView) -> str:
    """What a volume of each kind did on average."""
    rates = {part.name: part.total.mib_s for part in step.summary.volumes}
    by_control: dict[str, list[float]] = {}
    for volume in step.volume_facts:
        used = (volume.get("session") or {}).get("congestion_control")
        if used and volume.get("name") in rates:
            by_control.setdefault(used, []).append(rates[volume["name"]])
    means = (f"{name} {sum(values) / len(values):.3g} MB/s" for name, values in by_control.items())
    return f"the sum mixes volumes of different kinds, on average: {', '.join(means)} per volume"


def _guest_session(step: StepView) -> Iterator[Doubt]:
    """A server can take a user that it does not know as a guest, and say so in its answer only."""
    user_of = {volume.get("name"): volume.get("user") for volume in step.spec.get("volumes", ())}
    for volume in step.volume_facts:
        name = volume.get("name")
        if user_of.get(name) and (volume.get("session") or {}).get("guest"):
            yield note(
                f"volume {name}: the server does not know user {user_of[name]} and took it as a guest, whose messages "
                "are neither signed nor encrypted",
                "correct the user, or see on the server why it maps users to guest (Samba: map to guest)",
            )


RULES = (
    *(StepRule(share.rule, share.judge) for share in TCP_SHARES),
    StepRule("congestion-control", _congestion_control),
    StepRule("guest-session", _guest_session),
)
