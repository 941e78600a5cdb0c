"""The tree of block devices in /sys: partitions, holders, names. `root` is /sys but in tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from linerate.volumes.kernel.tables import Number

_DM_KINDS = {
    "LVM": "LVM volume",
    "mpath": "multipath device",
    "CRYPT": "encrypted device",
    "part": "partition",
}
"""By the start of a device-mapper UUID."""


@dataclass(frozen=True, slots=True)
class Sysfs:
    """Reads the tree. What it lacks, or may not be read, is as if it were not there."""

    root: Path = Path("/sys")

    def name(self, device: Number) -> str | None:
        """`sdb1`, `dm-0`; None for a device that it does not know."""
        try:
            return (self.root / "dev/block" / f"{device[0]}:{device[1]}").resolve(strict=True).name
        except OSError:
            return None

    def number(self, name: str) -> Number | None:
        """The numbers of a device of that name."""
        folder = self._folder(name)
        text = _line(folder / "dev") if folder is not None else ""
        major, _, minor = text.partition(":")
        return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else None

    def partitions(self, name: str) -> list[str]:
        """Of a disk."""
        folder = self._folder(name)
        return sorted(entry.name for entry in _entries(folder) if (entry / "partition").exists())

    def disk_of(self, name: str) -> str | None:
        """The disk that a partition is on."""
        folder = self._folder(name)
        return folder.parent.name if folder is not None and (folder / "partition").exists() else None

    def holders(self, name: str) -> list[str]:
        """Devices that are built on it: dm-0, md127."""
        folder = self._folder(name)
        return sorted(entry.name for entry in _entries(folder / "holders" if folder else None))

    def title(self, name: str) -> str:
        """What a device is, in words: LVM volume vg0-home, md RAID md127, /dev/sdb."""
        folder = self._folder(name)
        if folder is None:
            return f"/dev/{name}"
        if mapped := _line(folder / "dm/name"):
            kind = _line(folder / "dm/uuid").partition("-")[0].rstrip("0123456789")
            return f"{_DM_KINDS.get(kind, 'device-mapper device')} {mapped}"
        if _line(folder / "md/level") or _line(folder / "md/array_state"):
            return f"md RAID {name}"
        return f"bcache device {name}" if name.startswith("bcache") else f"/dev/{name}"

    def in_btrfs(self, name: str) -> bool:
        """It belongs to a Btrfs file system that is mounted; mountinfo names one device of several at most."""
        entries = _entries(self.root / "fs/btrfs")
        return any((entry / "devices" / name).exists() for entry in entries)

    def loops(self) -> list[str]:
        """Loop devices that are attached."""
        return sorted(
            entry.name
            for entry in _entries(self.root / "block")
            if entry.name.startswith("loop") and (entry / "loop").is_dir()
        )

    def backing_path(self, loop: str) -> str:
        """Of the file behind a loop device; empty if it has none."""
        return _line(self.root / "block" / loop / "loop/backing_file")

    def disks_of_lun(self, vendor: str, serial: str) -> Iterator[str]:
        """Disks of this host with this vendor and unit serial number: the same LUN, as the kernel reaches it."""
        for entry in _entries(self.root / "block"):
            page = _bytes(entry / "device/vpd_pg80")[4:]
            named = _line(entry / "device/vendor") == vendor.strip()
            if serial.strip() and named and page.decode("latin-1").strip(" \0") == serial.strip():
                yield entry.name

    def _folder(self, name: str) -> Path | None:
        """Of a disk or a partition."""
        for place in (self.root / "class/block", self.root / "block"):
            try:
                return (place / name).resolve(strict=True)
            except OSError:
                continue
        return None


def _entries(folder: Path | None) -> list[Path]:
    try:
        return list(folder.iterdir()) if folder is not None else []
    except OSError:
        return []


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _line(path: Path) -> str:
    return _bytes(path).decode("utf-8", "replace").strip()
