"""Knobs that sit on routes: delayed ACK and, where a namespace may not choose a default, congestion control.

Every IPv4 unicast route of a port is marked, in every table but the local one. Two routes to the same place
(two ports in one subnet) keep their order, because the first one wins. The state is the routes as they were,
so that one that a crash caught on its way comes back.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from linerate.host.linux.knob import Knob, Reading, State
from linerate.host.linux.sysctl import SysctlLine
from linerate.host.setting import UnavailableError
from linerate.setting import Value

if TYPE_CHECKING:
    from linerate.host.linux.kernel import Kernel

_LOCAL_TABLE = 255
_UNICAST = 1
_QUICKACK, _CONGESTION = "quickack", "cc_algo"
_IP_WORDS = {"cc_algo": "congctl"}
_CHOSEN = "net.ipv4.tcp_congestion_control"
_KNOWN = "net.ipv4.tcp_available_congestion_control"

Route = dict[str, Any]
"""A route as the keywords that make the same one again."""


@dataclass(frozen=True, slots=True)
class DelayedAck(Knob):
    """Off marks routes with quickack, so that a receiver acknowledges at once."""

    @property
    def source(self) -> str:
        """The routes' metric."""
        return "ip route quickack"

    def read(self, kernel: Kernel, device: str) -> Reading:
        """Off when every route of the port is marked."""
        index = kernel.link(device)["index"]
        routes = _with_rivals(_unicast(kernel), {index})
        own = [route for route in routes if route["oif"] == index]
        if not own:
            raise UnavailableError(f"{device} has no IPv4 route", "give it an address first")
        ports = {str(link["index"]): link.get_attr("IFLA_IFNAME") for link in kernel.links()}
        return Reading(
            not all(_metric(route, _QUICKACK) for route in own), {"routes": routes, "ports": ports}
        )

    def write(self, kernel: Kernel, device: str, value: Value) -> None:
        """Marks or unmarks every route of the port."""
        _mark(kernel, {kernel.link(device)["index"]}, _QUICKACK, 0 if value else 1)

    def restore(self, kernel: Kernel, device: str, state: State) -> None:
        """Makes the routes as they were; routes to other places are left alone."""
        kernel.link(device)
        _make(kernel, state["routes"])

    def commands(self, device: str, value: Value, reading: Reading) -> list[str]:
        """ip route append and del for each route of the port; when all its rivals follow, their order stays."""
        ports = reading.state["ports"]
        commands = []
        for route in reading.state["routes"]:
            old, new = _marked(route, _QUICKACK, int(bool(value))), _marked(route, _QUICKACK, int(not value))
            if ports[str(route["oif"])] == device:
                commands += [f"ip route append {_text(new, ports)}", f"ip route del {_text(old, ports)}"]
        return commands

    def shell_read(self, device: str) -> str:
        """off when every route of the port is marked, on when none is; nothing when routes differ or none is there."""
        word = 'if (NR && !marked) print "on"; else if (NR && marked == NR) print "off"'
        return f"{_ROUTES} dev {device} | {_PLAIN} | awk '/quickack 1/ {{ marked += 1 }} END {{ {word} }}'"

    def shell_write(self, device: str, value: Value) -> str:
        """ip route append and del for each route of the port."""
        return self.shell_restore(device, "on" if value else "off")

    def shell_restore(self, device: str, state: str) -> str:
        """The same for a word in a variable.

        A route comes in again at the end, so its rivals that stood behind it follow: their order decides.
        """
        return _REMARK.replace("DEVICE", device).replace("STATE", state)


_ROUTES = "ip -4 -o route show table all type unicast"
_PLAIN = "grep -v nexthop | sed 's/ linkdown//; s/ dead//; s/ *$//'"
_PLACE = """awk -v own="$route" '
    function place(words, number,  i, text) {
        text = words[1]
        for (i = 2; i < number; i++) if (words[i] ~ /^(table|metric|tos)$/) text = text " " words[i] " " words[i + 1]
        return text
    }
    BEGIN { wanted = place(part, split(own, part, " ")) }
    behind && place(word, split($0, word, " ")) == wanted { print }
    $0 == own { behind = 1 }'"""
