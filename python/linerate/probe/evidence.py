"""What a probe has seen, before anything is concluded from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from linerate.analysis.limits.wire import MTU_USUAL_BYTES
from linerate.probe.frames import FrameSizes
from linerate.probe.port.seen import PortSeen
from linerate.probe.tcp_state import TcpState
from linerate.probe.trials import Name, Trial
from linerate.setting import Value

HOST_BUSY_PERCENT = 90.0
LOOPBACK = "lo"


@dataclass(frozen=True, slots=True)
class Tcp:
    """What TCP counted in one trial."""

    rtt_us: float = 0.0
    """Smoothed; holds the time for which the array delays its acknowledgements."""
    sent_segments: int = 0
    retransmits: int = 0
    needless_retransmits: int = 0
    """Of these: segments that the array had got already (DSACK, RFC 2883), as far as they were seen."""
    received_segments: int = 0
    """From bytes and MSS: the kernel counts merged ones."""
    out_of_order: int = 0
    """Received segments that came after a gap, of all TCP connections in this network namespace."""


@dataclass(frozen=True, slots=True)
class TrialResult:
    """One trial: its figures, and what was negotiated. MB are 10^6 bytes."""

    trial: Trial
    seconds: float
    """Measured time."""
    iops: float
    mb_s: float
    p50_ms: float
    p99_ms: float
    load_cores: float
    """CPUs that the load used, without its polls."""
    workers: int
    host_busy_percent: float | None
    """Of all CPUs of this host, by all programs."""
    tcp: Tcp = Tcp()
    tcp_state: TcpState | None = None
    """Of bulk trials, where the kernel tells."""
    fixed_buffers: tuple[str, ...] = ()
    """Buffers that the session's options fix: recv_buffer_bytes, send_buffer_bytes."""
    session: Mapping[str, Any] = field(default_factory=dict)
    block_bytes: int = 512

    @property
    def share_of_one_io(self) -> float:
        """How much one I/O more, at the end of the measured time, would raise the rate, as a share of it."""
        return 1 / (self.iops * self.seconds)

    @property
    def mean_ms_at_depth_1(self) -> float:
        """Mean response time of a trial with one I/O in flight."""
        return 1000 / self.iops

    @property
    def in_flight_bytes(self) -> int:
        """Most that may be on the way at once."""
        return self.trial.size_bytes * self.trial.outstanding

    @property
    def is_host_full(self) -> bool:
        """Whether the load threads had no time left."""
        return self.workers > 0 and self.load_cores >= 0.9 * self.workers

    @property
    def is_several(self) -> bool:
        """Whether it had more than one connection."""
        return self.trial.sessions * self.trial.connections > 1


@dataclass(frozen=True, slots=True)
class SizeTimes:
    """Response times of one size at depth 1."""

    size_bytes: int
    is_write: bool
    ios: int
    p50_ms: float
    p95_ms: float


@dataclass(frozen=True, slots=True)
class RawRate:
    """What one TCP connection carries without iSCSI, in one direction. MB are 10^6 bytes."""

    peer: str
    is_to_peer: bool
    mb_s: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """All trials of a probe by name, the frames, and the port of this host.

    Without trials no I/O was answered, because large frames vanish.
    """

    measured: Mapping[Name, TrialResult]
    frames: FrameSizes
    port: str = ""
    port_mbit_s: float | None = None
    skipped: Mapping[Name, str] = field(default_factory=dict)
    """Trials that could not run, and why."""
    sizes: tuple[SizeTimes, ...] = ()
    raw: tuple[RawRate, ...] = ()
    adapter: Mapping[str, Value] = field(default_factory=dict)
    """Settings of the port, by the names of the catalogue."""
    below: PortSeen | None = None
    """What adapters and bonds below the port counted; None for a loopback."""

    @property
    def mtu_bytes(self) -> int:
        """Largest packet of this path, as far as it is known."""
        return self.frames.largest_bytes or self.frames.port_mtu_bytes or MTU_USUAL_BYTES

    @property
    def is_host_busy(self) -> bool:
        """Whether this host had no CPU left while single I/Os were tried."""
        return (self.measured["floor"].host_busy_percent or 0.0) >= HOST_BUSY_PERCENT

    @property
    def bulk(self) -> list[TrialResult]:
        """Trials that ask for a rate."""
        return [one for one in self.measured.values() if one.trial.is_bulk]

    def raw_mb_s(self, *, is_write: bool) -> float | None:
        """Of raw TCP in the direction of writes or reads; None where it was not tried."""
        return next((one.mb_s for one in self.raw if one.is_to_peer == is_write), None)

    @property
    def rtt_ms(self) -> float:
        """Round trip of the network: of an echo; without one, of TCP, which cannot be longer than an I/O."""
        if self.frames.rtt_ms is not None:
            return self.frames.rtt_ms
        return min(self.measured["floor"].tcp.rtt_us / 1000, self.measured["floor"].p50_ms)
