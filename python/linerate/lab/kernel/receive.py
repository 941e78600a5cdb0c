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
from linerate.lab.kernel.shape import ETHERNET_HEADER_BYTES
from linerate.lab.keeper.nodes import Node

TSO = "tcp-segmentation-offload"
GRO = "generic-receive-offload"


def real_frames(node: Node, interfaces: Sequence[str]) -> bool:
    """Forbids super-packets and gives each interface a thread that receives; False where the kernel refuses threads."""
    with node.visit():
        for interface in interfaces:
            adapter = IoctlEthtool(interface)
            adapter.set_offload_flag(TSO, 0)
            adapter.set_offload_flag(GRO, 1)
            adapter.close()
        with _own_sysfs() as there:
            threads = [_thread(interface) for interface in interfaces] if there else [False]
        return all(threads)


def limit_merging(node: Node, index: int, mtu: int) -> None:
    """Nothing that arrives here may be merged beyond one frame. Raises NetlinkError."""
    node.route.link("set", index=index, gro_max_size=mtu + ETHERNET_HEADER_BYTES)


def _thread(interface: str) -> bool:
    try:
        Path(f"/sys/class/net/{interface}/threaded").write_text("1")
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
