"""The registry of facts about a host: every key of a manifest's `environment`, with type, unit and label.

Keys are dotted, most general part first; a `*` means one name, such as a network port's. A key that is
not here cannot be written, so that two manifests always mean the same thing by the same key. Reading is
lenient: an unknown key of a newer version is shown under its own name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from linerate.errors import InternalError
from linerate.results.manifest import FactValue

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Fact:
    """One key: what its value is, how to show it, and whether a difference between two runs matters."""

    key: str
    type: type
    unit: str
    label: str
    group: str
    compared: bool = True


_SYSCTLS = (
    ("net.ipv4.tcp_congestion_control", "TCP congestion control (default)"),
    ("net.ipv4.tcp_available_congestion_control", "TCP congestion control (available)"),
    ("net.ipv4.tcp_rmem", "TCP receive buffer: min, default, max bytes"),
    ("net.ipv4.tcp_wmem", "TCP send buffer: min, default, max bytes"),
    ("net.ipv4.tcp_window_scaling", "TCP window scaling"),
    ("net.ipv4.tcp_timestamps", "TCP timestamps"),
    ("net.ipv4.tcp_sack", "TCP selective acknowledgements"),
    ("net.ipv4.tcp_moderate_rcvbuf", "TCP receive buffer auto-tuning"),
    ("net.ipv4.tcp_mtu_probing", "TCP MTU probing"),
    ("net.ipv4.tcp_slow_start_after_idle", "TCP slow start after idle"),
    ("net.ipv4.tcp_notsent_lowat", "TCP not-sent low-water mark"),
    ("net.core.rmem_max", "Largest receive buffer, bytes"),
    ("net.core.wmem_max", "Largest send buffer, bytes"),
    ("net.core.default_qdisc", "Default queueing discipline"),
    ("net.core.netdev_max_backlog", "Receive backlog, packets"),
    ("net.core.busy_poll", "Busy polling, us"),
    ("kernel.io_uring_disabled", "io_uring disabled"),
)
SYSCTLS = tuple(name for name, _ in _SYSCTLS)

REGISTRY: tuple[Fact, ...] = (
    Fact("host.name", str, "", "Host", "Host", compared=False),
    Fact("host.os", str, "", "Operating system", "Host"),
    Fact("host.kernel", str, "", "Kernel", "Host"),
    Fact("host.architecture", str, "", "Architecture", "Host"),
    Fact("host.hypervisor", bool, "", "Virtual machine", "Host"),
    Fact("host.clock_source", str, "", "Clock source", "Host"),
    Fact("host.load_average_1m", float, "", "Load average before the run (1 min)", "Host", compared=False),
    Fact("cpu.model", str, "", "CPU", "CPU and memory"),
    Fact("cpu.count", int, "", "CPUs online", "CPU and memory"),
    Fact("cpu.allowed", str, "", "CPUs this process may use", "CPU and memory"),
    Fact("cpu.governor", str, "", "Frequency governor", "CPU and memory"),
    Fact("memory.total_bytes", int, "bytes", "Memory", "CPU and memory"),
    Fact("port.*.peers", str, "", "Leads to", "Network ports"),
    Fact("port.*.mtu_bytes", int, "bytes", "MTU", "Network ports"),
    Fact("port.*.speed_mbit_s", int, "Mbit/s", "Link speed", "Network ports"),
    Fact("port.*.driver", str, "", "Driver", "Network ports"),
    Fact("port.*.queues", int, "", "Receive queues", "Network ports"),
    *(Fact(f"sysctl.{name}", str, "", label, "Kernel settings") for name, label in _SYSCTLS),
)


def find_fact(key: str) -> Fact | None:
    """The registry's entry for a key; None for a key that this version does not know."""
    return next((fact for fact in REGISTRY if _matches(fact.key, key)), None)


def _matches(pattern: str, key: str) -> bool:
    if "*" not in pattern:
        return pattern == key
    before, after = pattern.split("*")
    return re.fullmatch(re.escape(before) + r"[^/\s]+" + re.escape(after), key) is not None


def label_of(key: str) -> str:
    """How a key is called in front of people:

    the registry's label, with the port's name where there is one.
    """
    fact = find_fact(key)
    if fact is None:
        return key
    if "*" in fact.key:
        before, after = fact.key.split("*")
        return f"{key[len(before) : len(key) - len(after)]}: {fact.label}"
    return fact.label


def show_fact(key: str, value: FactValue) -> str:
    """A value with its unit, as people read it."""
    fact = find_fact(key)
    unit = fact.unit if fact else ""
    if value is None or value == "":
        return "not available"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if unit == "bytes" and isinstance(value, int) and value >= 64 * MIB:
        return f"{value / (1 << 30):.1f} GiB"
    if isinstance(value, float):
        return f"{value:.2f} {unit}".strip()
    return f"{value} {unit}".strip()


def checked_facts(facts: Mapping[str, FactValue]) -> dict[str, FactValue]:
    """`facts` after checking every key and type against the registry.

    `InternalError` for a key or type that is not in it.
    """
    for key, value in facts.items():
        fact = find_fact(key)
        if fact is None:
            raise InternalError(f"environment fact {key!r} is not in the registry")
        wanted = (int, float) if fact.type is float else (fact.type,)
        if value is not None and type(value) not in wanted:
            raise InternalError(
                f"environment fact {key!r} must be {fact.type.__name__}, not {type(value).__name__}"
            )
    return dict(facts)
