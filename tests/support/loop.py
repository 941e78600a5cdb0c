"""A block device of the test's own: a loop device over a file, taken away again."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import need


@contextmanager
def block_device(backing: Path, size_bytes: int) -> Iterator[Path]:
    """A block device of `size_bytes` whose bytes lie in `backing`. Needs root and the kernel's loop driver."""
    if os.geteuid() != 0:
        pytest.skip("only root may attach a loop device")
    if not Path("/dev/loop-control").exists():
        pytest.skip("this kernel has no loop devices")
    losetup = need.tool("losetup")
    with backing.open("wb") as file:
        file.truncate(size_bytes)
    attached = subprocess.run(
        [losetup, "--find", "--show", str(backing)], capture_output=True, text=True, check=False
    )
    if attached.returncode:
        need.missing(f"no loop device can be attached: {attached.stderr.strip()}")
    device = attached.stdout.strip()
    try:
        yield Path(device)
    finally:
        subprocess.run([losetup, "--detach", device], check=True)
