"""File systems that are soon full: each in a mount namespace of its own, and gone with its process."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.need import missing, tool

MAKE = {"tmpfs": "true", "ext4": "mkfs.ext4 -q -m 0 {image}", "xfs": "mkfs.xfs -q {image}"}
MOUNT = {"tmpfs": "mount -t tmpfs -o size={size} none {at}"} | dict.fromkeys(
    ("ext4", "xfs"), "mount -o loop {image} {at}"
)


@dataclass(frozen=True)
class Small:
    """A small file system."""

    holder: int
    """A process that sees it."""
    inside: Path
    """Where it is mounted there."""
    enter: tuple[str, ...]
    """Puts a command where it sees the file system."""

    @property
    def outside(self) -> Path:
        """The same folder for this process."""
        return Path(f"/proc/{self.holder}/root{self.inside}")

    def fill(self) -> None:
        """Leaves no space."""
        with (self.outside / "filler").open("ab", buffering=0) as filler:
            for size in (1 << 20, 4096, 512):
                with contextlib.suppress(OSError):
                    while True:
                        filler.write(b"\1" * size)
            with contextlib.suppress(OSError):
                os.fsync(filler.fileno())

    def free(self) -> None:
        """Gives the space back."""
        (self.outside / "filler").unlink()


@contextlib.contextmanager
def small_file_system(folder: Path, kind: str, size_mib: int) -> Iterator[Small]:
    """A file system of that kind and size. Skips the test where it cannot be had."""
    unshare, nsenter = tool("unshare"), tool("nsenter")
    if kind != "tmpfs":
        tool(f"mkfs.{kind}")
        if os.geteuid() != 0:
            pytest.skip(f"a loop device with {kind} needs root")
    image, at = folder / f"{kind}.image", folder / f"small-{kind}"
    at.mkdir()
    words = {"image": image, "at": at, "size": f"{size_mib}m"}
    script = (
        f"truncate -s {size_mib}M {image} && {MAKE[kind]} && {MOUNT[kind]} && echo ready && exec sleep 1000"
    )
    user = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    command = [unshare, "--mount", *user, "--", "sh", "-c", script.format(**words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stderr is not None
        try:
            if holder.stdout.readline() != "ready\n":
                missing(f"no {kind} can be mounted here: {holder.stderr.read().strip()}")
            ways = ("--mount", *(("--user", "--preserve-credentials") if user else ()))
            yield Small(holder.pid, at, (nsenter, *ways, "--target", str(holder.pid), "--"))
        finally:
            holder.kill()
