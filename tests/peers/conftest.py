"""Our array for strangers' clients, and a stranger's array (tgt) for our initiator."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from linerate.array import ArrayConfig, EmbeddedArray, TargetConfig, VolumeConfig

from tests.support import need
from tests.support.loop import block_device

VOLUME_BYTES = 64 << 20
TGT_IQN = "iqn.2026-11.lab.linerate:tgt"
TGT_START_TIMEOUT_S = 10.0


@pytest.fixture(scope="module", params=["memory", "file", "block device"])
def lun(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a LUN of our array, on each kind of volume."""
    with ExitStack() as held:
        path = tmp_path_factory.mktemp("peers") / "volume.img"
        if request.param == "block device":
            path = held.enter_context(block_device(path, VOLUME_BYTES))
        stored = request.param != "memory"
        volume = VolumeConfig(
            lun=0,
            name="vol1",
            kind="file" if stored else "memory",
            path=str(path) if stored else None,
            size_bytes=None if request.param == "block device" else VOLUME_BYTES,
        )
        target = TargetConfig(name="iqn.2026-11.lab.linerate:peers", volumes=(volume,))
        array = EmbeddedArray(ArrayConfig(portals=("127.0.0.1:0",), targets=(target,)))
        yield held.enter_context(array).url(0)


class Tgt:
    """A tgt daemon of its own with one LUN in a file."""

    def __init__(self, port: int, backing: Path, environment: dict[str, str]) -> None:
        self.url = f"iscsi://127.0.0.1:{port}/{TGT_IQN}/1"
        self.portal = f"iscsi://127.0.0.1:{port}"
        self.backing = backing
        self._environment = environment

    def admin(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Runs tgtadm on this daemon."""
        command = [need.tool("tgtadm"), "--lld", "iscsi", *words]
        return subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False)


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def tgt(tmp_path: Path) -> Iterator[Tgt]:
    """A tgt daemon in the foreground; ended with the test."""
    port = _free_port()
    environment = os.environ | {"TGT_IPC_SOCKET": str(tmp_path / "tgt.socket")}
    daemon = subprocess.Popen(
        [need.tool("tgtd"), "--foreground", "--iscsi", f"portal=127.0.0.1:{port}"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        backing = tmp_path / "tgt.img"
        with backing.open("wb") as file:
            file.truncate(VOLUME_BYTES)
        tgt = Tgt(port, backing, environment)
        _configure(tgt, daemon)
        yield tgt
    finally:
        daemon.send_signal(signal.SIGKILL)  # it takes SIGTERM only when no session is left
        daemon.communicate()


def _configure(tgt: Tgt, daemon: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + TGT_START_TIMEOUT_S
    new_target = ("--op", "new", "--mode", "target", "--tid", "1", "-T", TGT_IQN)
    while tgt.admin(*new_target).returncode:
        if daemon.poll() is not None:
            need.missing(f"tgtd does not start here: {daemon.communicate()[1].strip()[-200:]}")
        if time.monotonic() > deadline:
            need.missing(f"tgtd did not answer within {TGT_START_TIMEOUT_S:g} s")
        time.sleep(0.05)
    lun = ("--op", "new", "--mode", "logicalunit", "--tid", "1", "--lun", "1", "-b", str(tgt.backing))
    for words in (lun, ("--op", "bind", "--mode", "target", "--tid", "1", "-I", "ALL")):
        done = tgt.admin(*words)
        assert done.returncode == 0, done.stderr
