"""Faults of a Windows host, planted one at a time into the facts of its script."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.advice.windows_host import TARGET

Facts = dict[str, Any]


@dataclass(frozen=True)
class WindowsFault:
    """`found` is part of what the rule says, `mend` part of the way to mend it."""

    rule: int
    plant: Callable[[Facts], None]
    found: str
    mend: str
    answers: tuple[str, ...] = ()
    healthy: Callable[[Facts], None] | None = None
    """Makes a clean host on which the rule is needed; `plant` comes after it."""


def _property(keyword: str, value: int) -> Callable[[Facts], None]:
    def plant(facts: Facts) -> None:
        next(one for one in facts["properties"] if one["keyword"] == keyword)["value"] = str(value)

    return plant


def _first(part: str, **values: Any) -> Callable[[Facts], None]:
    """Changes keys of the first object of a part."""

    def plant(facts: Facts) -> None:
        facts[part][0] |= values

    return plant


def _part(part: str, rows: list[Any]) -> Callable[[Facts], None]:
    def plant(facts: Facts) -> None:
        facts[part] = rows

    return plant


def _more(part: str, *rows: Any) -> Callable[[Facts], None]:
    def plant(facts: Facts) -> None:
        facts[part] = [*facts[part], *rows]

    return plant


def _changed_profile(facts: Facts) -> None:
    facts["tcp"][1]["ack"] = 1


def _filtered_profile(facts: Facts) -> None:
    _changed_profile(facts)
    facts["filters"] = [{"name": "DatacenterCustom", "first": 3260, "last": 3260, "prefix": "*"}]


def _unfiltered(facts: Facts) -> None:
    facts["filters"] = facts["filters"][1:]


def _session(own: str, portal: str) -> dict[str, Any]:
    return {"target": TARGET, "own": own, "portal": portal, "hop": "0.0.0.0", "disks": [3]}


_MESH = _more("sessions", _session("10.0.1.21", "10.0.2.101"), _session("10.0.2.21", "10.0.1.101"))


def _one_card(facts: Facts) -> None:
    facts["adapters"][1]["location"] = facts["adapters"][0]["location"]


def _one_subnet(facts: Facts) -> None:
    for one in facts["addresses"]:
        one["prefix"] = 16


def _no_delay_off(facts: Facts) -> None:
    facts["adapters"][0]["interface"] = [{"ack_frequency": None, "no_delay": None}]


_SERVES = _part(
    "target", [{"address": "10.0.1.21", "listens": True}, {"address": "10.0.2.21", "listens": True}]
)


def _pauses(facts: Facts) -> None:
    """Pause frames in place of PFC."""
    facts["pfc"] = []
    for one in facts["properties"]:
        if one["keyword"] == "*FlowControl":
            one["value"] = "3"


FAULTS = (
    WindowsFault(
        1,
        _property("*JumboPacket", 1514),
        "MTU: 1500",
        "linerate host plan --windows mtu=9000 --device 'SAN 1'",
    ),
    WindowsFault(3, _property("*FlowControl", 0), "off", "flow_control=on", healthy=_pauses),
    WindowsFault(
        5, _property("*ReceiveBuffers", 512), "512 frames; wanted: at least 4096", "rx_ring_frames=max"
    ),
    WindowsFault(6, _property("*TransmitBuffers", 512), "wanted: at least 16384", "tx_ring_frames=max"),
    WindowsFault(7, _property("*RSS", 0), "off; wanted: on", "--windows rss=on"),
    WindowsFault(7, _first("offload", rss="Disabled"), "system: off", "whole system"),
    WindowsFault(8, _property("*RscIPv4", 0), "off", "--windows rsc=on"),
    WindowsFault(9, _property("*LsoV2IPv4", 0), "off", "--windows lso=on"),
    WindowsFault(10, _property("*TCPChecksumOffloadIPv4", 2), "rx; wanted: on", "checksum_offload=on"),
    WindowsFault(11, _first("tcp", autotuning="Disabled"), "off", "--windows receive_window_autotuning=on"),
    WindowsFault(12, _property("*InterruptModeration", 0), "off", "put it back"),
    WindowsFault(
        13,
        _first("adapters", interface=[{"ack_frequency": 1, "no_delay": 1}]),
        "off; wanted: on",
        "delayed_ack=on",
    ),
    WindowsFault(14, _no_delay_off, "on; wanted: off", "--windows nagle=off"),
    WindowsFault(15, _unfiltered, "network: no", "New-NetTransportFilter", healthy=_filtered_profile),
    WindowsFault(16, _property("*TCPConnectionOffloadIPv4", 1), "on; wanted: off", "both on, or both off"),
    WindowsFault(18, _part("team_members", [{"name": "SAN 1"}]), "team or bond: yes", "out of the team"),
    WindowsFault(
        18,
        _part("switch_team_members", [{"description": "Intel(R) Ethernet 10G 2P X520 Adapter"}]),
        "team or bond: yes",
        "out of the team",
    ),
    WindowsFault(
        19, _first("adapters", bindings=["ms_tcpip", "ms_server"]), "File and Printer Sharing", "unbind"
    ),
    WindowsFault(19, _first("netbios", option=0), "NetBIOS", "unbind"),
    WindowsFault(
        20, _more("sessions", _session("10.0.1.21", "10.0.1.102")), "1.5; wanted: at most 1", "host port"
    ),
    WindowsFault(21, _part("sessions", [_session("10.0.1.21", "10.0.1.101")]), "reach it: 1", "second port"),
    WindowsFault(22, _one_card, "ports: 1", "one port of each card"),
    WindowsFault(
        23,
        _more("sessions", *[_session("10.0.1.21", "10.0.1.101")] * 2),
        "2; wanted: at most 1",
        "log in again",
    ),
    WindowsFault(24, _MESH, "array port: 2", "pair the ports"),
    WindowsFault(25, _MESH, "active paths: 4", "standby"),
    WindowsFault(26, _MESH, "array port: yes", "LQD"),
    WindowsFault(27, _one_subnet, "ports: 1; wanted: 2", "a subnet of its own"),
    WindowsFault(
        28,
        _part("supported", [{"vendor": "Vendor 8", "product": "Product 16"}]),
        "no",
        "New-MSDSMSupportedHW",
    ),
    WindowsFault(30, _first("sessions", hop="10.0.1.1"), "router: yes", "array port's subnet"),
    WindowsFault(31, _first("adapters", bits_per_s=1_000_000_000), "2; wanted: at most 1", "one speed"),
    WindowsFault(32, _first("adapters", full_duplex=False), "half", "both ends alike"),
    WindowsFault(
        33, _more("connections", {"own": "10.0.1.21", "own_port": 445, "port": 50000}), "1; wanted: 0", "VLAN"
    ),
    WindowsFault(33, _part("routes", [{"index": 11}]), "by the port: yes", "no gateway"),
    WindowsFault(
        34, _first("adapters", driver_date="2019-02-01"), "94 months; wanted: at most 36", "current driver"
    ),
    WindowsFault(35, _first("pending", reboot=True), "pending: yes", "restart the host"),
    WindowsFault(35, _first("adapters", installed="2026-11-20T00:00:00Z"), "start: yes", "restart the host"),
    WindowsFault(
        36,
        _more("target", {"address": "10.0.9.9", "listens": True}),
        "10.0.9.9",
        "old portal",
        healthy=_SERVES,
    ),
    WindowsFault(
        36,
        _part("target", [{"address": "10.0.1.21", "listens": True}]),
        "does not listen: 10.0.2.21",
        "restart the target service",
        healthy=_SERVES,
    ),
    WindowsFault(
        37, _first("disks", write_cache=True), "no; wanted: yes", "write-back cache off", ("ups=no",)
    ),
    WindowsFault(
        38,
        _first("disks", volumes=[{"cluster": 4096, "size": 1000, "free": 600}]),
        "4096 bytes",
        "AllocationUnitSize",
    ),
    WindowsFault(
        39,
        _first("disks", volumes=[{"cluster": 65536, "size": 1000, "free": 100}]),
        "90 %",
        "grow the volume",
    ),
    WindowsFault(40, _first("disks", offsets=[32256]), "3584; wanted: 0", "at 1 MiB"),
    WindowsFault(
        42, _more("portals", {"target": TARGET, "portal": "10.0.1.109"}), "2; wanted: at least 3", "log in"
    ),
    WindowsFault(
        47,
        _part("pfc", [{"priority": 3}, {"priority": 4}]),
        "3,4; wanted: 4",
        "off for all others",
        ("converged=yes",),
    ),
    WindowsFault(51, _property("*FlowControl", 3), "beside PFC: yes", "flow_control=off"),
)
