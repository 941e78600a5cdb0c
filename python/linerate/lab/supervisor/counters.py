"""Counters that the kernel keeps for a namespace (TCP, interfaces) and for the machine."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from linerate.lab.supervisor.nodes import NodeNamespace
from linerate.san import Topology

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_COLUMNS = {"bytes_received": 0, "frames_received": 1, "bytes_sent": 8, "frames_sent": 9}
_DROPPED_RECEIVED, _DROPPED_SENT = 3, 11


def node_counters(topology: Topology, nodes: Mapping[str, NodeNamespace]) -> dict[str, float]:
    """TCP segments of all hosts and arrays, and bytes of each interface where several share a port."""
    counted: dict[str, float] = {}
    for member in topology.nodes:
        node = nodes[member.name]
        with node.visit():
            tcp = _tcp()
            traffic = _interfaces()
        counted[f"{node.kind}.{node.name}.tcp_segments_sent"] = tcp["OutSegs"]
        counted[f"{node.kind}.{node.name}.tcp_segments_retransmitted"] = tcp["RetransSegs"]
        for port in member.ports:
            for interface in port.interfaces if len(port.interfaces) > 1 else ():
                for unit in ("bytes_sent", "bytes_received"):
                    row = traffic[interface.name]
                    counted[f"interface.{member.name}.{interface.name}.{unit}"] = row[_COLUMNS[unit]]
    return counted


def traffic_counters(node: NodeNamespace, ports: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """`port.LINK.*` as the kernel counts at a node's end; `ports` maps links to the interfaces that use them."""
    with node.visit():
        traffic = _interfaces()
    counted: dict[str, float] = {}
    for link, interfaces in ports.items():
        rows = [traffic[interface] for interface in interfaces]
        for unit, column in _COLUMNS.items():
            counted[f"port.{link}.{unit}"] = sum(row[column] for row in rows)
        counted[f"port.{link}.drops"] = sum(row[_DROPPED_SENT] + row[_DROPPED_RECEIVED] for row in rows)
    return counted


def machine_counters() -> dict[str, float]:
    """CPU seconds of all CPUs: busy, idle, kept back by the hypervisor; and when."""
    fields = [int(ticks) for ticks in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    idle, stolen = fields[3] + fields[4], fields[7]
    return {
        "machine.busy_s": (sum(fields) - idle - stolen) * _TICK_S,
        "machine.idle_s": idle * _TICK_S,
        "machine.stolen_s": stolen * _TICK_S,
        "machine.clock_s": time.monotonic(),
    }


def _tcp() -> dict[str, int]:
    lines = Path("/proc/thread-self/net/snmp").read_text().splitlines()
    names, values = (line.split()[1:] for line in lines if line.startswith("Tcp:"))
    return dict(zip(names, map(int, values), strict=True))


def _interfaces() -> dict[str, list[int]]:
    rows = (line.split(":") for line in Path("/proc/thread-self/net/dev").read_text().splitlines()[2:])
    return {name.strip(): list(map(int, values.split())) for name, values in rows}
