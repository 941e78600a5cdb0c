"""What held a case back: one sentence per case and workload, with the figures that say so.

The limits are asked in the order in which they hide one another. A fabric that lags makes every other figure
doubtful. A load that was paced and kept its pace was held back by nothing. A full link explains all other signs.
A window or a buffer that is too small leaves link and CPUs idle, and TCP says so itself: the rest of the time it waits
for the network, where loss makes it slow on an empty link. Disks that never rest are a limit however busy the
machine is beside them. Then the CPUs. When nothing is exhausted, a closed loop is bound by time: so many I/Os in
flight, each taking so long, and the round trip says how much of it is the network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Literal

from linerate.analysis.limits.wire import line_rate_text
from linerate.analysis.observation import Observation

Limit = Literal[
    "fabric lag",
    "host CPU",
    "array CPU",
    "machine CPU",
    "receive window",
    "send buffer",
    "link",
    "loss",
    "disks",
    "array service",
    "latency",
    "load",
    "unknown",
]

DISKS_FULL_PERCENT = 90.0
FABRIC_LAG_MS_MAX = 1.0  # below, it limits nothing
FABRIC_GIVEN_UP_PERCENT = 1.0
FABRIC_FULL_CORES = 0.9  # it is one thread
LINK_FULL_PERCENT = 95.0
LOSS_PERCENT_MIN = 0.5  # of the segments; below, one fast retransmit costs less than a verdict's margin
LINK_LOSSY_PERCENT = 90.0
TCP_LIMITED_PERCENT_MIN = 30.0
MACHINE_FULL_PERCENT = 90.0
FOREIGN_PERCENT_MIN = 5.0
HOST_FULL_PERCENT = 80.0  # where vdbench warns
NETWORK_SHARE_PERCENT = 50.0
PACE_KEPT = 0.98  # of the rate asked for: below, `check` says that the SAN cannot follow

WORST = frozenset({"io_errors", "failover_s", "slow_ios", "response_max_ms", "stall_s", "paths_down"})
"""Figures of faults: one block in which the application noticed is one too many."""

Figures = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Attribution:
    """What held a case back under a workload: one sentence with the figures that say so.

    `figures` are the medians over the blocks that the sentence was drawn from.
    """

    case: str
    workload: str
    limit: Limit
    sentence: str
    figures: Mapping[str, float]


def attribute(observations: Iterable[Observation]) -> tuple[Attribution, ...]:
    """What limited every case under every workload, from its typical figures over the blocks, in the order seen."""
    runs: dict[tuple[str, str], list[Figures]] = {}
    for seen in observations:
        runs.setdefault((seen.case, seen.workload), []).append(seen.values)
    return tuple(_attribution(case, workload, _typical(values)) for (case, workload), values in runs.items())


def _attribution(case: str, workload: str, figures: Figures) -> Attribution:
    for limit, explain in _LIMITS:
        sentence = explain(figures)
        if sentence:
            return Attribution(case, workload, limit, sentence, figures)
    return Attribution(case, workload, "unknown", "No counter says what limited it.", figures)


def _typical(runs: list[Figures]) -> Figures:
    """Medians over the blocks; of what must never happen, the worst."""
    names = dict.fromkeys(name for run in runs for name in run)
    seen = {name: [run[name] for run in runs if name in run] for name in names}
    return {name: max(values) if name in WORST else median(values) for name, values in seen.items()}


def _fabric(figures: Figures) -> str:
    """One late turn is the scheduler's; to limit the SAN, the fabric has to be full or give time up."""
    lag_ms = figures.get("fabric_lag_ms", 0.0)
    given_up, cores = figures.get("fabric_given_up_percent", 0.0), figures.get("fabric_cores", 0.0)
    if lag_ms <= FABRIC_LAG_MS_MAX or (given_up < FABRIC_GIVEN_UP_PERCENT and cores < FABRIC_FULL_CORES):
        return ""
    return (
        f"The user-space fabric limited the SAN, not what it models: it fell up to {lag_ms:.1f} ms behind, gave up "
        f"{given_up:.1f} % of the time and used {cores:.2f} CPUs."
    )


