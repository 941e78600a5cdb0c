"""A lab whose LAN streams flow for a moment, once per tool: `python -m tests.lab.lan_streams NAME TOOL...`.

Prints one JSON object: by tool the counters' differences over the time measured. A process of its own, because a lab
is entered before threads are started.
"""

from __future__ import annotations

import json
import sys
import threading
from typing import cast

from linerate.lab import enter

MEASURED_S = 1.0
TOPOLOGY = """
[link]
rate = "100mbit"

[[switch]]
name = "sw1"

[[host]]
name = "h{n}"
count = 2
port = [{ name = "p0", switch = "sw1" }]

[[array]]
name = "a1"
port = [{ name = "p0", switch = "sw1" }]
volume = [{ name = "v1", size = "1m" }]

[[lan]]
name = "backup"
source = "h1"
sink = "h2"
connections = 2

[[lan]]
name = "mail"
source = "h2"
sink = "h1"
connections = 1
rate = "20mbit"
"""


def main() -> None:
    """Builds, lets flow, tells."""
    enter()
    from linerate.lab import Lab
    from linerate.lab.lan import LanTraffic, Tool, lan_mib_s
    from linerate.san import parse_topology

    name, *tools = sys.argv[1:]
    found: dict[str, object] = {}
    with Lab.up(parse_topology(TOPOLOGY), name=name) as lab:
        for tool in tools:
            with LanTraffic(lab, lab.topology.lan, tool=cast(Tool, tool)) as traffic:
                before = traffic.counters()
                threading.Event().wait(MEASURED_S)
                after = traffic.counters()
            passed = {key: after[key] - before[key] for key in after}
            found[tool] = {"passed": passed, "lan_mib_s": lan_mib_s(passed)}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
