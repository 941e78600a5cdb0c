"""How many connections one server holds at a time, and which goes when another one comes.

A peer that only holds connections must not keep others out, nor itself: the connection that goes is the one
that has asked nothing for the longest time, of the peer that holds the most. A request that has
come is answered to the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

C = TypeVar("C")


@dataclass(slots=True)
class _Peer(Generic[C]):
    silent: list[C] = field(default_factory=list)
    """Have not sent a whole request yet, oldest first."""
    asking: list[C] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.silent) + len(self.asking)


class Admission(Generic[C]):
    """The connections that a server holds, by peer."""

    def __init__(self, per_peer: int, overall: int) -> None:
        self._per_peer = per_peer
        self._overall = overall
        self._peers: dict[str, _Peer[C]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._peers.values()))

    def enter(self, peer: str, connection: C) -> tuple[bool, C | None]:
        """Whether a new connection may stay, and another one that has to go for it."""
        leaving: C | None = None
        known = self._peers.get(peer, _Peer())
        if len(known) >= self._per_peer:
            if not known.silent:
                return False, None
            leaving = known.silent.pop(0)
        elif len(self) >= self._overall:
            most = max(self._peers.values(), key=lambda one: (len(one.silent), len(one)))
            if not most.silent:
                return False, None
            leaving = most.silent.pop(0)
        self._peers.setdefault(peer, known).silent.append(connection)
        return True, leaving

    def asked(self, peer: str, connection: C) -> None:
        """A whole request has come."""
        known = self._peers.get(peer)
        if known is not None and connection in known.silent:
            known.silent.remove(connection)
            known.asking.append(connection)

    def leave(self, peer: str, connection: C) -> None:
        """A connection is gone; one that had to go may say so again."""
        known = self._peers.get(peer)
        if known is None:
            return
        for held in (known.silent, known.asking):
            if connection in held:
                held.remove(connection)
        if not known:
            del self._peers[peer]
