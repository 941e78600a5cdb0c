"""Looks at volumes before anything is written to them: what they are, what is on them, who uses them.

`look_here` looks from this process, as its load would reach them. A lab's volumes, those in memory and files that are
to be made hold nothing that could be lost.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection, Iterator, Sequence
from enum import StrEnum
from functools import cached_property

from linerate import _core
from linerate.node import inside_lab
from linerate.volumes.anchor import others_in_words, sorted_out, strangers
from linerate.volumes.contents import END_BYTES, Contents, VolumeEnds, contents_of
from linerate.volumes.identity import RefusedError, refuse_shared, shown
from linerate.volumes.kernel import Machine, seen_machine, uses_of_device, uses_of_file
from linerate.workload import RunSpec, StreamSpec, VolumeSpec
from linerate.workload.files import FilesLoadSpec
from linerate.workload.spec import FrozenSpec
from linerate.workload.url import NO_DEVICE, in_dev, is_remote, null_bytes, path_of

_LUNS_AT_ONCE = 16
_VENDOR, _IN_MEMORY = "LINERATE", "MEMORY VOLUME"
"""What a Linerate array's memory volumes answer to INQUIRY."""


class VolumeState(StrEnum):
    """What a volume was found to be."""

    MEMORY = "memory"
    """Gone when its array stops, or nothing at all."""
    NEW = "new"
    """A file that is to be made."""
    VIRTUAL = "virtual"
    """Of a virtual SAN."""
    STRUCTURE = "structure"
    """A folder that holds nothing but files and folders of a vdbench structure."""
    BLANK = "blank"
    """Zeros at both ends."""
    DATA = "data"
    """Bytes of no known kind."""
    SIGNED = "signed"
    """A partition table, a file system or other metadata."""
    IN_USE = "in_use"
    """Mounted, part of another device, swapped to, locked."""
    UNREAD = "unread"
    """It could not be read."""


class Look(FrozenSpec):
    """What was found about a volume."""

    volume: str
    """The name that streams and results use."""
    url: str
    size_bytes: int | None = None
    """Of the whole device; null: not known."""
    state: VolumeState
    found: tuple[str, ...] = ()
    """In words; what is in use first."""
    host: str = ""
    """Which host of a cluster found it; empty: this one."""

    @property
    def where(self) -> str:
        """As a user writes it."""
        return shown(self.url)

    @property
    def words(self) -> str:
        """What was found, in words."""
        return "; ".join(self.found) or _WORDS[self.state]


_WORDS = {
    VolumeState.MEMORY: "in memory",
    VolumeState.NEW: "new file",
    VolumeState.VIRTUAL: "volume of a virtual SAN",
    VolumeState.STRUCTURE: "files and folders of a structure",
    VolumeState.BLANK: "blank",
    VolumeState.DATA: "data of unknown kind",
    VolumeState.SIGNED: "metadata",
    VolumeState.IN_USE: "in use",
    VolumeState.UNREAD: "not read",
}


def look_here(spec: RunSpec, names: Collection[str]) -> tuple[Look, ...]:
    """Looks at the named volumes of a run. Nothing is written; LUNs are logged in to as the run would.

    Raises RefusedError for volumes that are one and the same and for a file that is not there, and the LinerateError
    that the run would raise for a LUN that cannot be opened.
    """
    if isinstance(spec, FilesLoadSpec):
        return tuple(_anchor(volume, spec) for volume in spec.volumes if volume.name in names)
    refuse_shared(spec)
    glance = _Glance()
    chosen = [volume for volume in spec.volumes if volume.name in names]
    luns = [volume for volume in chosen if _is_lun(volume)]
    of_luns = {look.volume: look for look in _luns(spec, luns, glance)}
    of_luns |= {
        volume.name: Look(volume=volume.name, url=volume.url, state=VolumeState.NEW)
        for volume in luns
        if volume.name not in of_luns
    }
    return tuple(of_luns.get(volume.name) or _local(volume, glance) for volume in chosen)


def _anchor(volume: VolumeSpec, spec: FilesLoadSpec) -> Look:
    """The folder of a structure of files."""
    state = VolumeState.NEW
    found: tuple[str, ...] = ()
    try:
        if (path := path_of(volume.url)) is not None:
            known, others = strangers(path)
        else:
            known, others = sorted_out(_core.anchor_names(spec.seam_json(), volume.name) or ())
    except OSError as error:
        state, found = VolumeState.UNREAD, (f"could not be read: {error.strerror or error}",)
    else:
        if others:
            state, found = VolumeState.DATA, (others_in_words(others),)
        elif known:
            state = VolumeState.STRUCTURE
    return Look(volume=volume.name, url=volume.url, state=state, found=found)


class _Glance:
    """One look at the machine, taken when it is needed first."""

    @cached_property
    def machine(self) -> Machine:
        return seen_machine()


def _is_lun(volume: VolumeSpec) -> bool:
    return is_remote(volume.url) and not (volume.netns is None and inside_lab())


