"""The adapter of the path on this host: how its offloads, interrupts and rings are set, and what is worth a note.

A note is no limit: it names a setting that costs CPU time or response time at the rate that was measured.
"""

from __future__ import annotations

from collections.abc import Iterator

from linerate.analysis.limits.wire import HEADERS_BYTES
from linerate.errors import HostError
from linerate.host import HostTarget, read
from linerate.probe.evidence import Evidence
from linerate.setting import Value

SETTINGS = (
    "lso",
    "rsc",
    "checksum_offload",
    "gso_max_segments",
    "interrupt_moderation_us",
    "rx_ring_frames",
    "tx_ring_frames",
    "rss_queues",
    "flow_control",
)
FRAMES_PER_S_MIN = 80_000  # those of 1 Gbit/s at MTU 1500; a CPU has time for each of fewer frames
MODERATION_SHARE = 0.1  # of the time of a 4K read


def adapter_of(target: HostTarget) -> dict[str, Value]:
    """The settings of the target's port that its driver has, by name; none where they cannot be read."""
    try:
        return {one.setting.name: one.value for one in read(target, SETTINGS) if one.value is not None}
    except HostError:
        return {}


def adapter_notes(seen: Evidence) -> tuple[str, ...]:
    """Settings that matter at the measured rate, each with the study that shows what it brings."""
    return (*_notes(seen),) if seen.measured else ()


def _notes(seen: Evidence) -> Iterator[str]:
    adapter = seen.adapter
    frames = frames_per_s(seen, is_write=False)
    if frames >= FRAMES_PER_S_MIN:
        if adapter.get("rsc") is False:
            yield _note("rsc=on", f"received frames are not merged, and reads bring {frames:,.0f} per second")
        if adapter.get("checksum_offload") in ("tx", "off"):
            yield _note(
                "checksum_offload=on",
                f"this host's CPUs check the TCP checksums of what arrives, of {frames:,.0f} frames per second",
            )
    frames = frames_per_s(seen, is_write=True)
    if frames >= FRAMES_PER_S_MIN:
        if adapter.get("lso") is False:
            yield _note(
                "lso=on", f"this host's CPUs cut data into frames, and writes take {frames:,.0f} per second"
            )
        if adapter.get("checksum_offload") in ("rx", "off"):
            yield _note(
                "checksum_offload=on",
                f"this host's CPUs compute the TCP checksums of what is sent, of {frames:,.0f} frames per second",
            )
    yield from _moderation(seen)


def _moderation(seen: Evidence) -> Iterator[str]:
    held_us, floor = seen.adapter.get("interrupt_moderation_us"), seen.measured["floor"]
    if isinstance(held_us, int) and held_us / 1000 >= MODERATION_SHARE * floor.p50_ms:
        yield _note(
            "interrupt_moderation_us=off",
            f"interrupts wait up to {held_us} us for more frames, and a 4K read takes {floor.p50_ms:.3g} ms",
        )


def _note(setting: str, why: str) -> str:
    """Every one of these settings has a case in the study of the NIC-tuning paper."""
    return f"Try {setting} on this host: {why}; `linerate run nic-tuning` shows what it brings."


def frames_per_s(seen: Evidence, *, is_write: bool) -> float:
    """Full frames per second of the fastest trial in one direction; 0 without such a trial."""
    best_mb_s = max((one.mb_s for one in seen.bulk if one.trial.is_write == is_write), default=0.0)
    return 1e6 * best_mb_s / (seen.mtu_bytes - HEADERS_BYTES)
