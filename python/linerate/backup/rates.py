"""What a phase did, in the figures of people who plan backups."""

from __future__ import annotations

from dataclasses import dataclass, field

from linerate.results import IntervalSample

DATA_STREAMS = ("write_zeros", "write_data", "read_image")
"""The streams whose bytes are the data of a phase."""
_BITS = 8
_MEGA, _GIGA = 10**6, 10**9
_HOUR_S = 3600.0


def data_bytes_of(interval: IntervalSample) -> int:
    """Bytes of data that an interval moved to or from the image."""
    return sum(row.bytes for row in interval.rows if row.stream in DATA_STREAMS)


@dataclass(frozen=True, slots=True)
class PhaseResult:
    """One phase, complete or until it ended. Rates are 0 if no time passed."""

    phase: str
    seconds: float
    """From its first I/O until the image is closed."""
    data_bytes: int
    wire_bytes: int = 0
    """Payload of TCP in both directions; 0: no volume is on a network."""
    load_cpu_s: float = 0.0
    totals: dict[str, float] = field(default_factory=dict)
    """`flushes`, `flush_s`, `length_changes`, `length_change_s`, `allocated_blocks`, `verified_bytes`."""

    @classmethod
    def of(cls, phase: str, total: IntervalSample, totals: dict[str, float]) -> PhaseResult:
        """From the whole phase as one interval."""
        usage = total.usage
        return cls(
            phase=phase,
            seconds=total.seconds,
            data_bytes=data_bytes_of(total),
            wire_bytes=usage.bytes_sent + usage.bytes_received,
            load_cpu_s=usage.load_cpu_user_s + usage.load_cpu_system_s,
            totals=totals,
        )

    @property
    def data_mbit_s(self) -> float:
        """10^6 bits of data per second."""
        return self._per_second(self.data_bytes * _BITS / _MEGA)

    @property
    def wire_mbit_s(self) -> float:
        """10^6 bits of TCP payload per second, both directions."""
        return self._per_second(self.wire_bytes * _BITS / _MEGA)

    @property
    def gb_per_hour(self) -> float:
        """10^9 bytes of data per hour."""
        return self._per_second(self.data_bytes * _HOUR_S / _GIGA)

    def _per_second(self, amount: float) -> float:
        return amount / self.seconds if self.seconds > 0 else 0.0
