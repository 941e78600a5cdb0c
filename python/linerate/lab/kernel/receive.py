"""How frames arrive at an interface: one by one, and in a thread that is charged to the receiver.

A veth pair receives in the sender's time, so that without more an array would pay for what its hosts receive. With NAPI
in threads (which the kernel offers once GRO is on) each interface has a thread of its own, whose CPU time tells what
receiving cost. GRO may merge nothing here: packets larger than one frame are forbidden.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyroute2.ethtool.ioctl import IoctlEthtool

from linerate.lab import system
from linerate.lab.supervisor.nodes import NodeNamespace

TSO = "tcp-segmentation-offload"
GRO = "generic-receive-offload"

_UNMERGED_BYTES = 1
"""Two frames are always more than this."""


def send_frames(node: NodeNamespace, interfaces: Sequence[str]) -> None:
    """Forbids super-packets: what interfaces send are frames."""
    with node.visit():
        for interface in interfaces:
            _set(interface, TSO, on=False)


def receive_in_threads(node: NodeNamespace, interfaces: Sequence[str]) -> bool:
    """Gives each interface a thread that receives, frame by frame; False where the kernel refuses threads."""
    for interface in interfaces:
        node.route.link("set", index=node.index(interface), gro_max_size=_UNMERGED_BYTES)
    with node.visit():
        for interface in interfaces:
            _set(interface, GRO, on=True)
        with _own_sysfs() as there:
            threads = [_thread(interface, on=True) for interface in interfaces] if there else [False]
    return all(threads)


def receive_in_stack(node: NodeNamespace, interface: str) -> None:
    """No thread receives for the interface any more."""
    with node.visit(), _own_sysfs() as there:
        if there:
            _thread(interface, on=False)


def _set(interface: str, feature: str, *, on: bool) -> None:
    adapter = IoctlEthtool(interface)
    adapter.set_offload_flag(feature, int(on))
    adapter.close()


def _thread(interface: str, *, on: bool) -> bool:
    try:
        Path(f"/sys/class/net/{interface}/threaded").write_text(str(int(on)))
    except OSError:
        return False
    return True


@contextmanager
def _own_sysfs() -> Iterator[bool]:
    """/sys shows the interfaces of the namespace that the thread is in, meanwhile; False where that is forbidden."""
    try:
        system.mount("sysfs", "/sys", "sysfs")
    except OSError:
        yield False
        return
    try:
        yield True
    finally:
        system.unmount("/sys")
