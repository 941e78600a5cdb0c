"""A Linux host as captured facts: files below a folder, answers of commands, settings. It breaks no rule."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from linerate.advice.linux.source import LinuxSource
from linerate.errors import HostError
from linerate.host import Shown, named

PORTS = ("eth2", "eth3")
TARGET = "iqn.2004-04.com.qnap:ts-873:iscsi.vol1.d34c2a"
_MULTIPATH_CONFIG = """\
devices {
\tdevice {
\t\tvendor "QNAP"
\t\tproduct "iSCSI Storage"
\t\tpath_selector "round-robin 0"
\t}
}
"""


def _session(
    number: int, host: int, disk: str, address: str, portal: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Files and links of a session with a disk and its partition."""
    place = f"devices/platform/host{host}/session{number}"
    block = f"{place}/target{host}:0:0/{host}:0:0:0/block/{disk}"
    files = {
        f"sys/{place}/iscsi_session/session{number}/targetname": TARGET,
        f"sys/{place}/iscsi_session/session{number}/state": "LOGGED_IN",
        f"sys/class/iscsi_connection/connection{number}:0/persistent_address": portal,
        f"sys/class/iscsi_host/host{host}/ipaddress": address,
        f"sys/class/iscsi_host/host{host}/netdev": "<NULL>",
        f"sys/class/scsi_host/host{host}/proc_name": "iscsi_tcp",
        f"sys/{block}/queue/write_cache": "write through",
        f"sys/{block}/queue/optimal_io_size": "262144",
        f"sys/{block}/queue/logical_block_size": "512",
        f"sys/{block}/queue/physical_block_size": "4096",
        f"sys/{block}/device/vendor": "QNAP    ",
        f"sys/{block}/device/model": "iSCSI Storage   ",
        f"sys/{block}/device/wwid": "naa.6e843b6d34c2a1f",
        f"sys/{block}/dev": f"8:{16 * number}",
        f"sys/{block}/{disk}1/partition": "1",
        f"sys/{block}/{disk}1/start": "2048",
        f"sys/{block}/{disk}1/alignment_offset": "0",
        f"sys/{block}/{disk}1/dev": f"8:{16 * number + 1}",
        f"sys/{block}/holders/dm-0": "",
    }
    links = {
        f"sys/class/iscsi_session/session{number}": f"../../{place}/iscsi_session/session{number}",
        f"sys/class/block/{disk}": f"../../{block}",
        f"sys/class/block/{disk}1": f"../../{block}/{disk}1",
    }
    return files, links


def _files() -> tuple[dict[str, str], dict[str, str]]:
    files = {f"sys/devices/system/cpu/cpu{number}": "" for number in range(4)}
    links: dict[str, str] = {}
    sessions = ((1, 3, "sdb", "10.0.1.11", "10.0.1.101"), (2, 4, "sdc", "10.0.2.11", "10.0.2.101"))
    for session in sessions:
        more, places = _session(*session)
        files |= more
        links |= places
    for port, card in zip(PORTS, ("0000:3b:00.0", "0000:5e:00.0"), strict=True):
        files |= {f"sys/class/net/{port}/speed": "10000", f"sys/class/net/{port}/duplex": "full"}
        links[f"sys/class/net/{port}/device"] = f"../../../{card}"
    files |= {
        "sys/class/net/lo/mtu": "65536",
        "sys/class/block/dm-0/dev": "253:0",
        "proc/mdstat": "Personalities :\nunused devices: <none>",
        "proc/self/mountinfo": "30 1 253:0 / /srv rw,relatime - xfs /dev/mapper/mpatha rw",
    }
    return files, links


def _map(*groups: tuple[str, Sequence[str]], selector: str = "round-robin 0") -> dict[str, Any]:
    """multipathd's answer for one map of these groups: (state, disks)."""
    return {
        "major_version": 0,
        "maps": [
            {
                "name": "mpatha",
                "vend": "QNAP",
                "path_groups": [
                    {
                        "selector": selector,
                        "dm_st": state,
                        "paths": [{"dev": disk, "dm_st": "active"} for disk in disks],
                    }
                    for state, disks in groups
                ],
            }
        ],
    }


def _neighbours(*pairs: tuple[str, str]) -> dict[str, Any]:
    interfaces = [
        {
            "name": port,
            "via": "LLDP",
            "chassis": [{"id": [{"type": "mac", "value": switch}], "name": [{"value": switch}]}],
        }
        for port, switch in pairs
    ]
    return {"lldp": [{"interface": interfaces}]}


