"""The second disk of the virtual machine: an installation of Linerate for root, kept until Linerate changes.

`test_hosts` brings Linerate there as a user does. The bytes are those, but an emulated CPU unpacks them in a minute.
"""

from __future__ import annotations

import gzip
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from linerate.cluster.installation.pack import own_digest, pack

from tests.vm import image

FOLDER = "/opt/linerate"
"""Where it is mounted, by `debian.sh`."""
_NAME = "linerate-{}.img"
_ROOM = 1.3
"""Of the size of all files: what a file system needs."""


def kept() -> Path | None:
    """The disk with this Linerate, if it was made before."""
    disk = _place()
    return disk if disk.exists() else None


def reason() -> str:
    """Why this Linerate cannot be brought to the virtual machine; empty if it can."""
    if sys.version_info[:2] == image.PYTHON:
        return ""
    theirs, ours = (".".join(map(str, version)) for version in (image.PYTHON, sys.version_info[:2]))
    return f"the virtual machine has Python {theirs}, and this is Python {ours}"


def made() -> None:
    """Makes the disk with this Linerate if need be: two at a time wait for each other. Others are removed."""
    if reason():
        return
    with image.locked():
        disk = _place()
        if not disk.exists():
            for other in image.KEPT.glob(_NAME.format("*")):
                other.unlink()
            _make(disk)


def _place() -> Path:
    return image.KEPT / _NAME.format(own_digest()[:16])


def _make(disk: Path) -> None:
    """An environment of the guest's Python, ext4, on the whole disk."""
    root = Path(tempfile.mkdtemp(prefix=image.PARTIAL, dir=image.KEPT))
    try:
        packages = root / "lib" / "python{}.{}".format(*image.PYTHON) / "site-packages"
        packages.mkdir(parents=True)
        with pack() as bundle, gzip.GzipFile(fileobj=bundle.file) as plain:
            bundle.file.seek(0)
            size_bytes = int(bundle.unpacked_bytes * _ROOM)
            with tarfile.open(fileobj=plain, mode="r|") as archive:
                archive.extractall(packages, filter="data")
        (root / "bin").mkdir()
        (root / "bin" / "python").symlink_to("/usr/bin/python3")
        (root / "pyvenv.cfg").write_text("home = /usr/bin\ninclude-system-site-packages = false\n")
        root.chmod(0o755)
        partial = root.with_suffix(".img")
        with partial.open("wb") as file:
            file.truncate(size_bytes)
        subprocess.run(["mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-d", root, partial], check=True)
        partial.rename(disk)
    finally:
        shutil.rmtree(root)
