"""What this host's kernel says of its block devices and files: who uses them. Nothing is opened for writing.

`tables` parses the kernel's tables (mountinfo, swaps, locks), `sysfs` reads the tree of block devices, `machine`
collects both, `use` says in words who uses a device or a file.
"""

from __future__ import annotations

from linerate.volumes.kernel.machine import Machine, seen_machine
from linerate.volumes.kernel.sysfs import Sysfs
from linerate.volumes.kernel.use import uses_of_device, uses_of_file

__all__ = ["Machine", "Sysfs", "seen_machine", "uses_of_device", "uses_of_file"]
