"""Reads and writes of several sizes at depth 1, in turn: a stall of one size shows which last segment is held back.

Nagle's algorithm (RFC 1122 4.2.3.4) holds a segment back that is not full while another one is not acknowledged, and
a receiver delays the acknowledgement of a single segment (RFC 1122 4.2.3.2). So the stall depends on the size of an
I/O: on how much of it is left for the last segment.
"""

from __future__ import annotations

from collections.abc import Callable

from linerate import _core
from linerate.probe.evidence import SizeTimes
from linerate.probe.measure import INTERVAL_S, WARM_UP_SHARE, run_to_end
from linerate.results import IntervalSample
from linerate.workload import RunSpec
from linerate.workload.spec import SizeMix, StreamSpec, VolumeRegion, VolumeSpec

SIZES_BYTES = (512, 1536, 4608, 8192, 9216, 12_288, 16_896)
"""Below and above one segment of 1448 or 8948 bytes, and several with a small rest; in blocks of the volume."""
PLACE_BYTES = 64 << 10
"""Where they go: the start of the volume, which the array's memory holds after the first round."""
SHARE = 1.0
"""Of the time of a probe, as `Trial.share`, for each direction."""
NS_PER_MS = 1e6


def sizes_in_blocks(block_bytes: int) -> tuple[int, ...]:
    """The sizes, rounded up to whole blocks; each once."""
    return tuple(sorted({-(-size // block_bytes) * block_bytes for size in SIZES_BYTES}))


def sizes_spec(volume: VolumeSpec, block_bytes: int, seconds: float, *, is_write: bool) -> RunSpec:
    """A run that does one I/O of each size in turn."""
    return RunSpec(
        name=f"probe sizes of {'writes' if is_write else 'reads'}",
        warmup_s=WARM_UP_SHARE * seconds,
        elapsed_s=(1 - WARM_UP_SHARE) * seconds,
        interval_s=INTERVAL_S,
        volumes=(volume.model_copy(update={"outstanding": 1}),),
        streams=tuple(
            StreamSpec(
                name=str(size),
                volumes=(volume.name,),
                sizes=SizeMix.one(size),
                read_percent=0.0 if is_write else 100.0,
                range=VolumeRegion(unit="bytes", start=0, end=PLACE_BYTES),
                align_bytes=block_bytes,
            )
            for size in sizes_in_blocks(block_bytes)
        ),
    )


def measure_sizes(
    spec: RunSpec, tick: Callable[[], None] = lambda: None, *, is_write: bool
) -> tuple[SizeTimes, ...]:
    """The response times of each size, ascending. Raises LinerateError, also if I/Os failed."""
    return _times(run_to_end(_core.Run.start(spec.seam_json()), spec.name, tick), is_write=is_write)


def _times(total: IntervalSample, *, is_write: bool) -> tuple[SizeTimes, ...]:
    found = (
        SizeTimes(
            size_bytes=int(one.stream),
            is_write=is_write,
            ios=one.histogram.count,
            p50_ms=one.histogram.quantile(0.5) / NS_PER_MS,
            p95_ms=one.histogram.quantile(0.95) / NS_PER_MS,
        )
        for one in total.latencies
        if one.stream and not one.volume and one.kind == "service" and one.histogram.count
    )
    return tuple(sorted(found, key=lambda one: one.size_bytes))
