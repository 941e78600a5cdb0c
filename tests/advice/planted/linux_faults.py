"""Faults of a Linux host, planted one at a time: the rule that must find it, and what mends it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.advice.linux_host import PORTS, TARGET, LinuxHost


@dataclass(frozen=True)
class LinuxFault:
    """`found` is part of what the rule says, `mend` part of the way to mend it. `answers` are for both twins."""

    rule: int
    plant: Callable[[LinuxHost], None]
    found: str
    mend: str
    answers: tuple[str, ...] = ()
    healthy: Callable[[LinuxHost], None] | None = None
    """Makes a clean host on which the rule is needed; `plant` comes after it."""


def _setting(name: str, value: object, port: str = "eth2") -> Callable[[LinuxHost], None]:
    def plant(host: LinuxHost) -> None:
        host.settings[name, port] = value

    return plant


def _file(ending: str, text: str) -> Callable[[LinuxHost], None]:
    """Every file with that end."""

    def plant(host: LinuxHost) -> None:
        places = [path for path in host.files if path.endswith(ending)]
        assert places, ending
        host.files |= dict.fromkeys(places, text)

    return plant


def _command(words: str, answer: object) -> Callable[[LinuxHost], None]:
    def plant(host: LinuxHost) -> None:
        host.commands[words] = answer

    return plant


def _offload(mtu: str) -> Callable[[LinuxHost], None]:
    def plant(host: LinuxHost) -> None:
        _file("host3/proc_name", "bnx2i")(host)
        host.files["sys/class/iscsi_iface/ipv4-iface-3-0/mtu"] = mtu

    return plant


def _slave(host: LinuxHost) -> None:
    host.link("eth2", info_slave_kind="bond")


def _mesh(host: LinuxHost) -> None:
    """Two more sessions that cross over: each portal from both ports."""
    host.session(3, 5, "sdd", "10.0.1.11", "10.0.2.101")
    host.session(4, 6, "sde", "10.0.2.11", "10.0.1.101")
    host.map(("active", ("sdb", "sdc", "sdd", "sde")))


def _three_active(host: LinuxHost) -> None:
    host.session(3, 5, "sdd", "10.0.1.11", "10.0.1.102")
    host.map(("active", ("sdb", "sdc", "sdd")))


def _more_portals(host: LinuxHost) -> None:
    for number in (2, 3):
        host.session(number + 1, number + 3, f"sd{'xyz'[number - 1]}", "10.0.1.11", f"10.0.1.10{number}")
    host.map(("active", ("sdb", "sdc")))


def _one_port(host: LinuxHost) -> None:
    host.files["sys/class/iscsi_host/host4/ipaddress"] = "10.0.1.11"


def _one_switch(host: LinuxHost) -> None:
    host.neighbours(("eth2", "sw1"), ("eth3", "sw1"))


def _one_card(host: LinuxHost) -> None:
    host.links["sys/class/net/eth3/device"] = "../../../0000:3b:00.1"


def _uneven(host: LinuxHost) -> None:
    for number in (3, 4):
        host.session(number, number + 2, f"sd{'abcdef'[number]}", "10.0.1.11", "10.0.1.101")


def _one_subnet(host: LinuxHost) -> None:
    host.commands["ip -j addr show"][0]["addr_info"][0]["prefixlen"] = 16
    host.commands["ip -j addr show"][1]["addr_info"][0]["prefixlen"] = 16


def _target(*addresses: str) -> Callable[[LinuxHost], None]:
    def plant(host: LinuxHost) -> None:
        for address in addresses:
            host.files[f"sys/kernel/config/target/iscsi/iqn.2026-11.lab:t/tpgt_1/np/{address}:3260/iser"] = (
                "0"
            )

    return plant


def _small_frames(host: LinuxHost) -> None:
    host.small_frames.add("10.0.2.101")


def _silent(host: LinuxHost) -> None:
    host.commands["iscsiadm -m node"] += f"10.0.3.101:3260,1 {TARGET}\n"
    host.silent.add("10.0.3.101")


def _idle_portal(host: LinuxHost) -> None:
    host.commands["iscsiadm -m node"] += f"10.0.1.102:3260,1 {TARGET}\n"


def _full(host: LinuxHost) -> None:
    host.used_percent = 91


def _default_route(host: LinuxHost) -> None:
    host.commands["ip -j route show"].append({"dst": "default", "gateway": "10.0.1.1", "dev": "eth2"})


def _ipv6(host: LinuxHost) -> None:
    host.address("eth2", "inet6", "fe80::1", 64)


def _wireless(host: LinuxHost) -> None:
    host.files["sys/class/net/eth2/wireless/status"] = "0"


def _long_way(host: LinuxHost) -> None:
    host.commands["ss -Htin dport = :3260"] = "ESTAB 0 0 10.0.1.11:40100 10.0.1.101:3260\n\t rtt:9.5/0.1\n"


def _pauses(host: LinuxHost) -> None:
    """Pause frames in place of PFC, which these drivers do not have."""
    for port in PORTS:
        del host.commands[f"dcb -j pfc show dev {port}"]
        host.refused[f"dcb -j pfc show dev {port}"] = "Attribute read: Operation not supported"
        host.settings["flow_control", port] = "on"


_CONVERGED = ("converged=yes",)
_ETHTOOL_FIXED = "\tAuto-negotiation: off\n\tLink partner advertised auto-negotiation: Yes\n"

FAULTS = (
    LinuxFault(1, _setting("mtu", 1500), "MTU: 1500 bytes", "linerate host apply mtu=9000 --device eth2"),
    LinuxFault(2, _small_frames, "arrives: no", "smaller MTU"),
    LinuxFault(
        3,
        _setting("flow_control", "off"),
        "off",
        "linerate host apply flow_control=on --device eth2",
        healthy=_pauses,
    ),
    LinuxFault(5, _setting("rx_ring_frames", 512), "512 frames; wanted: at least 4096", "rx_ring_frames=max"),
    LinuxFault(6, _setting("tx_ring_frames", 256), "256 frames; wanted: at least 4096", "tx_ring_frames=max"),
    LinuxFault(7, _setting("rss", False), "off; wanted: on", "linerate host apply rss=on"),
    LinuxFault(8, _setting("rsc", False), "off; wanted: on", "linerate host apply rsc=on"),
    LinuxFault(9, _setting("lso", False), "off; wanted: on", "linerate host apply lso=on"),
    LinuxFault(10, _setting("checksum_offload", "tx"), "tx; wanted: on", "checksum_offload=on"),
    LinuxFault(11, _setting("receive_window_autotuning", False, ""), "off", "receive_window_autotuning=on"),
    LinuxFault(11, _long_way, "6291456 bytes; wanted: at least 23750000", "receive_buffer_max_bytes=16m"),
    LinuxFault(
        12, _setting("interrupt_moderation_us", 0), "0; wanted: not 0", "interrupt_moderation_us=adaptive"
    ),
    LinuxFault(13, _setting("delayed_ack", False), "off; wanted: on", "delayed_ack=on"),
    LinuxFault(17, _offload("1500"), "1500 bytes", "vendor's tool", healthy=_offload("9600")),
    LinuxFault(18, _slave, "team or bond: yes", "take the port out of the team"),
    LinuxFault(19, _ipv6, "IPv6; wanted: none", "unbind"),
    LinuxFault(19, _command("ss -Htln", "LISTEN 0 128 10.0.1.11:445 0.0.0.0:*\n"), "TCP port 445", "unbind"),
    LinuxFault(20, _more_portals, "2; wanted: at most 1", "add a host port"),
    LinuxFault(21, _one_port, "reach it: 1; wanted: at least 2", "second port"),
    LinuxFault(21, _one_switch, "paths: 1; wanted: at least 2", "another switch"),
    LinuxFault(22, _one_card, "ports: 1; wanted: at least 2", "one port of each card"),
    LinuxFault(23, _uneven, "2; wanted: at most 1", "log in again"),
    LinuxFault(24, _mesh, "array port: 2; wanted: at most 1", "pair the ports one to one"),
    LinuxFault(25, _three_active, "active paths: 3; wanted: at most 2", "standby"),
    LinuxFault(26, _mesh, "share an array port: yes", "queue-length 0"),
    LinuxFault(27, _one_subnet, "ports: 1; wanted: 2", "a subnet of its own"),
    LinuxFault(28, _file("device/vendor", "SYNOLOGY"), "configuration: no", "vendor's device section"),
    LinuxFault(
        30,
        _command("ip -j route get 10.0.2.101", [{"dst": "10.0.2.101", "gateway": "10.0.1.1", "dev": "eth2"}]),
        "router: yes",
        "in the array port's subnet",
    ),
    LinuxFault(31, _file("eth3/speed", "1000"), "duplex): 2; wanted: at most 1", "one speed"),
    LinuxFault(32, _command("ethtool eth2", _ETHTOOL_FIXED), "off; wanted: on", "set both ends alike"),
    LinuxFault(32, _file("eth3/duplex", "half"), "half; wanted: full", "both ends alike"),
    LinuxFault(
        33, _command("ss -Htn", "ESTAB 0 0 10.0.1.11:22 10.0.1.5:50000\n"), "port: 1; wanted: 0", "VLAN"
    ),
    LinuxFault(33, _default_route, "by the port: yes", "no gateway"),
    LinuxFault(
        36,
        _target("10.0.1.11", "10.0.9.9"),
        "10.0.9.9",
        "remove the old portal",
        healthy=_target("10.0.1.11"),
    ),
    LinuxFault(36, _silent, "answers: no", "iscsiadm -m node -o delete"),
    LinuxFault(
        37, _file("queue/write_cache", "write back"), "no; wanted: yes", "write-back cache off", ("ups=no",)
    ),
    LinuxFault(38, _file("optimal_io_size", "4096"), "4096 bytes; wanted: at least 65536", "chunks of 64 KB"),
    LinuxFault(39, _full, "91 %; wanted: below 80", "grow the volume"),
    LinuxFault(40, _file("sdb1/start", "63"), "3584; wanted: 0", "at 1 MiB"),
    LinuxFault(42, _idle_portal, "sessions: 2; wanted: at least 3", "log in to each portal"),
    LinuxFault(
        43, _file("proc/mdstat", "md0 : active raid5\n [>...]  resync = 3.1% (1/9)"), "resync", "wait until"
    ),
    LinuxFault(
        47,
        _command("dcb -j pfc show dev eth2", {"prio_pfc": [0, 0, 0, 1, 1, 0, 0, 0]}),
        "3,4; wanted: 4",
        "off for all others",
        _CONVERGED,
    ),
    LinuxFault(
        51,
        _setting("flow_control", "on"),
        "beside PFC: yes",
        "linerate host apply flow_control=off --device eth2",
    ),
)
"""Rules 14, 34 and the wireless part of 50 have tests of their own, as do rules that Linux cannot tell."""
