"""The control network: joins every node and the machine running the study, and carries no storage traffic.

Coordination of hosts (a scheduler and its workers) uses it, so that the SAN's links carry the workload only. In
the node `control`, which is the machine running the study, it is the bridge `ctl`; everywhere else `ctl0`.
"""

from __future__ import annotations

import ipaddress

from linerate.lab.supervisor.nodes import NodeNamespace
from linerate.san import Topology

BRIDGE = "ctl"
INTERFACE = "ctl0"


def build_control(home: NodeNamespace, nodes: dict[str, NodeNamespace], topology: Topology) -> None:
    """Joins all hosts and arrays with a bridge in `home`, and gives each its control address."""
    subnet = ipaddress.ip_network(topology.control_subnet)
    home.route.link("add", ifname=BRIDGE, kind="bridge")
    bridge = home.index(BRIDGE)
    home.route.addr("add", index=bridge, address=str(next(subnet.hosts())), prefixlen=subnet.prefixlen)
    home.route.link("set", index=bridge, state="up")
    for number, member in enumerate(topology.nodes):
        node = nodes[member.name]
        port = f"{BRIDGE}{number}"
        home.route.link(
            "add",
            ifname=port,
            kind="veth",
            peer={"ifname": INTERFACE, "net_ns_fd": node.fd},
        )
        home.route.link("set", index=home.index(port), master=bridge, state="up")
        own = node.index(INTERFACE)
        node.route.addr("add", index=own, address=member.control_address, prefixlen=subnet.prefixlen)
        node.route.link("set", index=own, state="up")
