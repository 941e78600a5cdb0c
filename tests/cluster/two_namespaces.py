"""A program: two hosts of a lab load one array together, each from a worker inside its namespace. Prints JSON."""

from __future__ import annotations

import json
import os
import sys

from linerate.errors import LinerateError
from linerate.lab import Lab, enter

TOPOLOGY = """\
name = "pair"
fabric = "kernel"

[link]
rate = "100mbit"

[[switch]]
name = "sw1"

[[host]]
name = "h"
count = 2
port = [{ name = "p0", switch = "sw1" }]

[[array]]
name = "a1"
port = [{ name = "p0", switch = "sw1" }]
volume = [{ name = "v", size = "16m" }]
"""


def _spec() -> dict[str, object]:
    return {
        "name": "pair",
        "warmup_s": 0.5,
        "elapsed_s": 1.5,
        "interval_s": 0.5,
        "workers": 1,
        "volumes": [{"name": "v", "url": "null:1048576", "outstanding": 8}],
        "streams": [{"name": "s", "volumes": ["v"], "sizes": {"kind": "mix", "parts": [[65536, 100]]}}],
    }


def main() -> None:
    """Builds, loads, tells."""
    from linerate.cluster import Cluster, lab_endpoints
    from linerate.san import parse_topology
    from linerate.volumes import Consent, clear
    from linerate.workload import RunSpec

    with Lab.up(parse_topology(TOPOLOGY), name=f"cluster-{os.getpid()}") as lab:
        urls = {host: {"v": lab.volume_urls(host)[0].url} for host in ("h1", "h2")}
        address = lab.topology.control_address
        with Cluster(
            lab_endpoints(lab), address=address, namespace=lab.namespace("control").path, urls=urls
        ) as cluster:
            namespaces = {
                host: os.stat(f"/proc/{pid}/ns/net").st_ino for host, pid in cluster.worker_pids.items()
            }
            spec = RunSpec.model_validate(_spec())
            load = cluster.start(clear([spec], cluster.look, Consent.nothing()).of(spec))
            intervals = 0
            while not load.finished:
                intervals += load.next_interval(0.5) is not None
            end = load.finish()
        found = {
            "own": os.stat("/proc/self/ns/net").st_ino,
            "of_lab": {host: os.stat(lab.namespace(host).path).st_ino for host in ("h1", "h2")},
            "of_workers": namespaces,
            "intervals": intervals,
            "lost": dict(load.lost),
            "error": str(end.error or ""),
            "bytes": {row.volume: row.bytes for row in end.total.rows},
            "seconds": end.total.seconds,
        }
    print(json.dumps(found))


if __name__ == "__main__":
    try:
        enter()
    except LinerateError as error:
        sys.exit(f"no right to build a lab: {error}")
    main()
