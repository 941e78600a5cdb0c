"""Whether two volumes of a run are one: by another name, a symbolic or a hard link, or the same URL twice."""

from __future__ import annotations

import os
import stat

from linerate.errors import UserError
from linerate.workload import RunSpec, VolumeSpec
from linerate.workload.url import is_remote, null_bytes, path_of

Key = tuple[object, ...]


class RefusedError(UserError):
    """A plan was refused before its first run. Nothing was written, and there is no run directory."""


def refuse_shared(spec: RunSpec) -> None:
    """Raises RefusedError for the first two volumes that are the same one and use the same part of it.

    Two volumes on different parts of one device (offset and size) are as good as two devices, and some share one on
    purpose.
    """
    seen: dict[Key, list[VolumeSpec]] = {}
    for volume in spec.volumes:
        if (key := _key(volume)) is None:
            continue
        for other in seen.get(key, ()):
            if _overlap(volume, other) and not (volume.shares_device and other.shares_device):
                places = " and ".join(dict.fromkeys((shown(other.url), shown(volume.url))))
                raise RefusedError(
                    f"volumes {other.name} and {volume.name} are the same: {places}",
                    "name another for each ({n} in a target is the volume's number), or give each its own part with "
                    "offset and size",
                )
        seen.setdefault(key, []).append(volume)


def shown(url: str) -> str:
    """As a user writes it."""
    return path_of(url) or url


def same_place(one: str, other: str) -> bool:
    """Two paths lead to one file or device."""
    return _place(one) == _place(other)


def _key(volume: VolumeSpec) -> Key | None:
    """None: a volume that is nothing, of which there may be any number."""
    if null_bytes(volume.url) is not None:
        return None
    path = path_of(volume.url)
    return ("url", volume.netns, volume.url.lower()) if path is None else _place(path)


def _place(path: str) -> Key:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return ("path", os.path.realpath(path))
    if stat.S_ISBLK(found.st_mode):
        return ("device", found.st_rdev)
    return ("file", found.st_dev, found.st_ino)


def _overlap(one: VolumeSpec, other: VolumeSpec) -> bool:
    """Without a size a volume reaches to its end."""
    first, second = sorted((one, other), key=lambda volume: volume.first_byte)
    return first.size_bytes is None or first.first_byte + first.size_bytes > second.first_byte


def written(spec: RunSpec) -> set[str]:
    """Names of the volumes that a stream writes to, and of files that are there and would be lengthened."""
    names = {name for stream in spec.streams if stream.read_percent < 100 for name in stream.volumes}
    return names | {volume.name for volume in spec.volumes if volume.create and _is_short(volume)}


def _is_short(volume: VolumeSpec) -> bool:
    path = path_of(volume.url)
    if is_remote(volume.url):  # its size is not known here
        return True
    try:
        found = os.stat(path) if path is not None else None
    except (OSError, ValueError):
        return False
    wanted = volume.first_byte + (volume.size_bytes or 0)
    return found is not None and stat.S_ISREG(found.st_mode) and found.st_size < wanted
