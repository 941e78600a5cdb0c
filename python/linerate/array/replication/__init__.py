"""Replication: who drives the copying of volumes to a partner, when, and what is told about it.

Open this file first. The data plane of each array knows the points that it holds and moves the bytes, over the SAN;
`transfer` leads both arrays through one copy, step by step, each of which may be repeated; `replicating` does that on
schedule and on demand, tries again when the partner does not answer, and changes sides.
"""

from linerate.array.replication.replicating import Replicating
from linerate.array.replication.transfer import transfer

__all__ = ["Replicating", "transfer"]
