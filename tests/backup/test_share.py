"""`linerate backup-load` on a share that is full, lost or refuses the user; and what its writes ask of the server."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from linerate.array import EmbeddedArray, eight_volumes
from linerate.results import RunDirectory

from tests.cli.conftest import linerate
from tests.support.samba import PASSWORD, USER, samba

WRITE, WRITE_THROUGH = 9, 1
"""MS-SMB2 2.2.1 and 2.2.21."""
SMALL = ("--size", "12m", "--used", "60", "--block", "1m", "--transfer", "256k")


class Relay:
    """Passes bytes on to a server, and keeps those of the client. After `limit_bytes` of them the server is gone."""

    def __init__(self, port: int, limit_bytes: int | None = None) -> None:
        self._server_port = port
        self._limit_bytes = limit_bytes
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.streams: list[bytearray] = []
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.is_gone = False

    def run(self) -> None:
        """Until `stop`."""
        with suppress(OSError):
            while not self.is_gone:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._server_port))
                self._sockets += [client, server]
                kept = bytearray()
                self.streams.append(kept)
                for pair in ((client, server, kept), (server, client, None)):
                    self._threads.append(threading.Thread(target=self._pass, args=pair, daemon=True))
                    self._threads[-1].start()

    def _pass(self, source: socket.socket, sink: socket.socket, kept: bytearray | None) -> None:
        with suppress(OSError):
            while piece := source.recv(1 << 16):
                sink.sendall(piece)
                if kept is not None:
                    kept += piece
                    if self._limit_bytes is not None and len(kept) > self._limit_bytes:
                        self.stop()
                        break
        for one in (source, sink):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def stop(self) -> None:
        """Accepts nothing more, and ends all connections."""
        self.is_gone = True
        for one in (self._listener, *self._sockets):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Stops, and waits for its threads."""
        self.stop()
        for thread in self._threads:
            thread.join(10)
        for one in (self._listener, *self._sockets):
            one.close()


@contextmanager
def relay(port: int, limit_bytes: int | None = None) -> Iterator[Relay]:
    one = Relay(port, limit_bytes)
    thread = threading.Thread(target=one.run, daemon=True)
    thread.start()
    try:
        yield one
    finally:
        one.stop()
        thread.join(10)
        one.close()


def _load(folder: Path, url: str, *more: str, password: str = PASSWORD) -> tuple[int, dict[str, Any], str]:
    """Exit code, result and what was said."""
    words = (
        "backup-load",
        url,
        *SMALL,
        "--incrementals",
        "0",
        "--json",
        "--output",
        str(folder / "run"),
        *more,
    )
    done = linerate(*words, LINERATE_SMB_PASSWORD=password)
    return done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr


def _write_flags(stream: bytearray) -> set[int]:
    """The flags of all WRITE requests of a connection that encrypts nothing."""
    flags, at = set(), 0
    while at + 4 <= len(stream):
        length = int.from_bytes(stream[at + 1 : at + 4], "big")
        message = stream[at + 4 : at + 4 + length]
        if message[:4] == b"\xfeSMB" and int.from_bytes(message[12:14], "little") == WRITE:
            flags.add(int.from_bytes(message[108:112], "little"))
        at += 4 + length
    return flags


@pytest.mark.parametrize(("option", "flags"), [((), {0}), (("--write-through",), {WRITE_THROUGH})])
def test_writes_ask_for_stable_storage_only_if_the_user_does(
    tmp_path: Path, option: tuple[str, ...], flags: set[int]
) -> None:
    with samba(tmp_path) as server, relay(server.port) as between:
        url = f"smb://{USER}@127.0.0.1:{between.port}/share/image.vhdx"
        code, result, said = _load(tmp_path, url, "--no-restore", *option)
    assert code == 0, said
    assert result["image_state"] == "complete"
    assert set().union(*map(_write_flags, between.streams)) == flags


def test_a_share_that_is_lost_ends_it_with_its_reason(tmp_path: Path) -> None:
    with samba(tmp_path) as server, relay(server.port, 14 << 20) as between:
        url = f"smb://{USER}@127.0.0.1:{between.port}/share/image.vhdx"
        soon = ("--set", "smb.replacement_timeout_s=0.5")
        code, result, said = _load(tmp_path, url, "--size", "24m", "--used", "90", *soon)
    assert code != 0
    assert result["state"] == "failed"
    assert result["error"]["message"] in said
    assert f"127.0.0.1:{between.port}" in said
    assert result["image_state"] == "no image"
    run = RunDirectory.open(tmp_path / "run")
    assert (run.manifest.state, run.manifest.steps[-1].state) == ("failed", "failed")


def test_a_full_share_is_named_and_the_image_is_not_called_complete(tmp_path: Path) -> None:
    with samba(tmp_path, limit_bytes=10 << 20) as server:
        code, result, said = _load(tmp_path, server.url("image.vhdx"), "--kind", "dynamic", "--used", "100")
    assert code != 0
    assert [phase["phase"] for phase in result["phases"]] == ["create"]
    assert (result["state"], result["image_state"]) == ("failed", "not finished")
    assert "full" in said or "space" in said, said
    assert result["error"]["hint"]


def test_a_wrong_password_is_named_before_anything_is_made(tmp_path: Path) -> None:
    with samba(tmp_path) as server:
        code, _, said = _load(tmp_path, server.url("image.vhdx"), password="not-the-password")
        assert not server.path("image.vhdx").exists()
    assert code == 2
    assert "password" in said
    assert "not-the-password" not in said


def test_a_lun_that_is_too_small_is_named_with_both_sizes(tmp_path: Path) -> None:
    with EmbeddedArray(eight_volumes(8 << 20)) as array:
        code, result, said = _load(tmp_path, array.url(0))
    assert code == 2
    assert (result["state"], result["image_state"]) == ("failed", "no image")
    assert "the volume has 8388608 bytes, and the image needs" in said
