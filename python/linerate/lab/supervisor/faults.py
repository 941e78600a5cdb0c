"""Faults in force, and what they come to: a impairment for each link that one of them hits.

Several may hit one link; it is as bad as all of them together, and healing one leaves the others. The fabric is told
the impairments of all links that a fault changes in one call, so that a switch or a controller fails at one instant.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from linerate.errors import HostError, UserError
from linerate.san import Fault, Topology, links_hit

_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Impairment:
    """What is wrong with a link, beside its own values."""

    down: bool = False
    """Pulled: neither end has a carrier."""
    lost_from: bool = False
    """No frame from its node (of a trunk: from its switch `a`) arrives."""
    lost_to: bool = False
    """No frame to its node arrives."""
    mtu: int | None = None
    """Larger IP packets do not arrive, either way."""
    pulled: frozenset[int] = frozenset()
    """Of several links that are one, those that are down, counted from 0."""

    def __or__(self, other: Impairment) -> Impairment:
        """Both at once."""
        limits = [mtu for mtu in (self.mtu, other.mtu) if mtu is not None]
        return Impairment(
            self.down or other.down,
            self.lost_from or other.lost_from,
            self.lost_to or other.lost_to,
            min(limits, default=None),
            self.pulled | other.pulled,
        )


NO_IMPAIRMENT = Impairment()


@dataclass(slots=True)
class _Active:
    """A fault in force."""

    fault: Fault
    links: tuple[str, ...]
    turns_ns: int | None = None
    """When a flapping link turns next, on the monotonic clock."""
    down: bool = True
    """The half of its period that a flapping link is in."""

    def impairment(self) -> Impairment:
        match self.fault.kind:
            case "controller":
                return Impairment(lost_from=True, lost_to=True)
            case "one_way":
                return Impairment(lost_from=self.fault.value == "from", lost_to=self.fault.value == "to")
            case "mtu":
                return Impairment(mtu=int(float(self.fault.value or 0)))
            case "address":
                return NO_IMPAIRMENT
            case _:
                _, _, number = self.fault.target.partition("/")
                if number:
                    return Impairment(pulled=frozenset({int(number) - 1} if self.down else ()))
                return Impairment(down=self.down)

    def half_ns(self) -> int:
        return round(float(self.fault.value or 0) * _NS / 2)


class Faults:
    """The faults of one lab.

    `apply` gives links their impairments and returns when that was, in monotonic ns. `address` takes an interface's
    address (`a1.p0`) away or gives it back.
    """

    def __init__(
        self,
        topology: Topology,
        apply: Callable[[Mapping[str, Impairment]], int],
        address: Callable[[str, bool], None],
    ) -> None:
        self._topology = topology
        self._apply = apply
        self._address = address
        self._active: dict[str, _Active] = {}
        self.changes = 0
        """How often a fault began, ended or turned."""

    @property
    def active(self) -> tuple[Fault, ...]:
        """Those in force, the oldest first."""
        return tuple(one.fault for one in self._active.values())

    def impairment(self, link: str) -> Impairment:
        """All that is wrong with a link now."""
        found = NO_IMPAIRMENT
        for one in self._active.values():
            if link in one.links:
                found |= one.impairment()
        return found

    def begin(self, fault: Fault) -> int:
        """Lets it happen, and returns when. Raises UserError for what is so already, HostError for what cannot be."""
        links = links_hit(self._topology, fault)
        if fault.label in self._active:
            raise UserError(f"{fault.label} is already in effect", "heal it first")
        active = _Active(fault, links)
        self._active[fault.label] = active
        try:
            at_ns = self._tell(active, over=False)
        except BaseException:
            del self._active[fault.label]
            raise
        if fault.kind == "flap":
            active.turns_ns = at_ns + active.half_ns()
        return at_ns

    def end(self, fault: Fault) -> int:
        """Heals it, whenever it was meant to end, and returns when. Raises UserError where it is not in force."""
        active = self._active.pop(fault.label, None)
        if active is None:
            known = ", ".join(self._active)
            raise UserError(
                f"{fault.label} is not in force", f"in force: {known}" if known else "nothing has failed"
            )
        try:
            return self._tell(active, over=True)
        except BaseException:
            self._active[fault.label] = active
            raise

    def turn(self, now_ns: int) -> int | None:
        """Turns the flapping links whose time has come; when the next one turns, or None."""
        flapping = [one for one in self._active.values() if one.turns_ns is not None]
        for one in flapping:
            assert one.turns_ns is not None
            if one.turns_ns <= now_ns:
                one.down = not one.down
                # A supervisor that was late for whole periods does not make up for them.
                one.turns_ns = max(one.turns_ns, now_ns - one.half_ns()) + one.half_ns()
                try:
                    self._tell(one, over=False)
                except HostError:  # the fabric has died; the next request for counters reports it
                    one.turns_ns = None
        return min((one.turns_ns for one in flapping if one.turns_ns is not None), default=None)

    def _tell(self, one: _Active, *, over: bool) -> int:
        self.changes += 1
        if one.fault.kind == "address":
            at_ns = time.monotonic_ns()
            self._address(one.fault.target, over)
            return at_ns
        return self._apply({link: self.impairment(link) for link in one.links})
