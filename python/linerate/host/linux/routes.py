"""Knobs that sit on routes: delayed ACK and, where a namespace may not choose a default, congestion control.

Every IPv4 unicast route of a port is marked, in every table but the local one. Two routes to the same place
(two ports in one subnet) are kept in their order, because the first one wins: the new copy goes in before the
old one goes out.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from linerate.host.linux.knob import Reading, State
from linerate.host.setting import UnavailableError, Value

if TYPE_CHECKING:
    from linerate.host.linux.kernel import Kernel

_LOCAL_TABLE = 255
_UNICAST = 1
_QUICKACK, _CONGESTION = "quickack", "cc_algo"
_CHOSEN = "net.ipv4.tcp_congestion_control"
_KNOWN = "net.ipv4.tcp_available_congestion_control"


@dataclass(frozen=True, slots=True)
class DelayedAck:
    """Off marks routes with quickack, so that a receiver acknowledges at once."""

    @property
    def source(self) -> str:
        """The routes' metric."""
        return "ip route quickack"

    def read(self, kernel: Kernel, device: str) -> Reading:
        """Off when every route of the port is marked."""
        marks = {_key(route): _metrics(route).get(_QUICKACK) or 0 for route in _need_routes(kernel, device)}
        return Reading(not all(marks.values()), marks)

    def write(self, kernel: Kernel, device: str, value: Value) -> None:
        """Marks or unmarks every route of the port."""
        _mark(kernel, device, _QUICKACK, lambda _: 0 if value else 1)

    def restore(self, kernel: Kernel, device: str, state: State) -> None:
        """Marks each route as it was; routes that came later are left alone."""
        _mark(kernel, device, _QUICKACK, state.get)

    def most(self, kernel: Kernel, device: str) -> int | None:
        """A switch has no range."""
        return None

    def commands(self, device: str, value: Value, reading: Reading) -> list[str]:
        """ip route change, for each route of the port."""
        return [
            f"ip -4 route show dev {device} table all type unicast | while read -r route; do "
            f"ip route change $route dev {device} quickack {0 if value else 1}; done"
        ]


@dataclass(frozen=True, slots=True)
class CongestionControl:
    """The namespace's default, or the routes of all ports where the kernel refuses the default.

    A network namespace may choose only what its parent allows as a default; a route may carry any that the
    kernel has.
    """

    @property
    def source(self) -> str:
        """Both places."""
        return f"sysctl {_CHOSEN}, or ip route congctl"

    def read(self, kernel: Kernel, device: str) -> Reading:
        """What connections over the ports get: the routes' choice when they agree, else the default."""
        default = kernel.sysctl(_CHOSEN)
        marks = {
            port: {_key(route): _metrics(route).get(_CONGESTION) or "" for route in _routes(kernel, port)}
            for port in kernel.devices
        }
        chosen = {choice or default for keys in marks.values() for choice in keys.values()} or {default}
        value = chosen.pop() if len(chosen) == 1 else "mixed"
        return Reading(value, {"default": default, "routes": marks})

    def write(self, kernel: Kernel, device: str, value: Value) -> None:
        """Sets the default, else the routes."""
        known = kernel.sysctl(_KNOWN).split()
        if value not in known:
            raise UnavailableError(
                f"this kernel has no congestion control {value}", f"it has {', '.join(known)}"
            )
        try:
            kernel.set_sysctl(_CHOSEN, str(value))
            mark = ""
        except UnavailableError:
            if not any(_routes(kernel, port) for port in kernel.devices):
                raise
            mark = str(value)
        for port in kernel.devices:
            _mark(kernel, port, _CONGESTION, lambda _: mark)

    def restore(self, kernel: Kernel, device: str, state: State) -> None:
        """Puts the default and each route's choice back."""
        if kernel.sysctl(_CHOSEN) != state["default"]:
            kernel.set_sysctl(_CHOSEN, state["default"])
        for port, marks in state["routes"].items():
            _mark(kernel, port, _CONGESTION, marks.get)

    def most(self, kernel: Kernel, device: str) -> int | None:
        """A choice has no range."""
        return None

    def commands(self, device: str, value: Value, reading: Reading) -> list[str]:
        """sysctl -w; ip route congctl is the way inside a namespace."""
        return [f"sysctl -w {_CHOSEN}={value}"]


