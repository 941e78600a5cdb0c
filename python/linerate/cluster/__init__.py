"""The same load on many hosts at once, as if they were one.

Open this file first. `Cluster` brings up one worker process per host (over SSH, or inside the namespaces of a lab) and
holds one `LoadAgent` on each by dask.distributed. A `Cluster` is a `linerate.run.Loader`: give it to an `Execution`,
and every step of a plan runs on all hosts, into one run directory:

    look     every host looks at the volumes that the plan writes to           (agent)
    prepare  every host opens its volumes and reports what it negotiated       (agent)
    clocks   the offset of each host's clock, with its uncertainty             (clock)
    start    one instant, 20 round trips ahead, waited for by Rust threads     (load)
    stream   intervals are kept on the host, announced, fetched and merged     (agent, load, merge)
    finish   distributions and totals of all hosts, merged

Every host runs the whole plan (divide), or what the hosts of a vdbench file are dealt (deal; deal_files for file system
workloads).

The load is never moved from one host to another: a host that is lost, or that announces nothing for three intervals,
leaves the result without it, and the result says that it is degraded. Control traffic has a network of its own; what
crosses it during a run is an announcement and a few kilobytes per host and interval. It is encrypted, and only the
processes of the cluster are let in (tls).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from linerate.cluster.clock import Offset, best_offset
from linerate.cluster.deal import deal, dealt_threads
from linerate.cluster.divide import apportion, divide
from linerate.cluster.hosts import (
    Endpoint,
    file_endpoints,
    is_ssh_host,
    lab_endpoints,
    local_endpoint,
    ssh_endpoint,
    ssh_endpoints,
)
from linerate.cluster.ports import PortRange

if TYPE_CHECKING:
    from linerate.cluster.workers import Cluster

__all__ = [
    "Cluster",
    "Endpoint",
    "Offset",
    "PortRange",
    "apportion",
    "best_offset",
    "deal",
    "dealt_threads",
    "divide",
    "file_endpoints",
    "is_ssh_host",
    "lab_endpoints",
    "local_endpoint",
    "ssh_endpoint",
    "ssh_endpoints",
]


def __getattr__(name: str) -> Any:
    """Loads the larger half when it is asked for: a worker does without it."""
    if name != "Cluster":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from linerate.cluster.workers import Cluster

    return Cluster
