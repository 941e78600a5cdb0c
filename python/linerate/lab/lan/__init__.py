"""LAN traffic: TCP streams between hosts of a lab, which share the network with storage and are measured like it.

Open this file first. `LanTraffic` lets a topology's LAN streams flow while a `with` block lasts, and counts them:

    with LanTraffic(lab, lab.topology.lan) as traffic:
        before = traffic.counters()           # flat, cumulative, like those of the lab
        ...
        after = traffic.counters()

iperf3 carries a stream where it is installed (`iperf`), Linerate's own bulk stream otherwise (`own`). Either way what
arrived is counted at the sink and what was sent again at the source's kernel, when asked, and with the time.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Protocol, Self

from linerate.errors import UserError
from linerate.san import LanStream, Topology

if TYPE_CHECKING:
    from linerate.lab.lab import Lab

Tool = Literal["auto", "iperf3", "own"]

_ARRIVED = ".bytes_received"


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """One end of a stream."""

    node: str
    address: str
    namespace: str
    """Path of the node's network namespace."""
    inside: Callable[[Sequence[str]], Sequence[str]]
    """The command line that runs a command inside the node."""


@dataclass(frozen=True, slots=True)
class Flowing:
    """What one stream did since its start."""

    clock_s: float
    """When, on the monotonic clock."""
    bytes_received: float
    """Payload that arrived at the sink."""
    segments_sent: float
    """Segments with payload, repeats included."""
    segments_retransmitted: float


class Flow(Protocol):
    """A stream that flows."""

    def count(self) -> Flowing:
        """Up to this moment. Raises HostError when it flows no more."""

    def close(self) -> None:
        """Ends it. Twice is once."""


class LanTraffic:
    """LAN streams of a lab, which flow while the `with` block lasts."""

    def __init__(self, lab: Lab, streams: Sequence[LanStream], *, tool: Tool = "auto") -> None:
        self._lab = lab
        self._streams = tuple(streams)
        self.tool: Literal["iperf3", "own"] = _chosen(tool)
        """What carries them."""
        self._flows: dict[str, Flow] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Starts all streams. When it returns, bytes of each have arrived.

        Raises UserError for an end that the lab does not have, HostError for a stream that does not flow.
        """
        from linerate.lab.lan.iperf import IperfFlow
        from linerate.lab.lan.own import OwnFlow

        start = IperfFlow if self.tool == "iperf3" else OwnFlow
        with ExitStack() as stack:
            for stream in self._streams:
                flow = start(stream, self._end(stream.source), self._end(stream.sink))
                self._flows[stream.name] = flow
                stack.callback(flow.close)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def counters(self) -> dict[str, float]:
        """`lan.NAME.bytes_received`, `.tcp_segments_sent`, `.tcp_segments_retransmitted`, since the start; and
        `lan.NAME.clock_s`, when the bytes were counted.

        Raises HostError when a stream flows no more.
        """
        counted: dict[str, float] = {}
        for name, flow in self._flows.items():
            now = flow.count()
            counted[f"lan.{name}.clock_s"] = now.clock_s
            counted[f"lan.{name}.bytes_received"] = now.bytes_received
            counted[f"lan.{name}.tcp_segments_sent"] = now.segments_sent
            counted[f"lan.{name}.tcp_segments_retransmitted"] = now.segments_retransmitted
        return counted

    def _end(self, place: str) -> StreamEnd:
        """The end at `host.interface`."""
        name, _, interface_name = place.partition(".")
        for node in self._lab.topology.nodes:
            for interface in node.interfaces:
                if (node.name, interface.name) == (name, interface_name):
                    path = self._lab.namespace(name).path
                    return StreamEnd(
                        name, interface.address, path, lambda command: self._lab.inside(name, command)
                    )
        raise UserError(f"{self._lab.name} has no {place}", "name a host and its interface: h1.p0")


def between(
    topology: Topology, source: str, sink: str, *, connections: int = 4, rate_bits_per_s: float | None = None
) -> LanStream:
    """A stream from one host to another, each named alone or with its interface: h1, h1.p0.

    Raises UserError when there is no such host, or not exactly one network that both ends are in.
    """
    pairs = [
        (one, other)
        for one, network in _ends(topology, source)
        for other, other_network in _ends(topology, sink)
        if network == other_network and one != other
    ]
    if len(pairs) != 1:
        what = "share several networks" if pairs else "share no network"
        raise UserError(f"{source} and {sink} {what}", "name host.interface at both ends: h1.p0")
    name = f"{source}-{sink}"
    return LanStream(
        name=name,
        source=pairs[0][0],
        sink=pairs[0][1],
        connections=connections,
        rate_bits_per_s=rate_bits_per_s,
    )


def _ends(topology: Topology, text: str) -> list[tuple[str, str]]:
    """(`host.interface`, network) of all that the text may mean."""
    found = [
        (f"{host.name}.{interface.name}", interface.network)
        for host in topology.hosts
        for interface in host.interfaces
        if text in (host.name, f"{host.name}.{interface.name}")
    ]
    if not found:
        hosts = ", ".join(host.name for host in topology.hosts)
        raise UserError(f"there is no host or interface {text}", f"hosts are {hosts}")
    return found


def lan_mib_s(passed: Mapping[str, float]) -> float | None:
    """Throughput of all streams together, in 2**20 bytes per second; None where there are none.

    `passed` holds differences of counters over the time measured; other names in it do not matter.
    """
    rates = [
        arrived / passed[f"{name.removesuffix(_ARRIVED)}.clock_s"]
        for name, arrived in passed.items()
        if name.startswith("lan.") and name.endswith(_ARRIVED)
    ]
    return sum(rates) / 2**20 if rates else None


def _chosen(tool: Tool) -> Literal["iperf3", "own"]:
    if tool == "iperf3" and shutil.which("iperf3") is None:
        raise UserError(
            "iperf3 is not installed", "install it, or let Linerate's own streams carry LAN traffic"
        )
    if tool == "auto":
        return "iperf3" if shutil.which("iperf3") else "own"
    return tool
