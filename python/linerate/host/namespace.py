"""Network namespaces by what they are: a number that is never used again, and where one can still be found.

The inode of a namespace is used again when it is gone. Its cookie is not, while the kernel runs (Linux 5.14).
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

_SO_NETNS_COOKIE = 71  # include/uapi/asm-generic/socket.h
_NSFS = "nsfs"


def namespace_cookie() -> int:
    """The cookie of the calling thread's network namespace; 0 if the kernel has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            raw = probe.getsockopt(socket.SOL_SOCKET, _SO_NETNS_COOKIE, 8)
        except OSError:
            return 0
    return int.from_bytes(raw, sys.byteorder)


def find_namespace(identity: tuple[int, int]) -> str | None:
    """A path that leads to a network namespace, given by device and inode, while it lives; None: it is gone.

    Looked at are the threads and descriptors of every process that this user may see, and what is mounted here.
    For this user a namespace of another user counts as gone.
    """
    wanted = f"net:[{identity[1]}]"
    for place in (*_mounted(), *_held()):
        with contextlib.suppress(OSError):
            if place.is_symlink() and os.readlink(place) != wanted:
                continue
            found = place.stat()
            if (found.st_dev, found.st_ino) == identity:
                return str(place)
    return None


def _held() -> Iterator[Path]:
    """Links of all processes that may lead to a namespace."""
    for process in Path("/proc").iterdir():
        if not process.name.isdecimal():
            continue
        yield process / "ns" / "net"
        for folder, end in (("task", "ns/net"), ("fd", "")):
            with contextlib.suppress(OSError):
                yield from (one / end for one in (process / folder).iterdir())


def _mounted() -> Iterator[Path]:
    """Namespaces that have a name (`ip netns`)."""
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines():
        before, _, after = line.partition(" - ")
        if after.split(" ", 1)[0] == _NSFS:
            yield Path(before.split(" ")[4].encode("ascii", "replace").decode("unicode_escape"))
