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

from tests.lab.conftest import streams

MEASURED_S = 1.0
TOPOLOGY = streams(
    2,
    "",
    'name = "backup"\nsource = "h1"\nsink = "h2"\nconnections = 2',
    'name = "mail"\nsource = "h2"\nsink = "h1"\nconnections = 1\nrate = "20mbit"',
)


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
