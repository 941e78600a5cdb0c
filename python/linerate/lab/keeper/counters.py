"""Counters of nodes: TCP and interfaces from the namespace's own files, receive threads from the kernel's list."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

from linerate.lab.keeper.nodes import Node
from linerate.san import Topology

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_BYTES_RECEIVED, _FRAMES_RECEIVED, _DROPPED_RECEIVED = 0, 1, 3
_BYTES_SENT, _FRAMES_SENT, _DROPPED_SENT = 8, 9, 11


def node_counters(topology: Topology, nodes: Mapping[str, Node]) -> dict[str, float]:
    """TCP segments and link traffic of all hosts and arrays."""
    counted: dict[str, float] = {}
    for member in topology.nodes:
        node = nodes[member.name]
        with node.visit():
            tcp = _tcp()
            traffic = _interfaces()
        counted[f"{node.kind}.{node.name}.tcp_segments_sent"] = tcp["OutSegs"]
        counted[f"{node.kind}.{node.name}.tcp_segments_retransmitted"] = tcp["RetransSegs"]
        for port in member.ports:
            rows = [traffic[interface.name] for interface in port.interfaces]
            prefix = f"port.{member.name}.{port.name}"
            counted[f"{prefix}.bytes_sent"] = sum(row[_BYTES_SENT] for row in rows)
            counted[f"{prefix}.bytes_received"] = sum(row[_BYTES_RECEIVED] for row in rows)
            counted[f"{prefix}.frames_sent"] = sum(row[_FRAMES_SENT] for row in rows)
            counted[f"{prefix}.frames_received"] = sum(row[_FRAMES_RECEIVED] for row in rows)
            counted[f"{prefix}.drops"] = sum(row[_DROPPED_SENT] + row[_DROPPED_RECEIVED] for row in rows)
    return counted


def machine_counters() -> dict[str, float]:
    """CPU seconds of all CPUs, busy and idle, and when."""
    fields = [int(ticks) for ticks in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    idle = fields[3] + fields[4]
    return {
        "machine.busy_s": (sum(fields) - idle) * _TICK_S,
        "machine.idle_s": idle * _TICK_S,
        "machine.clock_s": time.monotonic(),
    }


def _tcp() -> dict[str, int]:
    lines = Path("/proc/thread-self/net/snmp").read_text().splitlines()
    names, values = (line.split()[1:] for line in lines if line.startswith("Tcp:"))
    return dict(zip(names, map(int, values), strict=True))


def _interfaces() -> dict[str, list[int]]:
    rows = (line.split(":") for line in Path("/proc/thread-self/net/dev").read_text().splitlines()[2:])
    return {name.strip(): list(map(int, values.split())) for name, values in rows}
