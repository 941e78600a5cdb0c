"""The system of the virtual machine: made from Debian's packages, kept in `target/vm` until its recipe changes."""

from __future__ import annotations

import fcntl
import hashlib
import lzma
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
RECIPE = Path(__file__).with_name("debian.sh")
KEPT = ROOT / "target" / "vm"
SUITE = "bookworm"
PYTHON = (3, 11)
"""The Python of this Debian."""
PARTIAL = "partial-"
"""Of the names of what is not complete."""


@dataclass(frozen=True)
class Image:
    """Files of one system. They are never written to."""

    folder: Path

    @property
    def disk(self) -> Path:
        """The whole disk, ext4."""
        return self.folder / "disk.img"

    @property
    def kernel(self) -> Path:
        """For QEMU's `-kernel`."""
        return self.folder / "kernel"

    @property
    def initrd(self) -> Path:
        """For QEMU's `-initrd`."""
        return self.folder / "initrd"


def kept() -> Image | None:
    """The image of this recipe, if it was made before."""
    image = Image(KEPT / hashlib.sha256(RECIPE.read_bytes()).hexdigest()[:16])
    return image if image.disk.exists() else None


@contextmanager
def locked() -> Iterator[None]:
    """The folder of images, for one process at a time."""
    KEPT.mkdir(parents=True, exist_ok=True)
    with (KEPT / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def made() -> Image:
    """The image of this recipe, made if need be: two at a time wait for each other. Others are removed."""
    with locked():
        if (image := kept()) is not None:
            return image
        for other in KEPT.iterdir():
            if other.is_dir():
                shutil.rmtree(other)
        return _make(Path(tempfile.mkdtemp(prefix=PARTIAL, dir=KEPT)))


def _make(folder: Path) -> Image:
    """In namespaces of its own: what it has mounted and started ends with it, however it ends."""
    contained = ("unshare", "--mount", "--pid", "--fork", "--kill-child")
    step = (
        str(ROOT / "packaging" / "step"),
        "making a Debian system for the virtual machine (1 to 8 minutes)",
    )
    try:
        subprocess.run([*step, *contained, "sh", str(RECIPE), str(folder), *mirrors()], check=True)
        _unpack_kernel(folder / "kernel")
        image = Image(KEPT / hashlib.sha256(RECIPE.read_bytes()).hexdigest()[:16])
        folder.rename(image.folder)
        return image
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _unpack_kernel(path: Path) -> None:
    """Replaces a bzImage by the ELF file in it, which QEMU starts too: an emulated CPU unpacks it in many seconds.

    Source: Documentation/arch/x86/boot.rst of Linux (setup_sects, payload_offset, payload_length).
    """
    image = path.read_bytes()
    protected = (image[0x1F1] + 1) * 512
    offset, length = struct.unpack_from("<II", image, 0x248)
    payload = image[protected + offset : protected + offset + length]
    if payload.startswith(b"\xfd7zXZ\x00"):
        path.write_bytes(lzma.LZMADecompressor().decompress(payload))  # the size of it follows the archive


def mirrors() -> list[str]:
    """Lines for apt: where this machine has Debian's packages from. None: mmdebstrap takes Debian's own addresses."""
    wanted = ("indextargets", "--format", "$(ORIGIN) $(CODENAME) $(REPO_URI)", "Created-By: Packages")
    listed = subprocess.run(["apt-get", *wanted], capture_output=True, text=True, check=False).stdout
    found = {}
    for line in listed.splitlines():
        origin, _, rest = line.partition(" ")
        suite, _, address = rest.partition(" ")
        if origin == "Debian" and suite in (SUITE, f"{SUITE}-updates", f"{SUITE}-security"):
            found[suite] = f"deb {address} {suite} main"
    return list(found.values()) if SUITE in found else []
