"""Other people's SMB clients and ours on one share of Samba's server: each reads what the others wrote.

Samba's own client is there, and smbprotocol, which is Python.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import pytest
from linerate import _core
from linerate.results import RunDirectory
from linerate.workload import RunSpec, VolumeSpec
from linerate.workload.spec import StreamSpec

from tests.cli.conftest import linerate
from tests.peers.test_our_initiator import FILL, SEED
from tests.support import need
from tests.support.samba import PASSWORD, USER, Samba, samba

FILE_BYTES = 4 << 20
"""As much as `volume_ends` reads of a file: its whole content."""
PIECE_BYTES = 65_536
PROTECTIONS = ("off", "sign", "encrypt")
Put = Callable[[Samba, str, bytes, Path, str], None]
Get = Callable[[Samba, str, Path, str], bytes]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Samba]:
    """A server for all tests of this file."""
    with samba(tmp_path_factory.mktemp("samba")) as server:
        yield server


def _smbclient_put(server: Samba, name: str, data: bytes, folder: Path, protection: str) -> None:
    (folder / "theirs.raw").write_bytes(data)
    server.smbclient(f"put {folder / 'theirs.raw'} {name}", f"--client-protection={protection}")


def _smbclient_get(server: Samba, name: str, folder: Path, protection: str) -> bytes:
    server.smbclient(f"get {name} {folder / 'copy.raw'}", f"--client-protection={protection}")
    return (folder / "copy.raw").read_bytes()


@contextlib.contextmanager
def _smbprotocol(server: Samba, name: str, mode: str, protection: str) -> Iterator[BinaryIO]:
    """An open file of Python's client. It signs unless it encrypts; a session without either is refused."""
    if importlib.util.find_spec("smbprotocol") is None:
        need.missing("smbprotocol is not installed (Python; `make dev` installs it)")
    import smbclient

    account = {"username": USER, "password": PASSWORD, "port": server.port}
    cache: dict[str, object] = {}
    path = rf"\\127.0.0.1\share\{name}"
    options = {**account, "connection_cache": cache, "encrypt": protection == "encrypt"}
    try:
        with smbclient.open_file(path, mode=mode, buffering=0, share_access="rw", **options) as file:
            yield file
    finally:
        smbclient.reset_connection_cache(connection_cache=cache)


def _smbprotocol_put(server: Samba, name: str, data: bytes, _: Path, protection: str) -> None:
    with _smbprotocol(server, name, "wb", protection) as file:
        for at in range(0, len(data), PIECE_BYTES):
            assert file.write(data[at : at + PIECE_BYTES]) == min(PIECE_BYTES, len(data) - at)


def _smbprotocol_get(server: Samba, name: str, _: Path, protection: str) -> bytes:
    with _smbprotocol(server, name, "rb", protection) as file:
        return b"".join(iter(lambda: file.read(PIECE_BYTES), b""))


STRANGERS: dict[str, tuple[Put, Get]] = {
    "smbclient": (_smbclient_put, _smbclient_get),
    "smbprotocol": (_smbprotocol_put, _smbprotocol_get),
}


def ours_put(server: Samba, name: str, folder: Path) -> None:
    """Writes every block once, with a stamp of its address."""
    workload = folder / "fill.toml"
    workload.write_text(FILL, "ascii")
    made = ("--create", "--size", str(FILE_BYTES), "--overwrite", "all")
    seeded = ("--verify", "--seed", str(SEED), "--output", folder / "fill", "--no-report")
    target = ("--target", server.url(name))
    done = linerate("run", workload, *target, *made, *seeded, LINERATE_SMB_PASSWORD=PASSWORD)
    assert done.returncode == 0, done.stderr
    assert RunDirectory.open(folder / "fill").intervals["bytes"].sum() == FILE_BYTES


def ours_get(server: Samba, name: str) -> bytes:
    """The whole content, read by our client."""
    volume = VolumeSpec(name="v", url=server.url(name).replace(f"{USER}@", ""), user=USER, secret=PASSWORD)
    spec = RunSpec(name="look", volumes=(volume,), streams=(StreamSpec(name="s", volumes=("v",)),))
    (ends,) = _core.volume_ends(spec.seam_json())
    assert ends["failure"] is None
    assert ends["capacity_bytes"] == FILE_BYTES
    return ends["first"] + ends["last"]


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.mark.long
@pytest.mark.parametrize("protection", PROTECTIONS)
@pytest.mark.parametrize("stranger", STRANGERS)
def test_each_reads_what_the_other_wrote(
    server: Samba, tmp_path: Path, stranger: str, protection: str
) -> None:
    put, get = STRANGERS[stranger]
    ours_put(server, "ours.img", tmp_path)
    ours = get(server, "ours.img", tmp_path, protection)
    assert len(ours) == FILE_BYTES
    assert sha256(ours) == sha256(server.path("ours.img").read_bytes())
    theirs = random.Random(SEED).randbytes(FILE_BYTES)
    put(server, "theirs.img", theirs, tmp_path, protection)
    assert sha256(ours_get(server, "theirs.img")) == sha256(theirs)
