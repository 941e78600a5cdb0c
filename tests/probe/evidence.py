"""Evidence of a probe on a healthy path, and the same with a planted fault."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from linerate.probe import Evidence, FrameSizes, SizeTimes, Tcp, TrialResult, trials
from linerate.probe.sizes import SIZES_BYTES
from linerate.probe.tcp_state import TcpState
from linerate.probe.trials import Name

RTT_MS = 0.2
SEGMENT_BYTES = 1448
RATES: dict[Name, tuple[float, float, float]] = {
    "floor": (4000.0, 16.4, 0.25),
    "cached": (4000.0, 16.4, 0.25),
    "write_floor": (3500.0, 28.7, 0.28),
    "small": (20_000.0, 81.9, 1.6),
    "large": (300.0, 78.6, 53.0),
    "sessions": (310.0, 81.3, 51.0),
    "connections": (308.0, 80.7, 52.0),
    "write": (300.0, 78.6, 53.0),
}
"""I/Os per second, MB/s, median in ms: nothing is full."""
WIDE = TcpState(
    connections=1,
    mss_bytes=SEGMENT_BYTES,
    rtt_ms=RTT_MS,
    receive_rtt_ms=RTT_MS,
    congestion_window_bytes=1 << 20,
    receive_window_bytes=1 << 20,
    receive_space_bytes=1 << 19,
    peer_window_bytes=1 << 20,
    send_buffer_bytes=1 << 20,
    delivery_mb_s=80.0,
    busy_percent=50.0,
    rwnd_limited_percent=0.0,
    sndbuf_limited_percent=0.0,
)
"""No window is full at the rates above."""


def evidence(changes: Mapping[Name, Mapping[str, Any]] = {}, frames: FrameSizes | None = None) -> Evidence:
    """A path with a round trip of 0.2 ms and no fault; `changes` replaces fields of the trials of these names."""
    measured: dict[Name, TrialResult] = {}
    for trial in trials(writes=True):
        iops, mb_s, p50_ms = RATES[trial.name]
        healthy = TrialResult(
            trial=trial,
            iops=iops,
            mb_s=mb_s,
            p50_ms=p50_ms,
            p99_ms=1.3 * p50_ms,
            load_cores=0.2,
            workers=1,
            host_busy_percent=20.0,
            tcp=Tcp(rtt_us=1000 * RTT_MS, sent_segments=10_000, received_segments=10_000),
            tcp_state=WIDE if trial.is_bulk else None,
            session={"snd_mss": SEGMENT_BYTES, "connections": trial.connections},
            seconds=10.0,
        )
        measured[trial.name] = replace(healthy, **changes.get(trial.name, {}))
    sizes = tuple(
        SizeTimes(size, is_write, 1000, 0.25, 0.4) for is_write in (False, True) for size in SIZES_BYTES
    )
    return Evidence(
        measured, frames or FrameSizes(1500, (576, 1280, 1500), rtt_ms=RTT_MS), "eth0", 10_000.0, sizes=sizes
    )


def without_trials(frames: FrameSizes) -> Evidence:
    """No I/O was answered."""
    return Evidence({}, frames, "eth0", 1000.0)
