"""The kernel's own SMB client (cifs) and ours on one share of Samba's server: each reads what the other wrote."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peers.test_smb_strangers import FILE_BYTES, ours_get, ours_put, sha256
from tests.support.samba import PASSWORD, USER, Samba, samba
from tests.vm import network
from tests.vm.stranger import Stranger

pytestmark = [pytest.mark.vm, pytest.mark.timeout(900)]

PLACE = "/mnt/share"
PROTECTIONS = {"off": "", "signed": ",sec=ntlmsspi", "encrypted": ",seal"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Samba]:
    """A server on the first storage network."""
    with samba(tmp_path / "samba", address=network.here(network.SAN_A)) as server:
        yield server


@pytest.mark.parametrize("protection", PROTECTIONS)
def test_each_reads_what_the_other_wrote(
    stranger: Stranger, server: Samba, tmp_path: Path, protection: str
) -> None:
    ours_put(server, "ours.img", tmp_path)
    options = f"ip={server.address},port={server.port},username={USER},password={PASSWORD}"
    options += f",vers=3.1.1,cache=none{PROTECTIONS[protection]}"
    # -i: the guest has no mount.cifs, and the kernel needs none when it is told the address.
    mount = f"mount -i -t cifs //{server.address}/share {PLACE} -o {options}"
    stranger.root(f"modprobe cifs && mkdir -p {PLACE} && {mount}")
    try:
        assert f"{PLACE} cifs" in stranger.root("cat /proc/mounts")
        seen = stranger.root(f"sha256sum < {PLACE}/ours.img").split()[0]
        assert seen == sha256(server.path("ours.img").read_bytes())
        theirs = stranger.root(
            f"head -c {FILE_BYTES} /dev/urandom > /tmp/theirs && cp /tmp/theirs {PLACE}/theirs.img && "
            f"sync {PLACE}/theirs.img && sha256sum < /tmp/theirs"
        ).split()[0]
    finally:
        stranger.root(f"umount {PLACE}")
    assert sha256(ours_get(server, "theirs.img")) == theirs
