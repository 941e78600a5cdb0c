"""One copy of a group of volumes to the partner, step by step.

    source                              partner
    replica_prepare: a point in time
                                        replica_begin: volumes as they were at the newest common point
    replica_copy: what changed, over the SAN
                                        replica_commit: all of it is a point there, too
    replica_confirm: later copies start from it

After any failure, start again from the first step: the arrays find the point and the offset where it stopped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from linerate.array.partners import Replication
from linerate.errors import PeerError

PERIOD_S = 0.5

Ask = Callable[[str, dict[str, Any]], dict[str, Any]]
"""Has an array carry out a verb with its fields; gives the reply."""


class CutOffError(Exception):
    """The array ends: the copy goes on when it serves again."""


def transfer(
    replication: Replication,
    portal: str,
    pair: dict[str, str],
    here: Ask,
    there: Ask,
    ended: threading.Event,
    told: Callable[[dict[str, Any]], None],
    *,
    last: bool = False,
) -> None:
    """Copies the volumes as they are now, or goes on with a copy that stopped. `told` hears the progress.

    `portal`: a portal of the partner. `pair`: the identities of both arrays, `here` and `partner`.
    `last`: hosts are kept out before the point is taken, until `replica_stop` or a copy that is not the last.
    Raises LinerateError for what failed at either end, and CutOffError once `ended` is set.
    """
    group, volumes = replication.name, list(replication.volumes)
    asked = {"group": group, "volumes": volumes, "pair": pair, "keep": replication.keep}
    offer = here("replica_prepare", asked | ({"last": True} if last else {}))
    begun = there("replica_begin", {"offer": offer, "pool": replication.pool})
    answer = begun["answer"]
    # Also when the partner has the point already: so the source learns it, and that nothing is left to copy.
    options = {"rate_bytes_per_s": replication.rate_bytes_per_s or 0}
    copy = {"answer": answer, "access": begun["access"], "link": {"portal": portal}, "options": options}
    here("replica_copy", copy)
    _await_copy(group, here, ended, told)
    commit = {key: answer[key] for key in ("group", "point", "incarnation")}
    there("replica_commit", {"commit": commit})
    here("replica_confirm", {"commit": commit})


def _await_copy(
    group: str, here: Ask, ended: threading.Event, told: Callable[[dict[str, Any]], None]
) -> None:
    while True:
        progress = here("replica_status", {"group": group})["progress"] or {}
        told(progress)
        if not progress.get("is_running"):
            break
        if ended.wait(PERIOD_S):
            here("replica_stop", {"group": group})
            raise CutOffError
    if error := progress.get("error"):
        raise PeerError(error, "it is tried again, and goes on where it stopped")