def _paced(figures: Figures) -> str:
    """A load that asked for so much and got it is no measure of what the SAN can do, however full something was."""
    asked, done = figures.get("asked_iops"), figures.get("iops")
    if not asked or done is None or done < PACE_KEPT * asked:
        return ""
    took = f", {figures['response_ms']:.3g} ms each" if "response_ms" in figures else ""
    rates = f"{asked:.0f} IOPS and {done:.0f} were done"
    return f"Nothing held it back: the load was paced at {rates}{took}{_idle(figures)}."


def _link(figures: Figures) -> str:
    links = {name: value for name, value in figures.items() if name.startswith("link.")}
    if not links:
        return ""
    busiest = max(links, key=links.__getitem__)
    if links[busiest] < LINK_FULL_PERCENT:
        return ""
    name, direction = busiest.removeprefix("link.").removesuffix("_percent").rsplit(".", 1)
    verb = "sent" if direction == "sent" else "received"
    loss = figures.get("retransmit_percent", 0.0)
    again = f", with {loss:.2g} % retransmits" if loss >= LOSS_PERCENT_MIN else ""
    # counters and clock are not read at one instant, so a full link may show a little more
    percent = min(links[busiest], 100.0)
    mbit_s = figures.get(f"line.{name}.mbit_s")
    rate = f" at {line_rate_text(mbit_s)}" if mbit_s else ""
    return f"The link {name}{rate} was full: it {verb} at {percent:.0f} % of its rate{again}."


def _loss(figures: Figures) -> str:
    loss = figures.get("retransmit_percent", 0.0)
    if loss < LOSS_PERCENT_MIN or figures.get("link_percent", 0.0) >= LINK_LOSSY_PERCENT:
        return ""
    dropped = figures.get("dropped_frames")
    where = f"; adapters and switches dropped {dropped:.0f} frames" if dropped else ""
    return f"Loss: {loss:.2g} % of the TCP segments were retransmits{where}{_idle(figures)}."


def _receive_window(figures: Figures) -> str:
    return _tcp_limited(figures, "rwnd", {"host": "array's", "array": "host's"}, "receive window")


def _send_buffer(figures: Figures) -> str:
    return _tcp_limited(figures, "sndbuf", {"host": "host's", "array": "array's"}, "send buffer")


def _tcp_limited(figures: Figures, key: str, owner: Mapping[str, str], what: str) -> str:
    """The sender knows what it waited for: the peer's window, or its own buffer."""
    shares = {side: figures.get(f"{side}_{key}_limited_percent", 0.0) for side in owner}
    side = max(shares, key=shares.__getitem__)
    if shares[side] < TCP_LIMITED_PERCENT_MIN:
        return ""
    return (
        f"The {owner[side]} {what} was too small: the {side} waited for it in {shares[side]:.0f} % of the time "
        f"in which it had data to send{_idle(figures)}."
    )


def _disks(figures: Figures) -> str:
    """Disks that always have something to do: what each host I/O costs them decides the rate."""
    busy = figures.get("disk_busy_percent", 0.0)
    if busy < DISKS_FULL_PERCENT:
        return ""
    return f"The disks were the limit: {_disk_words(figures)}{_idle(figures)}."


def _disk_words(figures: Figures) -> str:
    """What the disks did, and what a host's I/O was to them; empty if they were not watched."""
    if "disk_busy_percent" not in figures:
        return ""
    # their counters and the clock are not read at one instant
    words = [f"busy {min(figures['disk_busy_percent'], 100.0):.0f} % of the time"]
    if "disk_service_ms" in figures:
        words.append(f"{figures['disk_service_ms']:.3g} ms of work per disk I/O")
    if "disk_ios_per_io" in figures:
        words.append(f"{figures['disk_ios_per_io']:.2f} disk I/Os per host I/O")
    if "disk_writes_per_write" in figures:
        words.append(f"{figures['disk_writes_per_write']:.2f} disk writes per host write")
    if "disk_written_per_byte" in figures:
        words.append(f"{figures['disk_written_per_byte']:.2f} bytes written per byte")
    if "full_stripe_percent" in figures:
        words.append(f"{figures['full_stripe_percent']:.0f} % of the stripe writes whole")
    if "task_percent" in figures:
        words.append(f"a background task at {figures['task_percent']:.1f} %")
    return ", ".join(words)


