"""Topologies: a SAN as data, without anything that is real yet.

Open this file first. `load_topology` reads a TOML file (or a shipped topology by name) into a frozen `Topology`: hosts
and arrays with ports, each port's link to a switch, trunks between switches, VLANs, priorities, volumes, LAN traffic.
Names, counts, defaults and addresses are resolved there, so that the lab, the fabric and the report need no rules of
their own; a mistake is told with file, line and key. `paths`, `layout` and `volume_urls` say how a host reaches the
volumes, `beyond_kernel` why a topology needs the user-space fabric; `faults` is what may break; `tree`, `drawing` and
`picture` show it.
"""

from linerate.san.drawing import NARROW, PAGE, Drawing, drawing
from linerate.san.faults import Fault, FaultKind, FaultTable, links_hit, parse_fault
from linerate.san.model import (
    ISCSI_PORT,
    MEMORY_FOLDER,
    PREFIX_LENGTH,
    SMB_PORT,
    AluaState,
    Array,
    ArrayPort,
    Host,
    Interface,
    LanStream,
    Layout,
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
from linerate.san.paths import LAYOUTS, asked_paths, beyond_kernel, is_joined, layout, paths, volume_urls
from linerate.san.picture import picture
from linerate.san.reader import load_topology, parse_topology, shipped_topologies, topology_schema
from linerate.san.storage import RAID_LEVELS, Storage, misfits
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
    "LAYOUTS",
    "MEMORY_FOLDER",
    "NARROW",
    "PAGE",
    "PREFIX_LENGTH",
    "RAID_LEVELS",
    "SMB_PORT",
    "AluaState",
    "Array",
    "ArrayPort",
    "Drawing",
    "Fault",
    "FaultKind",
    "FaultTable",
    "Host",
    "Interface",
    "LanStream",
    "Layout",
    "Link",
    "Network",
    "Nic",
    "Node",
    "Path",
    "Port",
    "Schedule",
    "Storage",
    "Switch",
    "Topology",
    "Trunk",
    "Volume",
    "asked_paths",
    "beyond_kernel",
    "delay_text",
    "drawing",
    "is_joined",
    "layout",
    "links_hit",
    "load_topology",
    "misfits",
    "parse_delay_us",
    "parse_fault",
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
