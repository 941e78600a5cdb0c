"""Settings of the fabric of a virtual SAN: links, switches, and the network adapters of its hosts.

Adapter settings have their entries in the catalogue of hosts. On a virtual SAN the fabric applies those of
`OF_ADAPTERS`: a virtual adapter has no driver.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from linerate.san import Schedule
from linerate.setting import MAX, Choice, Value, Written
from linerate.settings.san_setting import AS_BUILT, DELAY, RATE, SHARE, ModelField, SanSetting, size

RING_FRAMES_MAX = 4096
"""`max` for the rings of a virtual adapter: the most that common 10 GbE adapters have."""


def _schedule(value: Value) -> Schedule:
    """`strict`, or `ets 3:50 0:50`."""
    kind, *shares = str(value).split()
    if kind not in ("strict", "ets") or (kind == "ets") != bool(shares):
        raise ValueError(value)
    pairs = [share.split(":") for share in shares]
    return Schedule.model_validate({"kind": kind, "shares": {int(to): float(n) for to, n in pairs}})


def _schedule_text(schedule: Schedule) -> str:
    shares = (f"{priority}:{share:g}" for priority, share in schedule.shares.items())
    return " ".join((schedule.kind, *shares))


def _moderation_us(value: Any) -> float:
    if not isinstance(value, int):
        raise ValueError("a virtual adapter has no adaptive mode; write a time in microseconds, or off")
    return float(value)


def _frames(value: Any) -> int:
    return RING_FRAMES_MAX if value == MAX else int(value)


def _pause(value: Any) -> str:
    return "none" if value == "off" else "pause"


OF_ADAPTERS = MappingProxyType(
    {
        "mtu": ModelField("link", "mtu"),
        "flow_control": ModelField("switch", "flow_control", _pause),
        "interrupt_moderation_us": ModelField("nic", "moderation_us", _moderation_us),
        "rx_ring_frames": ModelField("nic", "rx_ring_frames", _frames),
        "tx_ring_frames": ModelField("nic", "tx_ring_frames", _frames),
        "rsc": ModelField("nic", "rsc"),
    }
)
"""Host settings that the fabric of a virtual SAN applies, with the fields of the topology that they write."""

USER_FABRIC_ALWAYS = frozenset(("rx_ring_frames", "tx_ring_frames", "lso"))
"""Settings that the kernel fabric cannot apply at any value."""
USER_FABRIC = USER_FABRIC_ALWAYS | frozenset(
    ("flow_control", "interrupt_moderation_us", "rsc", "link.delay", "link.loss", "switch.flow_control")
)
"""Settings that the kernel fabric cannot apply, except at the value that turns them off."""

SETTINGS = (
    SanSetting(
        name="link.rate",
        title="Line rate",
        applier="fabric",
        kind=RATE,
        default=AS_BUILT,
        field=ModelField("link", "rate_bits_per_s"),
        doc="""The rate of every link in both directions, preamble and gap included. 1 Gbit/s carries
        112.2 MB/s of TCP payload at MTU 1500.""",
    ),
    SanSetting(
        name="link.delay",
        title="Propagation delay",
        applier="fabric",
        kind=DELAY,
        default=AS_BUILT,
        field=ModelField("link", "delay_us"),
        doc="""The one-way propagation delay of every link. It adds to the response time of each I/O in both
        directions, on each link of the path. Light takes 5 us per kilometre of fibre.""",
    ),
    SanSetting(
        name="link.loss",
        title="Frame loss",
        applier="fabric",
        kind=SHARE,
        default=AS_BUILT,
        field=ModelField("link", "loss"),
        doc="""The share of frames that every link loses at random. TCP sends lost frames again and reduces
        its rate, so a small loss costs much throughput.""",
    ),
    SanSetting(
        name="switch.buffer",
        title="Switch buffer",
        applier="fabric",
        kind=size("64k"),
        default=AS_BUILT,
        field=ModelField("switch", "buffer_bytes"),
        doc="""The egress buffer of each switch port, for each priority. A switch drops frames that do not
        fit. Small buffers lose frames when several senders send to one port at the same time.""",
    ),
    SanSetting(
        name="switch.flow_control",
        title="Switch flow control",
        applier="fabric",
        kind=Choice(("none", "pause", "pfc")),
        default=AS_BUILT,
        field=ModelField("switch", "flow_control"),
        doc="""How a switch stops senders before its buffer is full. pause stops the whole link (IEEE 802.3x),
        pfc stops only the lossless priorities (IEEE 802.1Qbb), none drops frames.""",
    ),
    SanSetting(
        name="switch.schedule",
        title="Switch scheduling",
        applier="fabric",
        kind=Written('"strict", or "ets 3:50 0:50"', _schedule, _schedule_text),
        default=AS_BUILT,
        field=ModelField("switch", "schedule"),
        doc="""How a switch port chooses among frames of several priorities. strict sends the highest priority
        first. ets gives each priority a share of the line in percent and gives unused shares to the others
        (IEEE 802.1Qaz).""",
    ),
)
