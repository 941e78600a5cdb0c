"""The counters of a device's driver, as ethtool -S shows them; every user may ask.

Source: include/uapi/linux/ethtool.h and sockios.h. Ethtool's netlink messages do not carry them.
"""

from __future__ import annotations

import ctypes
import fcntl
import socket
import struct

_SIOCETHTOOL = 0x8946
_GSTRINGS, _GSTATS, _GSSET_INFO = 0x1B, 0x1D, 0x37
_STATISTICS_SET = 1  # ETH_SS_STATS
_NAME_BYTES = 32  # ETH_GSTRING_LEN
_SPARE_BYTES = 1 << 14  # an old kernel writes the counters that a driver has got since, too


def driver_counters(device: str) -> dict[str, int]:
    """Counters by the driver's names, in the namespace of the calling thread. Raises OSError, for a driver that
    has none too."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        found = _ask(asked, device, struct.pack("=IIQI", _GSSET_INFO, 0, 1 << _STATISTICS_SET, 0))
        mask, count = struct.unpack_from("=QI", found, 8)
        if not mask or not count:
            return {}
        names = _ask(
            asked, device, struct.pack("=III", _GSTRINGS, _STATISTICS_SET, count), count * _NAME_BYTES
        )
        values = _ask(asked, device, struct.pack("=II", _GSTATS, count), 8 * count)
    number = min(count, *struct.unpack_from("=I", names, 8), *struct.unpack_from("=I", values, 4))
    return {
        _name(names, 12 + at * _NAME_BYTES): struct.unpack_from("=Q", values, 8 + 8 * at)[0]
        for at in range(number)
    }


def _ask(asked: socket.socket, device: str, request: bytes, answer_bytes: int = 0) -> bytes:
    """The request as the kernel has filled it, with the answer behind it."""
    held = ctypes.create_string_buffer(request, len(request) + answer_bytes + _SPARE_BYTES)
    fcntl.ioctl(asked, _SIOCETHTOOL, struct.pack("16sP16x", device.encode(), ctypes.addressof(held)))
    return held.raw


def _name(names: bytes, at: int) -> str:
    return names[at : at + _NAME_BYTES].partition(b"\0")[0].decode("ascii", "replace").strip()
