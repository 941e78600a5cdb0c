"""What this machine gives a lab: tried out, not guessed from versions, in namespaces that are gone right after."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyroute2.netlink.exceptions import NetlinkError

from linerate.lab import system
from linerate.lab.enter import enter
from linerate.lab.kernel import receive, shape
from linerate.lab.supervisor.nodes import NodeNamespace

_TAP_DEVICE = "/dev/net/tun"


@dataclass(frozen=True, slots=True)
class Probed:
    """One thing that a lab can use."""

    name: str
    use: str
    """What it is for, or what happens without it."""
    needed: bool = False
    """There is no lab without it; what only the user fabric needs is not."""
    why_not: str = ""
    """What the kernel said; empty if it is there."""

    @property
    def there(self) -> bool:
        """It can be used."""
        return not self.why_not

    @property
    def remark(self) -> str:
        """For people."""
        return self.use if self.there else f"{self.use} [{self.why_not}]"

    def as_object(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"there": self.there}


def probe() -> tuple[Probed, ...]:
    """Tries everything out. Raises HostError, as `enter` does, where not even a user namespace can be had."""
    own = enter()
    found: list[Probed] = [
        Probed("rights", "a user namespace, since this is not root" if own else "those of root", needed=True)
    ]
    failed: list[Exception] = []

    def work() -> None:
        try:
            found.extend(_probe_here())
        except Exception as error:
            failed.append(error)

    # Namespaces are entered by one thread and end with it.
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return tuple(found)


def _probe_here() -> list[Probed]:
    system.own_mounts()
    switch = NodeNamespace("switch", "switch", None)
    host = NodeNamespace("host", "host", switch.fd)
    veth = {"ifname": "p0", "kind": "veth", "peer": {"ifname": "p0", "net_ns_fd": host.fd}}
    with switch, host:
        tried = [
            _tried("links", "veth pairs", lambda: switch.route.link("add", **veth), needed=True),
            _tried(
                "bridges",
                "switches",
                lambda: switch.route.link("add", ifname="br0", kind="bridge"),
                needed=True,
            ),
            _tried(
                "HTB and bfifo",
                "line rates and buffers of the kernel fabric",
                lambda: shape.shape(switch.route, switch.index("p0"), 1e9, 65_536),
                needed=True,
            ),
            _tried(
                "receive threads",
                "CPU of receiving is charged to the receiver; else it is charged to the sender",
                lambda: _receive(switch, host),
            ),
            _tried("TAP", "the user fabric", lambda: os.close(os.open(_TAP_DEVICE, os.O_RDWR))),
            *(_queue(switch, kind, use) for kind, use in _QUEUES),
        ]
    return [*tried, *_congestion_controls()]


_QUEUES = (
    ("netem", "delay and loss in the kernel; the user fabric has its own"),
    ("ets", "ETS in the kernel; the user fabric has its own"),
)


def _queue(node: NodeNamespace, kind: str, use: str) -> Probed:
    return _tried(kind, use, lambda: node.route.tc("add", kind, 1, handle=0x1_0000))


def _receive(switch: NodeNamespace, host: NodeNamespace) -> None:
    for node in (switch, host):
        node.route.link("set", index=node.index("p0"), state="up")
    if not receive.receive_in_threads(host, ["p0"]):
        raise OSError("the kernel refused them")


def _congestion_controls() -> list[Probed]:
    known = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    return [
        Probed(
            f"congestion control {name}",
            "the default of a lab" if name == "reno" else "a setting to compare",
            needed=name == "reno",
            why_not="" if name in known else "the kernel does not have it",
        )
        for name in ("reno", "cubic", "bbr", "dctcp")
    ]


def _tried(name: str, use: str, attempt: Callable[[], object], *, needed: bool = False) -> Probed:
    try:
        attempt()
    except (OSError, NetlinkError) as error:
        reason = os.strerror(error.code) if isinstance(error, NetlinkError) else error.strerror or str(error)
        return Probed(name, use, needed, reason)
    return Probed(name, use, needed)
