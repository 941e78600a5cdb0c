"""A metric: a figure that runs are compared by, with its unit and which way is good; and the metrics of studies.

A rate or a time is compared by its ratio, because a change of 5 % means the same on a slow and on a fast SAN.
A percentage that may be zero (retransmits) is compared by its difference, in points, with a margin of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from linerate.errors import UserError

Scale = Literal["ratio", "difference"]
"""How two values are compared. Retransmits can be zero, so they are compared by difference, in points."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure that is compared. `better` is +1 when more is good, -1 when less is good, and 0 when neither is.

    `margin` replaces the relative margin of a study where values are compared by difference.
    """

    name: str
    label: str
    unit: str
    better: int
    scale: Scale = "ratio"
    margin: float | None = None


# 0.05 points of retransmits: half of the limit of `check`, and half of the 0.11 % that the NIC paper reports.
RETRANSMIT_MARGIN_POINTS = 0.05

_ALL = (
    Metric("iops", "i/o rate", "IOPS", +1),
    Metric("mib_s", "throughput", "MB/s", +1),
    Metric("lan_mib_s", "LAN throughput", "MB/s", +1),
    Metric("response_ms", "response time", "ms", -1),
    Metric("p99_ms", "99th percentile", "ms", -1),
    Metric("host_cpu_percent", "host CPU", "%", -1),
    Metric("array_cpu_percent", "array CPU", "%", -1),
    Metric("cycles_per_byte", "cycles per byte", "", -1),
    Metric("capacity_gib", "capacity", "GiB", +1),
    Metric("backup_mbit_s", "backup rate", "Mbit/s", +1),
    Metric("backup_s", "backup time", "s", -1),
    Metric("replication_s_per_gib", "replication time", "s/GiB", -1),
    Metric("largest_load", "largest load", "", +1),
    Metric("retransmit_percent", "retransmits", "%", -1, "difference", RETRANSMIT_MARGIN_POINTS),
)
LARGEST_LOAD = "largest_load"
"""The metric of studies that search each case for it."""
METRICS: Mapping[str, Metric] = {metric.name: metric for metric in _ALL}


def find_metric(name: str) -> Metric:
    """The metric called `name`.

    Raises:
        UserError: no such metric.
    """
    if name in METRICS:
        return METRICS[name]
    raise UserError(f"there is no metric called {name}", f"use one of {', '.join(METRICS)}")
