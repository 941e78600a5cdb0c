"""ChangeSpec: what may change while a fabric runs.

Only the keys that are set change; all are checked before the first does.
`change.model_dump_json(exclude_unset=True)` is what `_core.Fabric.change` takes.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from linerate.lab.fabric.spec import (
    LINKS_MAX,
    BufferBytes,
    DelayNs,
    FlowControl,
    Frozen,
    Mtu,
    Priority,
    Probability,
    Rate,
    Ring,
    ScheduleSpec,
)

LinkNumber = Annotated[int, Field(ge=0, lt=LINKS_MAX)]


class WireChange(Frozen):
    """Changes of a cable; see `WireSpec`."""

    rate_bits_per_s: Rate | None = None
    delay_ns: DelayNs | None = None
    jitter_ns: DelayNs | None = None
    loss: Probability | None = None
    up: bool | None = None


class DirectionFault(Frozen):
    """What one direction of a link does to frames while both of its ends take it for sound."""

    loss: Probability = 0.0
    """Probability that a frame is lost, beside the wire's own; 1 = nothing gets through."""
    mtu: Annotated[int, Field(ge=0, le=16_370)] = 0
    """Longest payload (L3) that gets through, as where one station was set to another MTU; 0 = any."""


class LinkChange(Frozen):
    """Changes of one link of a cable. Each direction's faults change as a whole."""

    up: bool | None = None
    """Whether it is plugged in. It carries frames if the whole cable (`Wire.up`) is, too."""
    outbound: DirectionFault | None = None
    """From the node to the switch, or from a trunk's `a` to its `b`."""
    inbound: DirectionFault | None = None
    """The other way."""


class NicChange(Frozen):
    """Changes of a card; see `NicSpec`."""

    tx_ring_frames: Ring | None = None
    rx_ring_frames: Ring | None = None
    moderation_us: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    moderation_frames: Annotated[int, Field(ge=0, le=1 << 20)] | None = None
    rsc: bool | None = None
    pause_rx: bool | None = None
    pause_tx: bool | None = None
    schedule: ScheduleSpec | None = None


class PortChange(Frozen):
    """Changes of one port; see `PortSpec`."""

    wire: WireChange = WireChange()
    nic: NicChange = NicChange()
    queue_bytes: BufferBytes | None = None
    mtu: dict[str, Mtu] = Field(default_factory=dict)
    """Interface (by its name on this port) -> MTU; the fabric changes it on the interface as well."""
    links: dict[LinkNumber, LinkChange] = Field(default_factory=dict)
    """Link of the cable, counted from 0 -> what changes. The host loses its carrier when the last one goes down."""


class TrunkChange(Frozen):
    """Changes of one trunk; see `TrunkSpec`."""

    wire: WireChange = WireChange()
    queue_bytes: BufferBytes | None = None
    links: dict[LinkNumber, LinkChange] = Field(default_factory=dict)
    """Link of the cable, counted from 0 -> what changes."""


class SwitchChange(Frozen):
    """Changes of one switch; see `SwitchSettings`."""

    up: bool | None = None
    queue_bytes: BufferBytes | None = None
    buffer_bytes: BufferBytes | None = None
    mtu: Mtu | None = None
    flow_control: FlowControl | None = None
    lossless_priorities: tuple[Priority, ...] | None = None
    xoff_bytes: BufferBytes | None = None
    xon_bytes: int | None = None
    headroom_bytes: int | None = None
    ecn_threshold_bytes: int | None = None
    schedule: ScheduleSpec | None = None


class ChangeSpec(Frozen):
    """Changes by the names of ports, trunks and switches."""

    ports: dict[str, PortChange] = Field(default_factory=dict)
    trunks: dict[str, TrunkChange] = Field(default_factory=dict)
    switches: dict[str, SwitchChange] = Field(default_factory=dict)
