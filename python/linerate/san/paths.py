"""What follows from a topology: who reaches which array how, where volumes are, what needs the user fabric.

`paths` are all ways that there are, `layout` those that a volume is given. The layouts, for four ports of a host and
two of an array in one network:

    one-to-one   p0 - p0, p1 - p1                        each port has one partner; ports without one stay idle
    partial      p0 - p0, p1 - p1, p2 - p0, p3 - p1      every port is used; ports of the smaller side are shared
    mesh         p0 - p0, p1 - p1, ... p2 - p1, p3 - p0  every port of the host with every port of the array
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import get_args

from linerate.errors import UserError
from linerate.san.model import Array, Interface, Layout, Link, Path, Port, Topology

LAYOUTS: tuple[Layout, ...] = get_args(Layout)
PATHS_FORM = f'{", ".join(LAYOUTS)}, or a list of paths such as "h1.p0 -> a1.p1"'

_PATH = re.compile(r"(\S+?)\.(\S+)\s*->\s*(\S+?)\.(\S+)((?:\s+\S+)*)")
_PATH_FORM = 'write "h1.p0 -> a1.p1", with "standby" or "weight 10" after it if wanted'


def asked_paths(value: object) -> Layout | tuple[str, ...]:
    """A layout by its name, one path or a list of them, as files give it. Raises ValueError."""
    for name in LAYOUTS:
        if value == name:
            return name
    texts = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list | tuple) else ()
    if not texts or not all(isinstance(text, str) and _PATH.fullmatch(text.strip()) for text in texts):
        raise ValueError(f"{value!r} is no layout; write {PATHS_FORM}")
    return texts


def layout(
    topology: Topology, host: str, asked: Layout | Sequence[str] | None = None
) -> dict[str, tuple[Path, ...]]:
    """`array.volume` -> the paths by which a host reaches it, best first; volumes without a path are left out.

    `asked` holds for all volumes: a layout, or paths as texts, of which those of this host count. Without it each
    volume has the paths that the topology gives it, and one path (that of `volume_urls`) if it gives none. The order is
    the same for every volume. Raises UserError for a host, a port or a path that does not exist.
    """
    _host_named(topology, host)
    single = volume_urls(topology, host)
    found: dict[str, tuple[Path, ...]] = {}
    for array in topology.arrays:
        for volume in array.volumes:
            name = f"{array.name}.{volume.name}"
            wanted = asked if asked is not None else volume.paths
            # A file of a share is opened in one session.
            if wanted is not None and array.kind != "nas":
                ways = _laid_out(topology, host, array, wanted)
            else:
                ways = (single[name][0],) if name in single else ()
            if ways:
                found[name] = ways
    return found


def _host_named(topology: Topology, host: str) -> None:
    names = [known.name for known in topology.hosts]
    if host not in names:
        raise UserError(f"{topology.name} has no host {host}", f"its hosts are {', '.join(names)}")


def _laid_out(topology: Topology, host: str, array: Array, asked: Layout | Sequence[str]) -> tuple[Path, ...]:
    try:
        wanted = asked_paths(asked)
    except ValueError as error:
        what, _, accepted = str(error).partition("; ")
        raise UserError(what, accepted) from error
    if isinstance(wanted, str):
        return tuple(_pairs(topology, host, array, wanted))
    named = [_path_named(topology, text) for text in wanted]
    names = [path.name for path in named]
    if doubled := sorted({name for name in names if names.count(name) > 1}):
        raise UserError(
            f"the path {doubled[0]} is given twice", "for several sessions on a path write sessions = 2"
        )
    return tuple(path for path in named if (path.host, path.array) == (host, array.name))


def _pairs(topology: Topology, host: str, array: Array, asked: Layout) -> Iterator[Path]:
    """The paths of a layout: network by network, since a path never leaves one."""
    if asked == "mesh":
        yield from (path for path in paths(topology, host) if path.array == array.name)
        return
    for network in topology.networks:
        ours = [one for one in topology.node(host).interfaces if one.network == network.name]
        theirs = [one for one in array.interfaces if one.network == network.name]
        if ours and theirs:
            count = (min if asked == "one-to-one" else max)(len(ours), len(theirs))
            for number in range(count):
                yield _path(host, ours[number % len(ours)], array.name, theirs[number % len(theirs)])


def _path(host: str, ours: Interface, array: str, theirs: Interface) -> Path:
    return Path(
        host=host,
        host_interface=ours.name,
        host_address=ours.address,
        array=array,
        array_interface=theirs.name,
        array_address=theirs.address,
    )


def _path_named(topology: Topology, text: str) -> Path:
    """The path that a text such as `h1.p0 -> a1.p1 standby` means. Raises UserError."""
    match = _PATH.fullmatch(text.strip())
    assert match is not None
    host, port, array, far_port, words = match.groups()
    ours = _interface(topology, "host", {one.name: one.interfaces for one in topology.hosts}, host, port)
    theirs = _interface(
        topology, "array", {one.name: one.interfaces for one in topology.arrays}, array, far_port
    )
    if ours.network != theirs.network:
        raise UserError(f"{host}.{port} and {array}.{far_port} are in different networks", "join other ports")
    return _path(host, ours, array, theirs).model_copy(update=_marks(text, words.split()))


def _interface(
    topology: Topology, kind: str, nodes: Mapping[str, Sequence[Interface]], name: str, port: str
) -> Interface:
    for interface in nodes.get(name, ()):
        if interface.name == port:
            return interface
    known = [f"{node}.{interface.name}" for node, inside in nodes.items() for interface in inside]
    raise UserError(f"{topology.name} has no {kind} port {name}.{port}", f"there are {', '.join(known)}")


def _marks(text: str, words: Iterable[str]) -> dict[str, object]:
    """The devices of a path."""
    left = list(words)
    marks: dict[str, object] = {}
    while left:
        word = left.pop(0)
        if word == "standby":
            marks["standby"] = True
        elif word == "weight" and left and left[0].isdecimal():
            marks["weight"] = int(left.pop(0))
        else:
            raise UserError(f"{text!r} is not a path: {word} is not understood", _PATH_FORM)
    return marks


def paths(topology: Topology, host: str) -> tuple[Path, ...]:
    """Every way from a host to an array: all pairs of ports in one network, array by array, port by port.

    Each port of the host first meets the array's port of the same number, then the next one, and so on.
    """
    initiator = topology.node(host)
    found: list[Path] = []
    for array in topology.arrays:
        pairs = [
            ((theirs_at - ours_at) % len(array.interfaces), ours_at, ours, theirs)
            for ours_at, ours in enumerate(initiator.interfaces)
            for theirs_at, theirs in enumerate(array.interfaces)
            if ours.network == theirs.network
        ]
        found += [
            _path(host, ours, array.name, theirs)
            for _, _, ours, theirs in sorted(pairs, key=lambda pair: pair[:2])
        ]
    return tuple(found)


def is_joined(topology: Topology, path: Path, broken: Collection[str]) -> bool:
    """Frames can go from one end of a path to the other without a link that is `broken`, by the names of links."""
    ends = (
        _port_of(topology, path.host, path.host_interface),
        _port_of(topology, path.array, path.array_interface),
    )
    if any(f"{node}.{port.name}" in broken for node, port in zip((path.host, path.array), ends, strict=True)):
        return False
    reached, waiting = {ends[0].switch}, [ends[0].switch]
    while waiting:
        here = waiting.pop()
        for trunk in topology.trunks:
            if here in (trunk.a, trunk.b) and trunk.name not in broken:
                other = trunk.b if here == trunk.a else trunk.a
                if other not in reached:
                    reached.add(other)
                    waiting.append(other)
    return ends[1].switch in reached


def _port_of(topology: Topology, node: str, interface: str) -> Port:
    """The port of a node's interface. Raises KeyError."""
    for port in topology.node(node).ports:
        if any(inside.name == interface for inside in port.interfaces):
            return port
    raise KeyError(f"{node}.{interface}")


