"""Reads the facts about this host that a reader of the result needs, years later."""

from __future__ import annotations

from collections.abc import Sequence

from linerate.results.manifest import FactValue


def collect_environment(peers: Sequence[str] = ()) -> dict[str, FactValue]:
    """Facts about this host by the keys of `facts.REGISTRY`.

    `peers` are the addresses (host or host:port) under test; the ports that lead to them are described. What
    cannot be read is left out: a missing fact is never an error.
    """
    raise NotImplementedError
