"""Reads the adapters and bonds below a port, and what they count from trial to trial.

Source of the counters: Documentation/ABI/testing/sysfs-class-net-statistics and the drivers' own names; of bonds:
Documentation/networking/bonding.rst.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from linerate.errors import HostError
from linerate.host import named
from linerate.probe.port.seen import AdapterSeen, BondSeen, PortSeen
from linerate.probe.trials import Trial

if TYPE_CHECKING:
    from linerate.host.linux.kernel import Kernel

# The kernel and several drivers count the same frame under more than one of these names.
_NO_BUFFER_FILES = ("rx_missed_errors", "rx_fifo_errors", "rx_over_errors")
_NO_BUFFER_COUNTERS = ("rx_no_buffer_count", "rx_no_dma_resources", "rx_out_of_buffer")
_QUEUE_COUNTERS = tuple(
    re.compile(pattern)
    for pattern in (
        r"rx_queue_(\d+)_packets",  # igb, ixgbe, ice, hv_netvsc
        r"rx(\d+)_packets",  # mlx5
        r"rx-(\d+)\.(?:rx_)?packets",  # i40e
        r"queue_(\d+)_rx_cnt",  # ena
        r"\[(\d+)\]: rx_ucast_packets",  # bnxt
        r"rx_queue_(\d+)_xdp_packets",  # veth
    )
)
"""Frames of one receive queue in a driver's counters; the first pattern that any name has counts."""
_RECEIVED, _SENT = "rx_bytes", "tx_bytes"

KernelOf = Callable[[str], "AbstractContextManager[Kernel]"]


def _kernel_of(device: str) -> AbstractContextManager[Kernel]:
    from linerate.host.linux.kernel import Kernel

    return Kernel((device,))


@dataclass(frozen=True, slots=True)
class _Counts:
    """What one device has counted since it is there."""

    no_buffer: Mapping[str, int]
    queue_frames: Mapping[int, int]
    received_bytes: int
    sent_bytes: int


class PortWatch:
    """Looks at a port of this process's network namespace now, and whenever a trial is over."""

    def __init__(self, port: str, kernel_of: KernelOf = _kernel_of, cpus: int | None = None) -> None:
        self._port = port
        self._kernel_of = kernel_of
        self._cpus = cpus or os.cpu_count() or 1
        self._connections = 0
        self._no_buffer: Counter[tuple[str, str]] = Counter()
        self._queue_frames: Counter[tuple[str, int]] = Counter()
        self._received: Counter[str] = Counter()
        self._sent: Counter[str] = Counter()
        with kernel_of(port) as kernel:
            self._bonds = tuple(_bonds(kernel, port))
            self._adapters = tuple(_adapter(kernel, device) for device in _bottom(kernel, port))
            self._before = self._look(kernel)

    def over(self, trial: Trial) -> None:
        """Counts what has come since the last look, as of this trial."""
        with self._kernel_of(self._port) as kernel:
            now = self._look(kernel)
        several = trial.sessions * trial.connections
        if trial.is_bulk and several > 1:
            self._connections += several
        for device, counts in now.items():
            before = self._before.get(device, counts)
            for name, number in counts.no_buffer.items():
                self._no_buffer[device, name] += number - before.no_buffer.get(name, number)
            if trial.is_bulk and several > 1:
                for queue, number in counts.queue_frames.items():
                    self._queue_frames[device, queue] += number - before.queue_frames.get(queue, number)
            if trial.name == "large":
                self._received[device] += counts.received_bytes - before.received_bytes
                self._sent[device] += counts.sent_bytes - before.sent_bytes
        self._before = now

    def seen(self) -> PortSeen:
        """All of it."""
        return PortSeen(
            self._cpus,
            self._connections,
            tuple(self._adapter_seen(one) for one in self._adapters),
            tuple(self._bond_seen(one) for one in self._bonds),
        )

    def _look(self, kernel: Kernel) -> dict[str, _Counts]:
        devices = [one.device for one in self._adapters] + [
            slave for bond in self._bonds for slave in bond.slaves
        ]
        return {device: _counts(kernel, device) for device in dict.fromkeys(devices)}

    def _adapter_seen(self, one: AdapterSeen) -> AdapterSeen:
        no_buffer = [number for (device, _), number in self._no_buffer.items() if device == one.device]
        queues = sorted(queue for device, queue in self._queue_frames if device == one.device)
        return AdapterSeen(
            one.device,
            one.rx_ring_frames,
            one.rx_ring_frames_most,
            one.rx_queues,
            one.rx_queues_most,
            max([0, *no_buffer]),
            tuple(self._queue_frames[one.device, queue] for queue in queues),
        )

    def _bond_seen(self, one: BondSeen) -> BondSeen:
        return BondSeen(
            one.device,
            one.mode,
            one.hash_policy,
            one.active_slave,
            one.slaves,
            {slave: self._received[slave] for slave in one.slaves},
            {slave: self._sent[slave] for slave in one.slaves},
        )


