"""A load over two paths while cables are pulled and arrays fall silent.

`python -m tests.multipath.failover NAME FABRIC SEED...`: every seed is a schedule of faults that leaves one path alive
at any time. Prints a line of JSON for each: what failed when, what the load told of it, and whether every block that it
read was what it had written. A process of its own, because a lab is entered before threads are started.
"""

from __future__ import annotations

import json
import random
import sys
from typing import Any

from linerate.lab import enter
from linerate.san import Fault

TOPOLOGY = """
[link]
rate = "100mbit"
[[switch]]
name = "sw1"
[[switch]]
name = "sw2"
[[host]]
name = "h1"
port = [{ name = "p0", switch = "sw1" }, { name = "p1", switch = "sw2" }]
[[array]]
name = "a1"
port = [
  { name = "p0", switch = "sw1", controller = "A" },
  { name = "p1", switch = "sw2", controller = "B" },
]
volume = [{ name = "v1", size = "4m", paths = "one-to-one" }]
"""
FIRST_S = 1.0
LASTS_S = (1.5, 2.5)
CALM_S = 3.5
"""Between two faults: the path that had failed is back by then, and the other one may fail."""
FAULTS = 2
SENDING_BYTES = 8192


def schedule(seed: int) -> list[Fault]:
    """Faults of any kind, one after the other, each on one of the two paths."""
    order = random.Random(seed)
    faults, at_s = [], FIRST_S
    for _ in range(FAULTS):
        path = order.randrange(2)
        kind, target, value = order.choice(
            [
                ("cable", f"h1.p{path}", None),
                ("cable", f"a1.p{path}", None),
                ("switch", f"sw{path + 1}", None),
                ("port", f"a1.p{path}", None),
                ("controller", f"a1.{'AB'[path]}", None),
                ("one_way", f"h1.p{path}", "from"),
                ("one_way", f"h1.p{path}", "to"),
                ("address", f"a1.p{path}", None),
                ("mtu", f"h1.p{path}", 1000.0),
            ]
        )
        for_s = round(order.uniform(*LASTS_S), 3)
        at_s += round(order.uniform(0, 0.5), 3)
        faults.append(
            Fault.model_validate(
                {"kind": kind, "target": target, "value": value, "at_s": at_s, "for_s": for_s}
            )
        )
        at_s += for_s + CALM_S
    return faults


def main() -> None:
    """Builds one lab, and plays every schedule in it."""
    enter()
    from linerate.lab import Lab
    from linerate.san import parse_topology

    name, fabric, *seeds = sys.argv[1:]
    with Lab.up(parse_topology(TOPOLOGY), name=name, fabric=fabric) as lab:
        for seed in map(int, seeds):
            print(json.dumps(played(lab, seed)), flush=True)


def played(lab: Any, seed: int) -> dict[str, Any]:
    """One schedule, under load."""
    from linerate import _core
    from linerate.lab.faults import FaultPlayer

    faults = schedule(seed)
    spec = spec_of(lab, seed, faults[-1].at_s + LASTS_S[1] + CALM_S)
    told: list[dict[str, Any]] = []

    def tell(fault: Fault, what: str, at_ns: int) -> None:
        told.append({"fault": fault.label, "what": what, "at_ns": at_ns})

    events: list[dict[str, Any]] = []
    ios = errors = 0
    with FaultPlayer(lab, faults, tell) as player:
        run = _core.Run.start(spec.seam_json())
        started_ns = run.facts()["started_monotonic_ns"]
        player.start(started_ns)
        while not run.finished:
            if (interval := run.next_interval(0.5)) is not None:
                events += interval.events
                ios += sum(interval.rows["ios"])
                errors += sum(interval.rows["errors"])
        end = run.finish()
    return {
        "seed": seed,
        "faults": [one | {"at_s": (one["at_ns"] - started_ns) * 1e-9} for one in told],
        "events": events,
        "ios": ios,
        "errors": errors,
        "outcome": end.outcome,
        "error": str(end.error or ""),
    }


def spec_of(lab: Any, seed: int, elapsed_s: float) -> Any:
    """Reads and writes of every block over both paths, with data that is checked."""
    from linerate.san import layout
    from linerate.workload import RunSpec, StreamSpec, VolumeSpec
    from linerate.workload.spec import PathSpec, SizeMix

    ways = layout(lab.topology, "h1")["a1.v1"]
    volume = VolumeSpec(
        name="v1",
        url=lab.volume_urls("h1")[0].url,
        netns=lab.namespace("h1").path,
        outstanding=8,
        paths=tuple(
            PathSpec(
                name=way.name,
                portal=way.portal,
                source_address=way.host_address,
                interface=way.host_interface,
            )
            for way in ways
        ),
    )
    stream = StreamSpec(name="mixed", volumes=("v1",), sizes=SizeMix.one(SENDING_BYTES), read_percent=50.0)
    return RunSpec(
        name=f"schedule-{seed}",
        seed=seed,
        elapsed_s=elapsed_s,
        interval_s=0.5,
        verify="on",
        volumes=(volume,),
        streams=(stream,),
    )


if __name__ == "__main__":
    main()
