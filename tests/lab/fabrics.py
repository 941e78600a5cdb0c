"""The same lab on one fabric: what a line carries at both MTUs, and what a shallow buffer does to two senders.

`python -m tests.lab.fabrics NAME FABRIC` prints one JSON object. A process of its own, because a lab is entered before
threads are started.
"""

from __future__ import annotations

import json
import sys
import threading

from linerate.lab import enter

from tests.lab.conftest import streams

MEASURED_S = 1.5
RATE_BITS_PER_S = 100e6
TOPOLOGY = streams(
    3,
    'buffer = "32k"\nxoff = "8k"',
    'name = "one"\nsource = "h1"\nsink = "h3"\nconnections = 2',
    'name = "two"\nsource = "h2"\nsink = "h3"\nconnections = 2',
)


def main() -> None:
    """Builds, lets flow, tells."""
    enter()
    from linerate.lab import Lab
    from linerate.lab.lan import LanTraffic
    from linerate.san import LanStream, parse_topology

    def passed(lab: Lab, *streams: LanStream) -> dict[str, float]:
        dropped = lab.counters()["port.h3.p0.switch_drops"]
        with LanTraffic(lab, streams, tool="own") as traffic:
            before = traffic.counters()
            threading.Event().wait(MEASURED_S)
            after = traffic.counters()
        rates = {"bytes_per_s": 0.0, "segments_retransmitted": 0.0}
        for stream in streams:
            of = {key: after[f"lan.{stream.name}.{key}"] - before[f"lan.{stream.name}.{key}"] for key in KEYS}
            rates["bytes_per_s"] += of["bytes_received"] / of["clock_s"]
            rates["segments_retransmitted"] += of["tcp_segments_retransmitted"]
        rates["drops"] = lab.counters()["port.h3.p0.switch_drops"] - dropped
        return rates

    name, fabric = sys.argv[1:]
    found: dict[str, dict[str, float]] = {}
    with Lab.up(parse_topology(TOPOLOGY), name=name, fabric=fabric) as lab:
        one, two = lab.topology.lan
        for mtu in (1500, 9000):
            for port in ("h1.p0", "h2.p0", "h3.p0"):
                lab.change_link(port, mtu=mtu)
            lab.change_switch("sw1", buffer_bytes=1 << 20)
            found[f"line {mtu}"] = passed(lab, one)
            lab.change_switch("sw1", buffer_bytes=32 << 10)
            found[f"congested {mtu}"] = passed(lab, one, two)
        if fabric == "user":
            lab.change_switch("sw1", flow_control="pause")
            found["paused 9000"] = passed(lab, one, two)
    json.dump(found, sys.stdout)


KEYS = ("bytes_received", "clock_s", "tcp_segments_retransmitted")

if __name__ == "__main__":
    main()