def _lower(kernel: Kernel, device: str) -> list[str]:
    try:
        return kernel.lower_devices(device)
    except HostError:
        return []


def _bottom(kernel: Kernel, device: str) -> Iterator[str]:
    """The devices below a port that have none below them: adapters."""
    lower = _lower(kernel, device)
    if not lower:
        yield device
    for one in lower:
        yield from _bottom(kernel, one)


def _bonds(kernel: Kernel, device: str) -> Iterator[BondSeen]:
    """The port, or what is below it, as far as it is a bond."""
    lower = _lower(kernel, device)
    if mode := _word(kernel, device, "bonding/mode"):
        yield BondSeen(
            device,
            mode,
            _word(kernel, device, "bonding/xmit_hash_policy"),
            _word(kernel, device, "bonding/active_slave"),
            tuple(_text(kernel, device, "bonding/slaves").split()) or tuple(lower),
        )
    for one in lower:
        yield from _bonds(kernel, one)


def _adapter(kernel: Kernel, device: str) -> AdapterSeen:
    frames, frames_most = _setting(kernel, device, "rx_ring_frames")
    queues, queues_most = _setting(kernel, device, "rss_queues")
    return AdapterSeen(device, frames, frames_most, queues, queues_most)


def _setting(kernel: Kernel, device: str, name: str) -> tuple[int | None, int | None]:
    """A number of the catalogue and the device's largest; None where the driver does not say."""
    knob: Any = named(name).linux
    try:
        return int(knob.read(kernel, device).value), knob.most(kernel, device)
    except HostError:
        return None, None


def _counts(kernel: Kernel, device: str) -> _Counts:
    try:
        own = kernel.counters(device)
    except HostError:
        own = {}
    no_buffer = {name: _number(kernel, device, name) for name in _NO_BUFFER_FILES}
    no_buffer |= {name: own[name] for name in _NO_BUFFER_COUNTERS if name in own}
    return _Counts(
        no_buffer, _queues(own), _number(kernel, device, _RECEIVED), _number(kernel, device, _SENT)
    )


def _queues(own: Mapping[str, int]) -> dict[int, int]:
    """Frames by receive queue."""
    for pattern in _QUEUE_COUNTERS:
        found = {int(match[1]): number for name, number in own.items() if (match := pattern.fullmatch(name))}
        if found:
            return found
    return {}


def _number(kernel: Kernel, device: str, name: str) -> int:
    text = _text(kernel, device, f"statistics/{name}")
    return int(text) if text.isdigit() else 0


def _word(kernel: Kernel, device: str, name: str) -> str:
    """The first word: the bonding driver writes a name and its number."""
    return (_text(kernel, device, name).split() or [""])[0]


def _text(kernel: Kernel, device: str, name: str) -> str:
    """A file of the device; empty where it has none."""
    try:
        return kernel.attribute(device, name)
    except HostError:
        return ""
