"""The metrics of an array: the counters of its disks and RAID sets since it was started, and the state of its parts."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from linerate.array.control.report import ArrayReport
from linerate.array.figures.openmetrics import filled

NS_PER_S = 1e9

_DISK = (
    ("linerate_array_disk_reads", "", "reads", 1.0, "Reads of a disk."),
    ("linerate_array_disk_writes", "", "writes", 1.0, "Writes of a disk."),
    ("linerate_array_disk_read_bytes", "bytes", "read_bytes", 1.0, "Bytes read from a disk."),
    ("linerate_array_disk_written_bytes", "bytes", "write_bytes", 1.0, "Bytes written to a disk."),
    ("linerate_array_disk_flushes", "", "flushes", 1.0, "Flushes of a disk."),
    ("linerate_array_disk_errors", "", "errors", 1.0, "Operations of a disk that failed."),
    (
        "linerate_array_disk_response_seconds",
        "seconds",
        "response_ns",
        NS_PER_S,
        "Sum of the times of all reads and writes.",
    ),
    (
        "linerate_array_disk_busy_seconds",
        "seconds",
        "busy_ns",
        NS_PER_S,
        "Time with at least one operation at work.",
    ),
)
"""Name, unit, field of the report, what one unit is of it, description."""
_RAID_SET = (
    ("linerate_array_full_stripe_writes", "full_stripe_writes", "Writes of whole stripes."),
    ("linerate_array_read_modify_writes", "read_modify_writes", "Writes that read old data and parity."),
    ("linerate_array_reconstruct_writes", "reconstruct_writes", "Writes that read the rest of the stripe."),
    ("linerate_array_degraded_reads", "degraded_reads", "Reads that were computed from other disks."),
    ("linerate_array_mismatches_found", "mismatches_found", "Mismatches that scrubs found."),
    ("linerate_array_mismatches_mended", "mismatches_mended", "Mismatches that scrubs repaired."),
)
_POOL = (
    ("linerate_array_pool_size_bytes", "size_bytes", "Capacity of a pool."),
    ("linerate_array_pool_used_bytes", "used_bytes", "Capacity of a pool that is in use."),
    ("linerate_array_pool_provisioned_bytes", "provisioned_bytes", "Capacity that its volumes show."),
)


def array_metrics(report: ArrayReport) -> Iterator[Metric]:
    """All metrics of an array."""
    array, storage = report.name, report.storage
    for name, unit, field, scale, text in _DISK:
        yield filled(
            CounterMetricFamily(name, text, labels=["array", "disk", "raid_set"], unit=unit),
            (([array, one.name, one.raid_set or ""], getattr(one, field) / scale) for one in storage.disks),
        )
    for name, field, text in _RAID_SET:
        yield filled(
            CounterMetricFamily(name, text, labels=["array", "raid_set"]),
            (([array, one.name], getattr(one, field)) for one in storage.raid_sets),
        )
    for name, field, text in _POOL:
        yield filled(
            GaugeMetricFamily(name, text, labels=["array", "pool"], unit="bytes"),
            (([array, one.name], getattr(one, field)) for one in storage.pools),
        )
    yield filled(
        GaugeMetricFamily("linerate_array_disk_state", "1 for the state of a disk.", labels=_STATE_OF_DISK),
        (([array, one.name, one.state], 1.0) for one in storage.disks),
    )
    yield filled(
        GaugeMetricFamily("linerate_array_raid_set_state", "1 for the state.", labels=_STATE_OF_SET),
        (([array, one.name, one.state], 1.0) for one in storage.raid_sets),
    )
    yield filled(
        GaugeMetricFamily(
            "linerate_array_task_done_ratio",
            "How much of a rebuild, scrub or first initialisation is done.",
            labels=["array", "raid_set", "task"],
            unit="ratio",
        ),
        (([array, one.name, one.task.kind], one.task.done) for one in storage.raid_sets if one.task),
    )
    yield filled(
        GaugeMetricFamily("linerate_array_sessions", "Sessions of initiators.", labels=["array"]),
        [([array], float(len(report.by_session)))],
    )


_STATE_OF_DISK = ["array", "disk", "state"]
_STATE_OF_SET = ["array", "raid_set", "state"]
