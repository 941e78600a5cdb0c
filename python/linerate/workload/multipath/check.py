"""What in a volume's paths and their multipath settings contradicts itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linerate.workload.spec import MultipathSpec, PathSpec

SESSIONS_MAX = 256
"""Most sessions of one volume, over all its paths."""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """`path` is the number of the path, None where it concerns all of them."""

    path: int | None
    what: str
    accepted: str


def contradiction(paths: Sequence[PathSpec], multipath: MultipathSpec) -> Contradiction | None:
    """The first contradiction, or None."""
    names = [path.name for path in paths]
    for index, path in enumerate(paths):
        if path.name in names[:index]:
            return Contradiction(index, f"path {path.name}: the name is used twice", "give each its own name")
        if path.standby and multipath.policy == "round_robin":
            what = f"path {path.name}: round_robin uses every path, and this one is on standby"
            return Contradiction(index, what, 'write policy = "round_robin_subset"')
    if paths and all(path.standby for path in paths):
        return Contradiction(None, "all paths are on standby", "leave one of them active")
    if (sessions := sum(path.sessions for path in paths)) > SESSIONS_MAX:
        return Contradiction(None, f"{sessions} sessions over all paths", f"at most {SESSIONS_MAX}")
    return None
