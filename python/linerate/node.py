"""Whether this process is on a node of a virtual SAN. From there iSCSI leads to the arrays of that SAN only."""

from __future__ import annotations

import os
from collections.abc import Mapping

VARIABLE = "LINERATE_LAB_NETWORK"
"""Set where a command is run on a node: the inode of the node's network namespace."""
_NETWORK = "/proc/self/ns/net"


def mark_lab() -> None:
    """Notes in the environment that this process, which has just entered a node, and its children are inside."""
    os.environ[VARIABLE] = str(os.stat(_NETWORK).st_ino)


def inside_lab(environ: Mapping[str, str] = os.environ) -> bool:
    """The mark is there and this is the network that it was made in: who has left the node is outside again."""
    try:
        return environ.get(VARIABLE) == str(os.stat(_NETWORK).st_ino)
    except OSError:
        return False
