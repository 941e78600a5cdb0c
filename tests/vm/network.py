"""The networks between this machine and the virtual one: TAP interfaces in this process's own network namespace.

Net 0 is the control network, nets 1 and 2 are the two storage networks. Tests look at the guest by way of net 3, which
stays when another is cut. This machine is .1 in each, the guest is .2.
"""

from __future__ import annotations

import subprocess

CONTROL, SAN_A, SAN_B, ADMIN = NETS = (0, 1, 2, 3)
QUEUES = {SAN_B: 2}
"""Pairs of queues of an adapter; others have one."""


def here(net: int) -> str:
    """This machine's address."""
    return f"10.77.{net}.1"


def there(net: int) -> str:
    """The guest's address; `debian.sh` gives it to the adapter with this `mac`."""
    return f"10.77.{net}.2"


def mac(net: int) -> str:
    """Of the guest's adapter."""
    return f"52:54:00:77:00:0{net}"


def tap(net: int) -> str:
    """This machine's interface."""
    return f"tap{net}"


def connect() -> None:
    """Makes the interfaces. They end with the namespace."""
    _ip("link", "set", "lo", "up")
    for net in NETS:
        several = ("multi_queue",) if QUEUES.get(net, 1) > 1 else ()
        _ip("tuntap", "add", tap(net), "mode", "tap", *several)
        _ip("address", "add", f"{here(net)}/24", "dev", tap(net))
        _ip("link", "set", tap(net), "up")


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)
