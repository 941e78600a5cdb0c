"""Waiting for a stream to come about."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from linerate.errors import HostError
from linerate.lab.lan import Flowing

START_TIMEOUT_S = 10.0
_LOOK_S = 0.02


def until_it_flows(name: str, count: Callable[[], Flowing]) -> None:
    """Returns when bytes have arrived; raises HostError when none do in time."""
    until(
        lambda: count().bytes_received > 0,
        f"nothing of the LAN stream {name} has arrived in {START_TIMEOUT_S:g} s",
        "see whether the links on its way are up: linerate lab show",
    )


def until(is_so: Callable[[], bool], complaint: str, hint: str) -> None:
    """Returns when it is so; raises HostError when it is not in time."""
    deadline = time.monotonic() + START_TIMEOUT_S
    never = threading.Event()
    while not is_so():
        if time.monotonic() > deadline:
            raise HostError(complaint, hint)
        never.wait(_LOOK_S)
