"""Reads the facts about this host that a reader of the result needs, years later."""

from __future__ import annotations

import errno
import fcntl
import ipaddress
import os
import platform
import socket
import struct
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linerate.results.facts import SYSCTLS, checked_facts
from linerate.results.manifest import FactValue

_SIOCGIFCONF = 0x8912  # netdevice(7): the IPv4 addresses of all interfaces, as records `struct ifreq`
_IFREQ = struct.Struct("16s 4x 4s 16x")  # name, then family and port, address
_IFREQS_MAX = 1024

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


def collect_environment(peers: Sequence[str] = (), root: Path = Path("/")) -> dict[str, FactValue]:
    """Facts about this host by the keys of `facts.REGISTRY`.

    `peers` are the addresses (host or host:port) under test; the network ports that lead to them are
    described. `root` is where /proc and /sys are found. What cannot be read is left out: a missing fact is
    never an error.
    """
    facts: dict[str, FactValue] = {}
    facts.update(_host_facts(root))
    facts.update(_cpu_facts(root))
    for name in SYSCTLS:
        facts[f"sysctl.{name}"] = " ".join(_read(root / "proc/sys" / name.replace(".", "/")).split())
    for port, reached in ports_towards(peers, root).items():
        facts.update(port_facts(port, reached, root))
    return checked_facts({key: value for key, value in facts.items() if value not in (None, "")})


def _host_facts(root: Path) -> dict[str, FactValue]:
    load = _read(root / "proc/loadavg")
    return {
        "host.name": socket.gethostname(),
        "host.os": _os_name(root),
        "host.kernel": platform.release(),
        "host.architecture": platform.machine(),
        "host.hypervisor": "hypervisor" in _cpuinfo(root, "flags").split(),
        "host.clock_source": _read(root / "sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "host.load_average_1m": float(load.split()[0]) if load else None,
    }


def _cpu_facts(root: Path) -> dict[str, FactValue]:
    memory_kib = next(
        (
            line.split()[1]
            for line in _read(root / "proc/meminfo").splitlines()
            if line.startswith("MemTotal:")
        ),
        None,
    )
    return {
        "cpu.model": _cpuinfo(root, "model name"),
        "cpu.count": os.cpu_count(),
        "cpu.allowed": cpu_list(sorted(os.sched_getaffinity(0))),
        "cpu.governor": _read(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "memory.total_bytes": int(memory_kib) * 1024 if memory_kib else None,
    }


def port_facts(port: str, reached: Sequence[str], root: Path = Path("/")) -> dict[str, FactValue]:
    """Facts about one network port, and the peers that are reached through it; None for what cannot be read."""
    device = root / "sys/class/net" / port
    speed = _read(device / "speed") if _has_line(device) else ""
    mtu = _read(device / "mtu")
    driver = device / "device/driver"
    return {
        f"port.{port}.peers": ", ".join(reached),
        f"port.{port}.mtu_bytes": int(mtu) if mtu else None,
        f"port.{port}.speed_mbit_s": int(speed) if speed.isdigit() else None,
        f"port.{port}.driver": driver.resolve().name if driver.exists() else None,
        f"port.{port}.queues": len(list((device / "queues").glob("rx-*"))) or None,
    }


def _has_line(device: Path) -> bool:
    """Whether an adapter is behind a port, directly or below a VLAN, a bond or a bridge.

    A port without one (veth, tunnel) names a speed that no line has.
    """
    return (device / "device").exists() or any(_has_line(lower) for lower in device.glob("lower_*"))


def cpu_list(cpus: Sequence[int]) -> str:
    """CPU numbers the way the kernel writes them: `0-3,6`."""
    parts: list[list[int]] = []
    for cpu in cpus:
        if parts and cpu == parts[-1][-1] + 1:
            parts[-1].append(cpu)
        else:
            parts.append([cpu])
    return ",".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)


def ports_towards(peers: Sequence[str], root: Path = Path("/")) -> dict[str, list[str]]:
    """The network ports that this host would use towards `peers`, each with the peers behind it."""
    ports: dict[str, list[str]] = {}
    for peer in dict.fromkeys(peers):
        port = _port_towards(host_part(peer), root)
        if port:
            ports.setdefault(port, []).append(peer)
    return ports


def host_part(peer: str) -> str:
    """The host of host, host:port or [address]:port."""
    if peer.startswith("["):
        return peer[1:].split("]")[0]
    return peer.split(":")[0] if peer.count(":") == 1 else peer


@dataclass(frozen=True, slots=True)
class Route:
    """From this host to one of the addresses of another."""

    family: socket.AddressFamily
    address: tuple[Any, ...]
    """Of the other host, as the socket module has it."""
    local: str
    """Our own address on the way there."""


def route_to(host: str) -> Route:
    """To the first of a name's addresses that this host has a route to. Raises OSError if there is none."""
    failure = OSError(errno.EHOSTUNREACH, os.strerror(errno.EHOSTUNREACH))
    for family, _, _, _, address in socket.getaddrinfo(host, 3260, type=socket.SOCK_DGRAM):
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect(address)  # a datagram socket's connect only asks the routing table
                return Route(family, address, str(probe.getsockname()[0]).split("%")[0])
        except OSError as error:
            failure = error
    raise failure


def _port_towards(host: str, root: Path) -> str | None:
    try:
        route = route_to(host)
    except OSError:
        return None
    if ipaddress.ip_address(route.local).is_loopback or route.local == str(route.address[0]):
        return "lo"
    return host_addresses(root).get(ipaddress.ip_address(route.local))


def host_addresses(root: Path = Path("/")) -> dict[IpAddress, str]:
    """The addresses of this host, each with its interface: IPv4, then IPv6, in order."""
    found: dict[IpAddress, str] = dict(sorted(_ipv4_addresses()))
    lines = [line.split() for line in _read(root / "proc/net/if_inet6").splitlines()]
    found.update(
        sorted((ipaddress.IPv6Address(bytes.fromhex(fields[0])), fields[-1]) for fields in lines if fields)
    )
    return found


def _ipv4_addresses() -> Iterator[tuple[ipaddress.IPv4Address, str]]:
    buffer = array("B", bytes(_IFREQ.size * _IFREQS_MAX))
    place, length = buffer.buffer_info()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        answer = fcntl.ioctl(control.fileno(), _SIOCGIFCONF, struct.pack("iP", length, place))
    used, _ = struct.unpack("iP", answer)
    for name, address in _IFREQ.iter_unpack(buffer.tobytes()[:used]):
        yield ipaddress.IPv4Address(address), name.split(b"\0")[0].decode().split(":")[0]  # eth0:1 is a label


def _cpuinfo(root: Path, key: str) -> str:
    for line in _read(root / "proc/cpuinfo").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return ""


def _os_name(root: Path) -> str:
    for line in _read(root / "etc/os-release").splitlines():
        if line.startswith("PRETTY_NAME="):
            return line.partition("=")[2].strip('"')
    return platform.system()


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