def _need_routes(kernel: Kernel, device: str) -> list[Any]:
    routes = _routes(kernel, device)
    if not routes:
        raise UnavailableError(f"{device} has no IPv4 route", "give it an address first")
    return routes


def _routes(kernel: Kernel, device: str) -> list[Any]:
    index = kernel.link(device)["index"]
    return [route for route in _unicast(kernel) if route.get_attr("RTA_OIF") == index]


def _unicast(kernel: Kernel) -> list[Any]:
    routes = kernel.routing.get_routes(family=socket.AF_INET)
    return [route for route in routes if route["type"] == _UNICAST and _table(route) != _LOCAL_TABLE]


def _table(route: Any) -> int:
    return int(route.get_attr("RTA_TABLE") or route["table"])


def _place(route: Any) -> str:
    """What makes two routes rivals: table, destination, type of service and priority."""
    to = f"{route.get_attr('RTA_DST') or '0.0.0.0'}/{route['dst_len']}"
    return f"{_table(route)} {to} tos {route['tos']} metric {route.get_attr('RTA_PRIORITY') or 0}"


def _key(route: Any) -> str:
    """A route's name in a state: its place, port and gateway."""
    return f"{_place(route)} dev {route.get_attr('RTA_OIF')} via {route.get_attr('RTA_GATEWAY') or '-'}"


def _mark(kernel: Kernel, device: str, name: str, wanted: Callable[[str], Any]) -> None:
    """Sets a metric of the port's routes: `wanted` gives it by the route's key, None to leave the route
    alone."""
    changes = {}
    for route in _routes(kernel, device):
        value = wanted(_key(route))
        if value is not None and (value or None) != (_metrics(route).get(name) or None):
            changes[_key(route)] = value
    if not changes:
        return
    rivals: dict[str, list[Any]] = {}
    for route in _unicast(kernel):
        rivals.setdefault(_place(route), []).append(route)
    for group in rivals.values():
        if any(_key(route) in changes for route in group):
            _rewrite(kernel, group, name, changes)


def _rewrite(kernel: Kernel, group: list[Any], name: str, changes: dict[str, Any]) -> None:
    """Lets every route of a group leave at the front and come back at the end, so that their order stays."""
    for route in group:
        old = dict(_attributes(route))
        if _key(route) in changes:
            metrics = _metrics(route) | {name: changes[_key(route)]}
            new = old | {"metrics": {key: value for key, value in metrics.items() if value}}
            kernel.change_route("append", new)
            kernel.change_route("del", old)
        elif len(group) > 1:
            kernel.change_route("del", old)
            kernel.change_route("append", old)


def _attributes(route: Any) -> Iterator[tuple[str, Any]]:
    """A route as the keywords that make the same one again."""
    for key in ("family", "dst_len", "tos", "proto", "scope", "type"):
        yield key, route[key]
    yield "table", _table(route)
    for key, attribute in (
        ("dst", "RTA_DST"),
        ("prefsrc", "RTA_PREFSRC"),
        ("priority", "RTA_PRIORITY"),
        ("oif", "RTA_OIF"),
        ("gateway", "RTA_GATEWAY"),
    ):
        if (value := route.get_attr(attribute)) is not None:
            yield key, value
    if kept := _metrics(route):
        yield "metrics", kept


def _metrics(route: Any) -> dict[str, Any]:
    metrics = route.get_attr("RTA_METRICS")
    attributes = metrics["attrs"] if metrics is not None else ()
    return {key.removeprefix("RTAX_").lower(): value for key, value, *_ in attributes}