def _machine(figures: Figures) -> str:
    """All sides share one machine: name what each took."""
    busy, stolen = figures.get("machine_busy_percent", 0.0), figures.get("stolen_percent", 0.0)
    if busy + stolen < MACHINE_FULL_PERCENT:
        return ""
    parts = [
        f"{name} {figures[key]:.2f}"
        for name, key in (("host", "host_cores"), ("array", "array_cores"), ("fabric", "fabric_cores"))
        if key in figures
    ]
    taken = f" (CPUs: {', '.join(parts)})" if parts else ""
    foreign = figures.get("foreign_percent", 0.0)
    others = f", {foreign:.0f} % of it with other programs" if foreign > FOREIGN_PERCENT_MIN else ""
    if stolen > FOREIGN_PERCENT_MIN:
        others += f", and {stolen:.0f} % CPU steal"
    return f"The machine that carries the whole SAN was {busy:.0f} % busy{others}{taken}{_idle(figures, cpu=False)}."


def _host(figures: Figures) -> str:
    return "" if "machine_busy_percent" in figures else _side_full(figures, "host")


def _array(figures: Figures) -> str:
    return "" if "machine_busy_percent" in figures else _side_full(figures, "array")


def _side_full(figures: Figures, side: str) -> str:
    busy = figures.get(f"{side}_cpu_percent", 0.0)
    if busy < HOST_FULL_PERCENT:
        return ""
    return f"The {side}'s CPUs were {busy:.0f} % busy{_idle(figures, cpu=False)}."


def _service(figures: Figures) -> str:
    return _waiting(figures, network=False)


def _latency(figures: Figures) -> str:
    return _waiting(figures, network=True)


def _waiting(figures: Figures, *, network: bool) -> str:
    """Nothing is exhausted: the queue depth over the time of one I/O is the rate (Little's law)."""
    if not {"queue_depth", "response_ms", "iops"} <= figures.keys():
        return ""
    response_ms, depth = figures["response_ms"], figures["queue_depth"]
    rtt_ms = figures.get("rtt_us", 0.0) / 1000
    share = 100 * rtt_ms / response_ms if response_ms > 0 else 0.0
    if network != (share >= NETWORK_SHARE_PERCENT):
        return ""
    spent = f", {rtt_ms:.3g} ms of it the round trip" if 0 < rtt_ms < response_ms else ""
    if rtt_ms >= response_ms:  # TCP's is smoothed, and holds the time until the peer acknowledges
        spent = f", no more than TCP's round trip of {rtt_ms:.3g} ms"
    cause = "Latency" if network else "The time that the array and the hosts take per I/O"
    disks = _disk_words(figures)
    return (
        f"{cause}: {depth:.3g} I/Os in flight, {response_ms:.3g} ms each{spent}, "
        f"give {figures['iops']:.0f} IOPS{_idle(figures)}{f'; disks {disks}' if disks else ''}."
    )


def _idle(figures: Figures, *, cpu: bool = True) -> str:
    """What was not exhausted, in figures."""
    parts = []
    if "link_percent" in figures:
        parts.append(f"the busiest link at {figures['link_percent']:.0f} %")
    for key, name in (("machine_busy_percent", "the machine"), ("host_cpu_percent", "the host's CPUs")):
        if cpu and key in figures:
            parts.append(f"{name} at {figures[key]:.0f} %")
            break
    return f", with {' and '.join(parts)}" if parts else ""


_LIMITS: tuple[tuple[Limit, Callable[[Figures], str]], ...] = (
    ("fabric lag", _fabric),
    ("load", _paced),
    ("link", _link),
    ("receive window", _receive_window),
    ("send buffer", _send_buffer),
    ("loss", _loss),
    ("disks", _disks),
    ("machine CPU", _machine),
    ("host CPU", _host),
    ("array CPU", _array),
    ("latency", _latency),
    ("array service", _service),
)