"""A shell command that passes on the rivals of $route behind it; see `_place`."""
_REMARK = f"""\
routes=$({_ROUTES} | {_PLAIN})
printf '%s\\n' "$routes" | while read -r route; do
    case "$route " in *" dev "DEVICE" "*) ;; *) continue ;; esac
    bare=$(printf '%s\\n' "$route" | sed 's/ quickack 1//')
    mark=' quickack 1'
    [ STATE = off ] || mark=
    [ "$route" != "$bare$mark" ] || continue
    ip route append $bare$mark && ip route del $route || exit 1
    printf '%s\\n' "$routes" | {_PLACE} | while read -r rival; do
        ip route del $rival && ip route append $rival || exit 1
    done
done"""
"""Of DEVICE's routes each gets or loses quickack, as STATE says."""


def _text(route: Route, ports: dict[str, str]) -> str:
    """A route as ip takes it."""
    words = [f"{route.get('dst', '0.0.0.0')}/{route['dst_len']}"]
    for key, word in (("gateway", "via"), ("prefsrc", "src"), ("priority", "metric")):
        words += [word, str(route[key])] if key in route else []
    words += ["dev", ports[str(route["oif"])]]
    words += [f"{key} {route[key]}" for key in ("table", "proto", "scope", "tos") if route[key]]
    words += [f"{_IP_WORDS.get(key, key)} {value}" for key, value in route.get("metrics", {}).items()]
    return " ".join(words)


@dataclass(frozen=True, slots=True)
class CongestionControl(SysctlLine):
    """The namespace's default, or the routes of all ports where the kernel refuses the default.

    A network namespace may choose only what its parent allows as a default; a route may carry any that the
    kernel has.
    """

    name: str = _CHOSEN

    @property
    def source(self) -> str:
        """Both places."""
        return f"sysctl {_CHOSEN}, or ip route congctl"

    def read(self, kernel: Kernel, device: str) -> Reading:
        """What connections over the ports get: the routes' choice when they agree, else mixed."""
        default = kernel.sysctl(_CHOSEN)
        ports = _ports(kernel)
        routes = _with_rivals(_unicast(kernel), ports)
        chosen = {_metric(route, _CONGESTION) or default for route in routes if route["oif"] in ports}
        value = default if not chosen else chosen.pop() if len(chosen) == 1 else "mixed"
        return Reading(value, {"default": default, "routes": routes})

    def write(self, kernel: Kernel, device: str, value: Value) -> None:
        """Sets the default, else the routes."""
        known = kernel.sysctl(_KNOWN).split()
        if value not in known:
            raise UnavailableError(
                f"this kernel has no congestion control {value}", f"it has {', '.join(known)}"
            )
        ports = _ports(kernel)
        try:
            kernel.set_sysctl(_CHOSEN, str(value))
        except UnavailableError:
            if not _with_rivals(_unicast(kernel), ports):
                raise
            _mark(kernel, ports, _CONGESTION, value)
        else:
            _mark(kernel, ports, _CONGESTION, "")

    def restore(self, kernel: Kernel, device: str, state: State) -> None:
        """Puts the default and each route's choice back."""
        if kernel.sysctl(_CHOSEN) != state["default"]:
            kernel.set_sysctl(_CHOSEN, state["default"])
        _make(kernel, state["routes"])

    def commands(self, device: str, value: Value, reading: Reading) -> list[str]:
        """sysctl -w; ip route congctl is the way inside a namespace."""
        return [self.shell_write(device, value)]

    def sysctl_text(self, value: Value, line: str) -> str:
        """The algorithm's name."""
        return str(value)


def _ports(kernel: Kernel) -> set[int]:
    return {int(link["index"]) for link in kernel.links() if link.get_attr("IFLA_IFNAME") in kernel.devices}


