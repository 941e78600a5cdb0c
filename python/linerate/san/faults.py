"""Faults as data: a cable that is pulled, a switch without power, a controller that falls silent.

A fault has a kind, what it hits, and when. As text, and as a table in TOML:

    cable h1.p0 at 10s for 5s        { cable = "h1.p0", at = "10s", for = "5s" }
    switch sw1 at 10s                { switch = "sw1", at = "10s" }
    one_way h1.p0 from at 3s         { one_way = "h1.p0", lost = "from", at = "3s" }
    flap h1.p0 500ms at 3s           { flap = "h1.p0", period = "500ms", at = "3s" }
    mtu h1.p0 1500 at 3s             { mtu = "h1.p0", bytes = 1500, at = "3s" }

    cable       a link is pulled: down both ways, and both of its ends see it
    switch      a switch loses power: all its links are down
    port        an array's port fails: its link is down
    controller  an array's controller (`a1.A`) falls silent: no frame passes its ports, and their links stay up
    one_way     frames from a link's node, or those to it, are lost; the link stays up
    flap        a link is down for the first half of each period, and up for the second
    mtu         a link silently drops packets of more bytes
    address     a node's interface (`a1.p0`) loses the address that the topology gave it

`cable` and `flap` may hit a single link of a team or a trunk: `h1.team0/2` is its second one. Where both ends of a link
are switches, `from` means from the trunk's switch `a`. A fault without `for` lasts until it
is healed. `linerate.lab` carries faults out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Self, get_args

from pydantic import Field, NonNegativeFloat, PositiveFloat, ValidationError, model_validator

from linerate.errors import UserError, fault_text
from linerate.quantity import number_text, parse_time_s
from linerate.san.model import Topology
from linerate.workload.spec import FrozenSpec
from linerate.workload.toml_fields import Bytes, PositiveSeconds, Seconds

FaultKind = Literal["cable", "switch", "port", "controller", "one_way", "flap", "mtu", "address"]
KINDS: tuple[FaultKind, ...] = get_args(FaultKind)
FAULT_FORM = 'write "cable h1.p0 at 10s for 5s"'

FLAP_PERIOD_S = 1.0
"""Of a flapping link whose period is not given."""
_PERIOD_S_MIN, _PERIOD_S_MAX = 0.02, 3600.0
_MTU_MIN, _MTU_MAX = 68, 9216
_DIRECTIONS = ("from", "to")


class Fault(FrozenSpec):
    """Something that breaks, and perhaps heals again."""

    kind: FaultKind
    target: str = Field(min_length=1)
    """A link (`h1.p0`, a trunk), a switch, an array's port or controller (`a1.A`), a node's interface."""
    at_s: NonNegativeFloat = 0.0
    """When, since the start of the run."""
    for_s: PositiveFloat | None = None
    """How long; until it is healed if not given."""
    value: float | Literal["from", "to"] | None = None
    """one_way: which frames are lost, seen from the link's node. flap: seconds of a period. mtu: bytes that pass."""

    @model_validator(mode="before")
    @classmethod
    def _flaps_once_a_second(cls, data: object) -> object:
        if isinstance(data, dict) and data.get("kind") == "flap" and data.get("value") is None:
            return data | {"value": FLAP_PERIOD_S}
        return data

    @model_validator(mode="after")
    def _value_fits_the_kind(self) -> Self:
        number = self.value if isinstance(self.value, float) else None
        match self.kind:
            case "one_way":
                if self.value not in _DIRECTIONS:
                    raise ValueError("one_way needs to know which frames are lost; from or to the node")
            case "flap":
                if number is None or not _PERIOD_S_MIN <= number <= _PERIOD_S_MAX:
                    raise ValueError("flap needs a period; 20ms to 1h")
            case "mtu":
                if number is None or number != int(number) or not _MTU_MIN <= number <= _MTU_MAX:
                    raise ValueError(f"mtu needs the bytes that still pass; {_MTU_MIN} to {_MTU_MAX}")
            case _:
                if self.value is not None:
                    raise ValueError(f"{self.kind} takes no value; leave {self.value} out")
        return self

    @property
    def label(self) -> str:
        """What breaks, without when: `cable h1.p0`."""
        words: list[str] = [self.kind, self.target]
        if isinstance(self.value, float):
            words.append(number_text(self.value) + ("s" if self.kind == "flap" else ""))
        elif self.value is not None:
            words.append(self.value)
        return " ".join(words)

    def __str__(self) -> str:
        """The form that `parse_fault` reads."""
        words = [self.label, f"at {number_text(self.at_s)}s"]
        return " ".join([*words, *([f"for {number_text(self.for_s)}s"] if self.for_s else [])])


