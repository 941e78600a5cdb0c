"""Notes on receive rings, receive queues and bonds: facts about the port that no trial can show alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from linerate.probe.evidence import Evidence
from linerate.probe.port.adapter import FRAMES_PER_S_MIN, frames_per_s
from linerate.probe.port.seen import AdapterSeen, BondSeen, PortSeen

UNBUFFERED_FRAMES_MIN = 10  # as few lost segments prove nothing
RING_SHARE = 0.5  # of the largest ring: above it there is little to gain
ONE_QUEUE_SHARE = 0.95  # of the frames: the rest is other traffic
_HASHED_MODES = ("balance-xor", "802.3ad")
_ONE_SLAVE_HASHES = ("layer2", "layer2+3", "encap2+3", "vlan+srcmac")
"""Hashes of addresses only: they are the same for all connections to a portal."""
_OF_MODES = {
    "balance-rr": (
        "It sends the frames of one connection over all slaves in turn: they can arrive out of order, which TCP "
        "takes for loss."
    ),
    "active-backup": "Only the active slave carries frames, so the path is as fast as this slave.",
    "broadcast": "It sends each frame over all slaves, so the path is as fast as the slowest one.",
}
_OF_OTHER_MODES = (
    "One TCP connection uses one slave in each direction, so a session is at most as fast as one slave."
)


def port_notes(seen: Evidence) -> tuple[str, ...]:
    """A note for each fact that matters at the measured rates; bonds are always told."""
    if seen.below is None or not seen.measured:
        return ()
    frames = frames_per_s(seen, is_write=False)
    return (
        *(note for one in seen.below.adapters for note in _of_adapter(one, seen.below, frames)),
        *(_of_bond(one) for one in seen.below.bonds),
    )


def _of_adapter(one: AdapterSeen, below: PortSeen, frames: float) -> Iterator[str]:
    ring, most = one.rx_ring_frames, one.rx_ring_frames_most
    if one.unbuffered_frames >= UNBUFFERED_FRAMES_MIN and ring and most and ring <= RING_SHARE * most:
        yield (
            f"Try rx_ring_frames={most} on this host: the receive ring of {one.device} has {ring:,} of {most:,} "
            f"frames, and {one.unbuffered_frames:,} received frames found no free buffer during the trials; `linerate "
            "run nic-tuning` shows what it brings."
        )
    if frames < FRAMES_PER_S_MIN:
        return
    wanted = min(below.cpus, one.rx_queues_most or 0)
    if one.rx_queues and one.rx_queues < wanted:
        yield (
            f"Try rss_queues={wanted} on this host: {one.device} has {one.rx_queues} receive "
            f"{'queue' if one.rx_queues == 1 else 'queues'} for {below.cpus} CPUs, and reads bring {frames:,.0f} "
            "frames per second; `linerate run nic-tuning` shows what it brings."
        )
    total = sum(one.queue_frames)
    if len(one.queue_frames) > 1 and max(one.queue_frames) >= ONE_QUEUE_SHARE * total > 0:
        first = one.queue_frames.index(max(one.queue_frames))
        yield (
            f"All load of {one.device} is on receive queue {first} of {len(one.queue_frames)}, so one CPU takes it: "
            f"{100 * max(one.queue_frames) / total:.0f} % of the frames of {below.connections} connections. "
            f"`ethtool -x {one.device}` shows which queues RSS uses, `ethtool -n {one.device} rx-flow-hash tcp4` "
            "whether TCP ports are part of its hash."
        )


def _of_bond(one: BondSeen) -> str:
    hashed = f", hash {one.hash_policy}" if one.mode in _HASHED_MODES and one.hash_policy else ""
    used = [
        f"{slave} {did} {percent:.0f} % of the bytes"
        for did, number in (("received", one.received_bytes), ("sent", one.sent_bytes))
        for slave, percent in _largest(number)
    ]
    measured = f" While one session read, {' and '.join(used)}." if used else ""
    active = f" The active slave is {one.active_slave}." if one.active_slave else ""
    by_hash = (
        " With this hash all connections to one portal leave by the same slave; xmit_hash_policy=layer3+4 deals "
        "them out. The switch has a hash of its own for what arrives."
        if hashed and one.hash_policy in _ONE_SLAVE_HASHES
        else ""
    )
    return (
        f"The path goes over {one.device} ({one.mode}{hashed}) with {_slaves(one.slaves)}.{active}{measured} "
        f"{_OF_MODES.get(one.mode, _OF_OTHER_MODES)}{by_hash} Paths over separate ports (multipath.paths) use the "
        "lines of all; `linerate run mpio-layouts` compares both."
    )


def _slaves(names: tuple[str, ...]) -> str:
    return f"the slave{'s' if len(names) > 1 else ''} {', '.join(names)}" if names else "no slave"


def _largest(number: Mapping[str, int]) -> Iterator[tuple[str, float]]:
    """The slave with most of the bytes, and its percentage; none without bytes."""
    total = sum(number.values())
    if total > 0:
        slave = max(number, key=lambda name: number[name])
        yield slave, 100 * number[slave] / total