def _unicast(kernel: Kernel) -> list[Route]:
    """Every route that leads out by one port, in the order of the kernel."""
    messages = kernel.routing.get_routes(family=socket.AF_INET)
    return [
        _route(message)
        for message in messages
        if message["type"] == _UNICAST and _table(message) != _LOCAL_TABLE and message.get_attr("RTA_OIF")
    ]


def _table(message: Any) -> int:
    return int(message.get_attr("RTA_TABLE") or message["table"])


def _route(message: Any) -> Route:
    route = {key: message[key] for key in ("family", "dst_len", "tos", "proto", "scope", "type")}
    route["table"] = _table(message)
    for key in ("dst", "prefsrc", "priority", "oif", "gateway"):
        if (value := message.get_attr(f"RTA_{key.upper()}")) is not None:
            route[key] = value
    metrics = message.get_attr("RTA_METRICS")
    attributes = metrics["attrs"] if metrics is not None else ()
    if kept := {key.removeprefix("RTAX_").lower(): value for key, value, *_ in attributes}:
        route["metrics"] = kept
    return route


def _metric(route: Route, name: str) -> Any:
    return route.get("metrics", {}).get(name)


def _place(route: Route) -> tuple[Any, ...]:
    """What makes two routes rivals: table, destination, type of service and priority."""
    return tuple(route.get(key) for key in ("table", "dst", "dst_len", "tos", "priority"))


def _with_rivals(routes: list[Route], ports: set[int]) -> list[Route]:
    """The routes of the ports and those that share a place with one of them."""
    places = {_place(route) for route in routes if route["oif"] in ports}
    return [route for route in routes if _place(route) in places]


def _mark(kernel: Kernel, ports: set[int], name: str, value: Any) -> None:
    """Sets a metric of the ports' routes; nothing (0, empty) takes it away."""
    routes = _with_rivals(_unicast(kernel), ports)
    _make(kernel, [_marked(route, name, value) if route["oif"] in ports else route for route in routes])


def _marked(route: Route, name: str, value: Any) -> Route:
    bare = {key: kept for key, kept in route.items() if key != "metrics"}
    metrics = {key: kept for key, kept in (route.get("metrics", {}) | {name: value}).items() if kept}
    return bare | {"metrics": metrics} if metrics else bare


def _make(kernel: Kernel, wanted: list[Route]) -> None:
    """Makes the routes stand as given. Called again after a crash in its midst, it ends what it began."""
    there = {str(link["index"]) for link in kernel.links()}
    for command, route in _moves(wanted, _unicast(kernel), there):
        kernel.change_route(command, route)


def _moves(wanted: list[Route], standing: list[Route], there: set[str]) -> list[tuple[str, Route]]:
    """What makes standing routes the wanted ones, place by place and in their order.

    Routes that are right already are not touched, nor routes over a port that is missing. Routes to
    neighbours come first: a route by way of a gateway needs one.
    """
    places: dict[tuple[Any, ...], list[Route]] = {}
    for route in sorted(wanted, key=lambda route: -int(route["scope"])):
        if str(route["oif"]) in there:
            places.setdefault(_place(route), []).append(route)
    return [
        move
        for place, group in places.items()
        for move in _moves_of_place(group, [route for route in standing if _place(route) == place])
    ]


def _moves_of_place(group: list[Route], standing: list[Route]) -> list[tuple[str, Route]]:
    """Each route of a place comes in at the end and its old form goes, so that the order becomes the group's."""
    if group == standing:
        return []
    moves = []
    for route in group:
        if route in standing:
            moves.append(("del", route))
        moves.append(("append", route))
        moves += [("del", old) for old in standing if _way(old) == _way(route) and old not in group]
    return moves


def _way(route: Route) -> tuple[Any, ...]:
    """Which of the routes to a destination it is, apart from its metrics."""
    return route["oif"], route.get("gateway"), route.get("prefsrc")
