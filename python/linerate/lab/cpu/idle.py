"""Keeps idle CPUs out of their sleep states while a virtual SAN is measured, where the kernel permits it.

All hosts, switches and arrays of a lab share a few CPUs and wake each other thousands of times a second. A CPU that
went to sleep in between answers late; in a virtual machine its sleep ends with the hypervisor, which counts the way
back as stolen time: 30 to 40 % of a machine that had no neighbours. The request is the kernel's quality of service for
CPU wake-up latency, which holds for as long as its file is open (kernel documentation, power/pm_qos_interface): nothing
is left to take back.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

DEVICE = Path("/dev/cpu_dma_latency")
WAIT: Literal["block"] = "block"
"""How threads of arrays and loads wait in a lab: one that polls would take the CPU from the fabric."""
POLLING = "polling"
"""Idle CPUs look for work: none sleeps, and none has to be woken."""
SLEEPING = "sleeping"
"""As the kernel does by itself, since this process may not ask for more or the kernel has no such request."""


@contextmanager
def kept_awake(device: Path = DEVICE) -> Iterator[str]:
    """Asks for a wake-up latency of 0 us until the end. Gives what idle CPUs do now: `POLLING` or `SLEEPING`."""
    try:
        request = os.open(device, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        yield SLEEPING
        return
    try:
        os.write(request, struct.pack("=i", 0))
        # What counts is the least that anyone asks for; it is read back from the same file.
        (latency_us,) = struct.unpack("=i", os.pread(request, 4, 0))
        yield POLLING if latency_us == 0 else SLEEPING
    finally:
        os.close(request)
