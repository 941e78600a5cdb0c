"""Topologies: a SAN as data, without anything that is real yet.

Open this file first. `load_topology` reads a TOML file (or a shipped topology by name) into a frozen `Topology`: hosts
and arrays with ports, each port's link to a switch, trunks between switches, VLANs, priorities, volumes, LAN traffic.
Names, counts, defaults and addresses are resolved there, so that the lab, the fabric and the report need no rules of
their own; a mistake is told with file, line and key. `paths` and `volume_urls` say how a host reaches the volumes,
`beyond_kernel` why a topology needs the user-space fabric; `tree` and `picture` show it.
"""

from linerate.san.model import (
    ISCSI_PORT,
    PREFIX_LENGTH,
    Array,
    Host,
    Interface,
    LanStream,
    Link,
    Network,
    Nic,
    Node,
    Path,
    Port,
    Schedule,
    Switch,
    Topology,
    Trunk,
    Volume,
)
from linerate.san.paths import beyond_kernel, paths, volume_urls
from linerate.san.picture import picture
from linerate.san.reader import load_topology, parse_topology, shipped_topologies, topology_schema
from linerate.san.tree import tree
from linerate.san.units import (
    delay_text,
    parse_delay_us,
    parse_rate,
    parse_share,
    rate_text,
    share_text,
)

__all__ = [
    "ISCSI_PORT",
    "PREFIX_LENGTH",
    "Array",
    "Host",
    "Interface",
    "LanStream",
    "Link",
    "Network",
    "Nic",
    "Node",
    "Path",
    "Port",
    "Schedule",
    "Switch",
    "Topology",
    "Trunk",
    "Volume",
    "beyond_kernel",
    "delay_text",
    "load_topology",
    "parse_delay_us",
    "parse_rate",
    "parse_share",
    "parse_topology",
    "paths",
    "picture",
    "rate_text",
    "share_text",
    "shipped_topologies",
    "topology_schema",
    "tree",
    "volume_urls",
]