def _luns(spec: RunSpec, luns: Sequence[VolumeSpec], glance: _Glance) -> Iterator[Look]:
    """A few at a time, for the sake of memory. Files of shares that are to be made are left out."""
    for start in range(0, len(luns), _LUNS_AT_ONCE):
        some = tuple(luns[start : start + _LUNS_AT_ONCE])
        stream = StreamSpec(name="look", volumes=tuple(volume.name for volume in some))
        asked = RunSpec(name=spec.name, driver=spec.driver, volumes=some, streams=(stream,))
        urls = {volume.name: volume.url for volume in some}
        for ends in _core.volume_ends(asked.seam_json()):
            vendor, product, serial = (
                str((ends["session"] or {}).get(key, "")).strip() for key in ("vendor", "product", "serial")
            )
            name, size_bytes = ends["volume"], ends["capacity_bytes"]
            if (vendor, product) == (_VENDOR, _IN_MEMORY):
                yield Look(volume=name, url=urls[name], size_bytes=size_bytes, state=VolumeState.MEMORY)
                continue
            uses = [
                f"{disk}: {use}"
                for disk in glance.machine.sysfs.disks_of_lun(vendor, serial)
                if (number := glance.machine.sysfs.number(disk)) is not None
                for use in uses_of_device(number, glance.machine)
            ]
            contents = contents_of(VolumeEnds(ends["first"], ends["last"], size_bytes))
            yield _judged(name, urls[name], size_bytes, uses, contents, ends["failure"])


def _local(volume: VolumeSpec, glance: _Glance) -> Look:
    path = path_of(volume.url)
    if path is None:
        state = VolumeState.VIRTUAL if is_remote(volume.url) else VolumeState.MEMORY
        return Look(volume=volume.name, url=volume.url, size_bytes=null_bytes(volume.url), state=state)
    try:
        found = os.stat(path)
    except FileNotFoundError as error:
        if volume.create:
            return Look(volume=volume.name, url=volume.url, size_bytes=None, state=VolumeState.NEW)
        if in_dev(path):
            raise RefusedError(f"volume {volume.name}: {path}: no such device", NO_DEVICE) from error
        raise RefusedError(
            f"volume {volume.name}: {path} does not exist",
            "correct the path, or let --create with --size make the file; a LUN is iscsi://host/target-name/lun, "
            "a file of a share smb://host/share/file",
        ) from error
    except OSError as error:
        may_not = isinstance(error, PermissionError)
        hint = "run as a user who may open it" if may_not else "correct the path"
        raise RefusedError(f"volume {volume.name}: {path}: {error.strerror or error}", hint) from error
    is_block = stat.S_ISBLK(found.st_mode)
    if not (is_block or stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        raise RefusedError(
            f"volume {volume.name}: {path} is neither a file nor a block device", "give one of these"
        )
    uses = uses_of_file(found.st_dev, found.st_ino, glance.machine)
    if is_block:
        number = os.major(found.st_rdev), os.minor(found.st_rdev)
        uses = [*uses_of_device(number, glance.machine), *uses]
    try:
        ends = read_ends(path)
    except OSError as error:
        return _judged(
            volume.name, volume.url, None, uses, Contents((), blank=False), error.strerror or str(error)
        )
    if is_block and not uses and is_claimed(path):
        uses = ["opened exclusively by a program or the kernel"]
    return _judged(volume.name, volume.url, ends.size_bytes, uses, contents_of(ends), None)


def _judged(
    name: str,
    url: str,
    size_bytes: int | None,
    uses: Sequence[str],
    contents: Contents,
    failure: str | None,
) -> Look:
    found = [*uses, *contents.names]
    state = VolumeState.BLANK if contents.blank else VolumeState.DATA
    if contents.names:
        state = VolumeState.SIGNED
    if failure is not None:
        found.append(f"could not be read: {failure}")
        state = VolumeState.UNREAD
    if uses:
        state = VolumeState.IN_USE
    return Look(volume=name, url=url, size_bytes=size_bytes, state=state, found=tuple(found))


def read_ends(path: str) -> VolumeEnds:
    """The ends of a file or block device. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        size_bytes = os.lseek(descriptor, 0, os.SEEK_END)
        start = max(size_bytes - END_BYTES, 0)
        return VolumeEnds(_read(descriptor, 0), _read(descriptor, start), size_bytes)
    finally:
        os.close(descriptor)


def _read(descriptor: int, offset: int) -> bytes:
    pieces = []
    left = END_BYTES
    while left and (piece := os.pread(descriptor, left, offset)):
        pieces.append(piece)
        offset, left = offset + len(piece), left - len(piece)
    return b"".join(pieces)


def claimed(path: str) -> int:
    """A descriptor that keeps others from mounting a block device while it is open. Raises OSError: EBUSY if it
    is open exclusively already."""
    return os.open(path, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC | os.O_NONBLOCK)


def is_claimed(path: str) -> bool:
    """Whether a program or the kernel has opened a block device for itself."""
    try:
        os.close(claimed(path))
    except OSError as error:
        return error.errno == errno.EBUSY
    return False
