"""FabricSpec, version 1: the network of a lab, as handed to the data plane in JSON.

A **port** is a physical NIC port cabled to a switch; each of its **interfaces** is a TAP in some network namespace,
with a VLAN and a priority of its own. **Trunks** join switches, which must form a tree. A port or trunk with several
`links` is a LAG, or a host's team: every flow takes one of those that are up.

All models are frozen and refuse unknown keys. Units end the names: `_bytes`, `_ns`, `_us`, `_frames`, `_bits_per_s`.
`spec.model_dump_json()` is what `_core.Fabric.start` takes.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, NonNegativeInt, model_validator

from linerate.model import Model

LINKS_MAX = 16
DELAY_NS_MAX = 10_000_000_000
BUFFER_BYTES_MAX = 1 << 34

Priority = Annotated[int, Field(ge=0, le=7)]
Percent = Annotated[int, Field(ge=1, le=100)]
Rate = Annotated[int, Field(ge=1_000, le=1_000_000_000_000)]
DelayNs = Annotated[int, Field(ge=0, le=DELAY_NS_MAX)]
Probability = Annotated[float, Field(ge=0, le=1)]
BufferBytes = Annotated[int, Field(ge=64, le=BUFFER_BYTES_MAX)]
Ring = Annotated[int, Field(ge=1, le=1 << 20)]
Mtu = Annotated[int, Field(ge=68, le=16_370)]
Links = Annotated[int, Field(ge=1, le=LINKS_MAX)]
FlowControl = Literal["none", "pause", "pfc"]


class Frozen(Model):
    """Base of the models: immutable, unknown keys refused, an attribute's docstring is its description."""

    model_config = ConfigDict(extra="forbid")


class ScheduleSpec(Frozen):
    """How a sender chooses among priorities that have something to send."""

    kind: Literal["strict", "ets"] = "strict"
    """strict: the highest first. ets (802.1Qaz): each gets at least its share, and what the others leave; a priority
    without a share sends when those with one are silent."""
    shares: dict[Priority, Percent] = Field(default_factory=dict)
    """ETS: priority -> percent, together at most 100."""

    @model_validator(mode="after")
    def _shares_fit(self) -> Self:
        total = sum(self.shares.values())
        if self.kind == "strict" and total:
            raise ValueError("strict scheduling knows no shares")
        if self.kind == "ets" and not 1 <= total <= 100:
            raise ValueError(
                f"the shares add up to {total} percent; expected at most 100, and at least one share"
            )
        return self


class WireSpec(Frozen):
    """A cable; both directions have the same figures."""

    rate_bits_per_s: Rate = 1_000_000_000
    """Line rate of each direction, preamble and gap included: 10**9 carries 81,274 frames of MTU 1500 per second."""
    delay_ns: DelayNs = 0
    """One-way propagation delay."""
    jitter_ns: DelayNs = 0
    """Added to each frame's delay: evenly distributed from 0 to this; order is kept."""
    loss: Probability = 0.0
    """Probability that a frame is lost on the way."""
    up: bool = True
    """Whether the cable is plugged in."""


class NicSpec(Frozen):
    """A network interface card: one physical port of a host or an array."""

    tx_ring_frames: Ring = 512
    """Frames that wait to be sent, per interface; a full ring holds the host back, it drops nothing."""
    rx_ring_frames: Ring = 512
    """Frames that wait for the next interrupt; more are dropped."""
    moderation_us: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """Longest time from a frame's arrival to the interrupt; 0 = one interrupt per frame."""
    moderation_frames: Annotated[int, Field(ge=0, le=1 << 20)] = 0
    """Frames that raise the interrupt before its time; 0 = only time does."""
    rsc: bool = False
    """Receive segment coalescing: consecutive TCP segments within one interrupt are delivered as one."""
    pause_rx: bool = True
    """Pauses when the switch asks for it."""
    pause_tx: bool = False
    """Asks the switch to pause while its receive ring is more than three quarters full."""
    schedule: ScheduleSpec = ScheduleSpec()
    """How the NIC chooses among the priorities of its interfaces."""