class FaultTable(FrozenSpec):
    """A fault as a table in TOML: one of the kinds with what it hits, and when."""

    cable: str | None = None
    """A link, pulled: `host.port`, `array.port` or a trunk."""
    switch: str | None = None
    """A switch without power."""
    port: str | None = None
    """An array's port that fails."""
    controller: str | None = None
    """An array's controller that falls silent: `a1.A`."""
    one_way: str | None = None
    """A link that loses frames in one direction."""
    flap: str | None = None
    """A link that goes down and up."""
    mtu: str | None = None
    """A link that drops large packets."""
    address: str | None = None
    """A node's interface that loses its address."""
    at: Seconds = 0.0
    """Since the start of the run."""
    lasts: PositiveSeconds | None = Field(default=None, alias="for")
    """How long; to the end of the run if not given."""
    lost: Literal["from", "to"] | None = None
    """one_way: frames from the link's node, or to it."""
    period: PositiveSeconds | None = None
    """flap: down and up once in this time; 1 s if not given."""
    bytes: Bytes | None = None
    """mtu: the largest IP packet that still passes."""

    @model_validator(mode="after")
    def _is_a_fault(self) -> Self:
        kinds = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(kinds) != 1:
            said = "no kind of fault" if not kinds else f"several kinds of fault: {', '.join(kinds)}"
            raise ValueError(f"{said}; give one of {', '.join(KINDS)}")
        owners = {"lost": "one_way", "period": "flap", "bytes": "mtu"}
        for key, kind in owners.items():
            if getattr(self, key) is not None and kind != kinds[0]:
                raise ValueError(f"{key} belongs to {kind}; leave it out")
        self.fault()
        return self

    def fault(self) -> Fault:
        """The fault that the table means."""
        kind = next(kind for kind in KINDS if getattr(self, kind) is not None)
        value = next((given for given in (self.lost, self.period, self.bytes) if given is not None), None)
        try:
            return Fault(kind=kind, target=getattr(self, kind), at_s=self.at, for_s=self.lasts, value=value)
        except ValidationError as error:
            raise ValueError(fault_text(error.errors()[0]["msg"])) from error


def parse_fault(text: str) -> Fault:
    """The fault of a text such as `cable h1.p0 at 10s for 5s`. Raises UserError."""
    kind, *words = text.split() or [""]
    if kind not in KINDS or not words:
        raise UserError(f"{text!r} is no fault", f"{FAULT_FORM}; kinds are {', '.join(KINDS)}")
    times: dict[str, float] = {}
    try:
        while len(words) > 2 and words[-2] in ("at", "for"):
            times[words[-2]] = parse_time_s(words[-1])
            del words[-2:]
        target, *value = words
        return Fault.model_validate(
            {
                "kind": kind,
                "target": target,
                "at_s": times.get("at", 0.0),
                "for_s": times.get("for"),
                "value": _value(kind, value),
            }
        )
    except ValidationError as error:
        what, _, accepted = fault_text(error.errors()[0]["msg"]).partition("; ")
        raise UserError(f"{text!r}: {what}", accepted or FAULT_FORM) from error
    except ValueError as error:
        raise UserError(f"{text!r}: {error}", FAULT_FORM) from error


def _value(kind: str, words: Sequence[str]) -> float | str | None:
    if not words:
        return None
    if len(words) > 1:
        raise ValueError(f"{' '.join(words)} is not understood")
    if kind == "flap":
        return parse_time_s(words[0])
    if kind == "mtu" and words[0].isdecimal():
        return float(words[0])
    if kind == "one_way" and words[0] in _DIRECTIONS:
        return words[0]
    raise ValueError(f"{words[0]} is not understood")


def links_hit(topology: Topology, fault: Fault) -> tuple[str, ...]:
    """The links that a fault breaks; none where an address goes. Raises UserError for a target that there is not."""
    hit: Mapping[str, tuple[str, ...]]
    match fault.kind:
        case "switch":
            hit = {switch.name: _links_of(topology, switch.name) for switch in topology.switches}
        case "port":
            hit = {
                f"{array.name}.{port.name}": (f"{array.name}.{port.name}",)
                for array in topology.arrays
                for port in array.ports
            }
        case "controller":
            hit = {
                f"{array.name}.{controller}": tuple(f"{array.name}.{port}" for port in ports)
                for array in topology.arrays
                for controller, ports in array.controllers.items()
            }
        case "address":
            hit = {f"{node.name}.{inside.name}": () for node in topology.nodes for inside in node.interfaces}
        case _:
            hit = {name: (name,) for name in topology.links}
            if fault.kind in ("cable", "flap"):
                counts = {name: count for name, count in topology.link_counts.items() if count > 1}
                hit |= {f"{name}/{n}": (name,) for name, count in counts.items() for n in range(1, count + 1)}
    if fault.target not in hit:
        things = {
            "port": "array port",
            "switch": "switch",
            "controller": "controller",
            "address": "interface",
        }
        what = things.get(fault.kind, "link")
        raise UserError(
            f"{fault.label}: {topology.name} has no {what} {fault.target}", f"there are {', '.join(hit)}"
        )
    return hit[fault.target]


def _links_of(topology: Topology, switch: str) -> tuple[str, ...]:
    ports = [
        f"{node.name}.{port.name}" for node in topology.nodes for port in node.ports if port.switch == switch
    ]
    return (*ports, *(trunk.name for trunk in topology.trunks if switch in (trunk.a, trunk.b)))