def _addresses(*more: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    links = [
        {"ifname": "eth2", "addr_info": [{"family": "inet", "local": "10.0.1.11", "prefixlen": 24}]},
        {"ifname": "eth3", "addr_info": [{"family": "inet", "local": "10.0.2.11", "prefixlen": 24}]},
        {"ifname": "eth0", "addr_info": [{"family": "inet", "local": "192.0.2.7", "prefixlen": 24}]},
    ]
    for name, entry in more:
        next(one for one in links if one["ifname"] == name)["addr_info"].append(entry)
    return links


def _commands() -> dict[str, Any]:
    ethtool = "\tAuto-negotiation: on\n\tLink partner advertised auto-negotiation: Yes\n"
    return {
        "ip -j addr show": _addresses(),
        "ip -j -d link show": [{"ifname": port} for port in (*PORTS, "eth0")],
        "ip -j route show": [{"dst": "default", "gateway": "192.0.2.1", "dev": "eth0"}],
        "ip -j route get 10.0.1.101": [{"dst": "10.0.1.101", "dev": "eth2", "prefsrc": "10.0.1.11"}],
        "ip -j route get 10.0.2.101": [{"dst": "10.0.2.101", "dev": "eth3", "prefsrc": "10.0.2.11"}],
        "ss -Htln": "LISTEN 0 128 0.0.0.0:22 0.0.0.0:*\n",
        "ss -Htn": "ESTAB 0 0 10.0.1.11:40100 10.0.1.101:3260\nESTAB 0 0 192.0.2.7:22 192.0.2.9:50000\n",
        "ss -Htin dport = :3260": (
            "ESTAB 0 0 10.0.1.11:40100 10.0.1.101:3260\n\t cubic wscale:7,7 rto:204 rtt:0.2/0.05 mss:8948\n"
            "ESTAB 0 0 10.0.2.11:40102 10.0.2.101:3260\n\t cubic wscale:7,7 rto:204 rtt:0.2/0.05 mss:8948\n"
        ),
        "lldpctl -f json0": _neighbours(("eth2", "sw1"), ("eth3", "sw2")),
        "multipathd show maps json": _map(("active", ("sdb", "sdc"))),
        "multipathd show config": _MULTIPATH_CONFIG,
        "iscsiadm -m node": f"10.0.1.101:3260,1 {TARGET}\n10.0.2.101:3260,1 {TARGET}\n",
        **{f"ethtool {port}": ethtool for port in PORTS},
        **{f"ethtool -i {port}": "driver: ixgbe\nfirmware-version: 0x800003df\n" for port in PORTS},
        **{f"dcb -j pfc show dev {port}": {"prio_pfc": [0, 0, 0, 0, 1, 0, 0, 0]} for port in PORTS},
    }


_OF_PORTS: dict[str, Any] = {
    "mtu": 9000,
    "checksum_offload": "on",
    "lso": True,
    "rsc": True,
    "interrupt_moderation_us": "adaptive",
    "rx_ring_frames": 4096,
    "tx_ring_frames": 4096,
    "flow_control": "off",
    "rss": True,
    "delayed_ack": True,
}
_OF_HOST: dict[str, Any] = {"receive_window_autotuning": True, "receive_buffer_max_bytes": 6291456}


class LinuxHost:
    """Captured facts that a test changes before it reads them; a command without an answer is not installed."""

    def __init__(self) -> None:
        self.files, self.links = _files()
        self.commands: dict[str, Any] = _commands()
        self.settings: dict[tuple[str, str], Any] = {(name, ""): value for name, value in _OF_HOST.items()}
        self.settings |= {(name, port): value for port in PORTS for name, value in _OF_PORTS.items()}
        self.refused: dict[str, str] = {}
        self.small_frames: set[str] = set()
        self.silent: set[str] = set()
        self.used_percent = 40
        self.asked: list[str] = []

    def session(self, number: int, host: int, disk: str, address: str, portal: str) -> None:
        """One more session."""
        files, links = _session(number, host, disk, address, portal)
        self.files |= files
        self.links |= links

    def map(self, *groups: tuple[str, Sequence[str]], selector: str = "round-robin 0") -> None:
        """The volume's path groups."""
        self.commands["multipathd show maps json"] = _map(*groups, selector=selector)

    def neighbours(self, *pairs: tuple[str, str]) -> None:
        """The switch of each port."""
        self.commands["lldpctl -f json0"] = _neighbours(*pairs)

    def address(self, port: str, family: str, address: str, prefix: int) -> None:
        """One more address."""
        entry = {"family": family, "local": address, "prefixlen": prefix}
        self.commands["ip -j addr show"] = _addresses((port, entry))

    def link(self, port: str, **info: str) -> None:
        """What kind of link a port is."""
        links = deepcopy(self.commands["ip -j -d link show"])
        next(one for one in links if one["ifname"] == port)["linkinfo"] = info
        self.commands["ip -j -d link show"] = links

    def source(self, root: Path) -> LinuxSource:
        """The host below a folder."""
        for path, text in self.files.items():
            place = root / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text + "\n" if text else "")
        for path, target in self.links.items():
            place = root / path
            place.parent.mkdir(parents=True, exist_ok=True)
            if not place.is_symlink():
                place.symlink_to(target)
        return LinuxSource(root, self._run, self._settings, self._connects, self._file_system, "host1")

    def _run(self, arguments: Sequence[str]) -> str:
        words = " ".join(arguments)
        self.asked.append(words)
        if arguments[0] == "ping":
            portal, size = arguments[-1], int(arguments[arguments.index("-s") + 1])
            if portal in self.silent or (portal in self.small_frames and size > 1472):
                raise HostError("ping -n failed: exit 1")
            return ""
        if words in self.refused:
            raise HostError(f"{words} failed: {self.refused[words]}")
        if words not in self.commands:
            raise HostError(f"{arguments[0]} is not installed")
        answer = self.commands[words]
        return answer if isinstance(answer, str) else json.dumps(answer)

    def _settings(self, devices: Sequence[str]) -> list[Shown]:
        found = []
        for (name, device), value in self.settings.items():
            if device in ("", *devices):
                most = 4096 if name.endswith("ring_frames") else None
                why = "the driver has no such setting" if value is None else ""
                found.append(Shown(named(name), device, value, "captured", why, most))
        return found

    def _connects(self, address: str, port: int) -> bool:
        return address not in self.silent

    def _file_system(self, place: str) -> os.statvfs_result:
        del place
        free = 100 - self.used_percent
        return SimpleNamespace(f_blocks=100, f_bfree=free, f_bavail=free)  # type: ignore[return-value]