class InterfaceSpec(Frozen):
    """A TAP interface in a network namespace."""

    netns: str | None = None
    """Path of the namespace, for example /proc/4711/fd/5; None = that of the fabric's process."""
    interface: Annotated[str, Field(min_length=1, max_length=15)]
    """Name of the interface there."""
    name: Annotated[str, Field(min_length=1)] | None = None
    """What counters and changes call it, unique on its port; None = as the interface."""
    mac: Annotated[str, Field(pattern=r"^[0-9a-fA-F][02468aceACE](:[0-9a-fA-F]{2}){5}$")] | None = None
    """Unicast address, for example 02:00:00:00:01:00; None = one that the kernel makes up."""
    mtu: Mtu = 1500
    """Longest payload of a frame (L3)."""
    vlan: Annotated[int, Field(ge=0, le=4094)] = 0
    """Frames reach only interfaces of the same VLAN."""
    priority: Priority = 0
    """Priority of all frames from here."""
    queue_frames: Annotated[int, Field(ge=1, le=1_000_000)] = 10_000
    """Frames that the host may queue above the NIC's ring (txqueuelen)."""
    napi: bool = False
    """Frames are received by the kernel's NAPI of the namespace, which can be a thread that is charged to the host;
    else the fabric's own thread carries them into the host's stack."""


class PortSpec(Frozen):
    """A physical NIC port and its cable to a switch."""

    name: Annotated[str, Field(min_length=1)]
    """Unique among ports and trunks, for example h1.p0."""
    switch: str
    """The switch at the other end of the cable."""
    links: Links = 1
    """Cables that work as one (LAG); they are counted from 0."""
    wire: WireSpec = WireSpec()
    """The cable."""
    queue_bytes: BufferBytes | None = None
    """Most bytes that a priority may have waiting at the switch for this port; None = what the switch says."""
    nic: NicSpec = NicSpec()
    """The card."""
    interfaces: Annotated[tuple[InterfaceSpec, ...], Field(min_length=1)]
    """TAPs that share this port."""


class SwitchSettings(Frozen):
    """Store and forward, drop-tail queues per egress port and priority, memory shared by all ports."""

    up: bool = True
    """Whether it has power; without, all its links are down."""
    queue_bytes: BufferBytes = 512 << 10
    """Most bytes that one priority of one egress port may have waiting; more are dropped."""
    buffer_bytes: BufferBytes = 16 << 20
    """Most bytes that all queues together may have waiting; more are dropped."""
    mtu: Mtu = 9216
    """Longest payload of a frame (L3) that it forwards."""
    flow_control: FlowControl = "none"
    """Towards a sender that is too fast: none drops, pause (802.3x) stops all priorities, pfc the lossless ones."""
    lossless_priorities: tuple[Priority, ...] = ()
    """Priorities that PFC protects: never dropped for lack of queue space. 802.3x protects all."""
    xoff_bytes: BufferBytes = 64 << 10
    """Bytes from one ingress port (per priority with PFC) in the switch at which it asks that port to pause."""
    xon_bytes: Annotated[int, Field(ge=0, le=BUFFER_BYTES_MAX)] = 32 << 10
    """Bytes at which it lets the port go on; at most xoff_bytes."""
    headroom_bytes: Annotated[int, Field(ge=0, le=BUFFER_BYTES_MAX)] | None = None
    """Room per ingress port above xoff_bytes for what arrives before the pause takes effect; None = as much as the
    wire's rate and delay can bring."""
    ecn_threshold_bytes: Annotated[int, Field(ge=0, le=BUFFER_BYTES_MAX)] = 0
    """Waiting bytes of a queue from which on ECN-capable frames are marked; 0 = never."""
    schedule: ScheduleSpec = ScheduleSpec()
    """How an egress port chooses among its priorities."""

    @model_validator(mode="after")
    def _thresholds_are_ordered(self) -> Self:
        if self.xon_bytes > self.xoff_bytes:
            raise ValueError(f"xon_bytes {self.xon_bytes} is above xoff_bytes {self.xoff_bytes}")
        return self


class SwitchSpec(Frozen):
    """A switch and its name."""

    name: Annotated[str, Field(min_length=1)]
    """Unique among the switches."""
    settings: SwitchSettings = SwitchSettings()
    """How it works."""


class TrunkSpec(Frozen):
    """A cable between two switches."""

    name: Annotated[str, Field(min_length=1)]
    """Unique among ports and trunks."""
    a: str
    """A switch."""
    b: str
    """Another one."""
    links: Links = 1
    """Cables that work as one (LAG)."""
    wire: WireSpec = WireSpec()
    """The cable."""
    queue_bytes: BufferBytes | None = None
    """Most bytes that a priority may have waiting at either end; None = what the switch says."""


class FabricSpec(Frozen):
    """A whole network. References between its parts are checked by the data plane, which names the place."""

    version: Literal[1] = 1
    seed: NonNegativeInt = 0
    """Decides every loss and every jitter."""
    switches: tuple[SwitchSpec, ...]
    ports: tuple[PortSpec, ...]
    trunks: tuple[TrunkSpec, ...] = ()
