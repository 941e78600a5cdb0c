"""What is on volumes and who uses them, checked before anything is written.

Open `clearing` first: the step that every plan goes through. `look` looks at a volume from this host, `contents` tells
from bytes what is there, `kernel` who uses a device or a file, `identity` whether two volumes are one, `consent` what
may be overwritten.
"""

from __future__ import annotations

from linerate.volumes.clearing import Clearance, Cleared, HostsOf, LookAt, clear, this_process, virtual
from linerate.volumes.consent import Ask, Consent, columns, listing, on_host, size_text
from linerate.volumes.identity import RefusedError, refuse_shared, written
from linerate.volumes.lock import VolumeLock
from linerate.volumes.look import Look, VolumeState, look_here

__all__ = [
    "Ask",
    "Clearance",
    "Cleared",
    "Consent",
    "HostsOf",
    "Look",
    "LookAt",
    "RefusedError",
    "VolumeLock",
    "VolumeState",
    "clear",
    "columns",
    "listing",
    "look_here",
    "on_host",
    "refuse_shared",
    "size_text",
    "this_process",
    "virtual",
    "written",
]
