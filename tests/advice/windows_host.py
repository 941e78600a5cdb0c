"""A Windows host as the JSON of `facts.ps1`, made up after the script. It breaks no rule."""

from __future__ import annotations

from typing import Any

TARGET = "iqn.2004-04.com.qnap:ts-873:iscsi.vol1.d34c2a"
NAMES = ("SAN 1", "SAN 2")
_PROPERTIES = {
    "*JumboPacket": 9014,
    "*FlowControl": 0,
    "*ReceiveBuffers": 4096,
    "*TransmitBuffers": 16384,
    "*RSS": 1,
    "*LsoV2IPv4": 1,
    "*RscIPv4": 1,
    "*TCPChecksumOffloadIPv4": 3,
    "*InterruptModeration": 1,
    "*TCPConnectionOffloadIPv4": 0,
}
_MOST = {"*ReceiveBuffers": 4096, "*TransmitBuffers": 16384}


def windows_facts() -> dict[str, Any]:
    """The document, to be changed by a test."""
    return {
        "schema": "linerate.windows-facts/1",
        "time": "2026-11-26T08:00:00Z",
        "system": [
            {"name": "HV1", "caption": "Microsoft Windows Server 2016", "started": "2026-11-01T05:00:00Z"}
        ],
        "cpus": [16],
        "adapters": [_adapter(number, name) for number, name in enumerate(NAMES, start=1)],
        "properties": [
            {"name": name, "keyword": keyword, "value": str(value), "most": _MOST.get(keyword)}
            for name in NAMES
            for keyword, value in _PROPERTIES.items()
        ],
        "netbios": [{"index": 11, "option": 2}, {"index": 12, "option": 2}],
        "offload": [{"rss": "Enabled", "chimney": "Disabled"}],
        "tcp": [
            {"name": "Datacenter", "autotuning": "Normal", "ack": 2},
            {"name": "DatacenterCustom", "autotuning": "Normal", "ack": 2},
        ],
        "filters": [{"name": "Automatic", "first": 0, "last": 65535, "prefix": "*"}],
        "addresses": [
            {"index": 11, "address": "10.0.1.21", "prefix": 24},
            {"index": 12, "address": "10.0.2.21", "prefix": 24},
        ],
        "routes": [{"index": 5}],
        "team_members": [],
        "switch_team_members": [],
        "pfc": [{"priority": 4}],
        "sessions": [_session(number) for number in (1, 2)],
        "portals": [{"target": TARGET, "portal": f"10.0.{number}.101"} for number in (1, 2)],
        "disks": [_disk()],
        "mpio": [{"disk": "MPIO Disk0", "paths": 2, "dsm": "Microsoft DSM"}],
        "policies": [{"instance": "MPIO Disk0", "policy": 2, "active": 2}],
        "supported": [
            {"vendor": "QNAP", "product": "iSCSI Storage"},
            {"vendor": "Vendor 8", "product": "Product 16"},
        ],
        "connections": [{"own": "10.0.1.21", "own_port": 50100, "port": 3260}],
        "target": [],
        "pending": [{"reboot": False}],
        "missing": {},
    }


def _adapter(number: int, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "description": "Intel(R) Ethernet 10G 2P X520 Adapter",
        "index": 10 + number,
        "guid": f"{{0000000{number}}}",
        "status": "Up",
        "bits_per_s": 10_000_000_000,
        "full_duplex": True,
        "medium": "802.3",
        "driver": "4.1.131.0",
        "driver_date": "2025-06-01",
        "location": f"0:{number}:0",
        "installed": "2026-01-10T00:00:00Z",
        "bindings": ["ms_tcpip"],
        "interface": [{"ack_frequency": None, "no_delay": 1}],
    }


def _session(number: int) -> dict[str, Any]:
    return {
        "id": f"ffffa-{number}",
        "target": TARGET,
        "own": f"10.0.{number}.21",
        "portal": f"10.0.{number}.101",
        "hop": "0.0.0.0",
        "disks": [3],
    }


def _disk() -> dict[str, Any]:
    return {
        "number": 3,
        "serial": "d34c2a",
        "vendor": "QNAP",
        "product": "iSCSI Storage",
        "logical": 512,
        "physical": 4096,
        "write_cache": False,
        "offsets": [1048576],
        "volumes": [{"cluster": 65536, "size": 1000, "free": 600}],
    }