def volume_urls(topology: Topology, host: str) -> dict[str, tuple[Path, str]]:
    """`array.volume` -> the path that it is given and its URL, volumes spread evenly over the paths to their array."""
    found: dict[str, tuple[Path, str]] = {}
    every = paths(topology, host)
    for array in topology.arrays:
        ways = [path for path in every if path.array == array.name]
        if not ways:
            continue
        for volume in array.volumes:
            path = ways[volume.lun % len(ways)]
            found[f"{array.name}.{volume.name}"] = (path, array.url(volume, path.array_address))
    return found


def beyond_kernel(topology: Topology) -> tuple[str, ...]:
    """Parts of a topology that bridges and HTB cannot give: a reason each, empty if there is none."""
    reasons = [f"{name}: {reason}" for name, link in topology.links.items() for reason in _of_link(link)]
    for node in topology.nodes:
        for port in node.ports:
            if port.nic.moderation_us or port.nic.rsc:
                reasons.append(f"{node.name}.{port.name}: interrupt moderation or RSC")
            if port.links > 1:
                reasons.append(f"{node.name}.{port.name}: a team of {port.links} links")
    for switch in topology.switches:
        if switch.flow_control != "none":
            reasons.append(f"{switch.name}: flow control")
        if switch.ecn_threshold_bytes is not None:
            reasons.append(f"{switch.name}: ECN marking")
    reasons += [f"{trunk.name}: several links" for trunk in topology.trunks if trunk.links > 1]
    return tuple(reasons)


def _of_link(link: Link) -> list[str]:
    named = {"delay": link.delay_us, "jitter": link.jitter_us, "loss": link.loss}
    return [name for name, value in named.items() if value]
