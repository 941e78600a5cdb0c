"""Several ports of a host and an array in one network: each path has its own ports, there and back, on both fabrics."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from linerate.errors import UserError
from linerate.lab import Lab
from linerate.san import layout

from tests.lab.conftest import message, run, unique
from tests.support.traffic import python

# The array answers what is no iSCSI by hanging up.
KNOCK = """
import socket, sys
source, portal = sys.argv[1:]
for _ in range(10):
    with socket.create_connection((portal, 3260), timeout=20, source_address=(source, 0)) as link:
        link.sendall(bytes(4096))
        try:
            while link.recv(4096):
                pass
        except ConnectionResetError:
            pass
"""
KNOCK_FRAMES = 30
"""The least that these connections send in either direction."""
STRAY_FRAMES = 8
"""Neighbours may ask each other for their addresses in between."""


@pytest.fixture(scope="module", params=["kernel", "user"])
def mpio(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """Four ports of a host and two of an array at one switch."""
    name = unique(f"mpio-{request.param}")
    up = run("up", "mpio-1gbe", "--name", name, "--fabric", request.param, rights="user")
    assert up.returncode == 0, up.stderr
    with Lab.look(name) as lab:
        yield lab
        lab.down()


def _frames(lab: Lab, before: dict[str, float], after: dict[str, float], what: str) -> dict[str, float]:
    return {link: after[f"port.{link}.{what}"] - before[f"port.{link}.{what}"] for link in lab.topology.links}


def test_each_path_leaves_and_returns_by_its_own_ports(mpio: Lab) -> None:
    mesh = layout(mpio.topology, "h1", "mesh")["a1.v1"]
    assert len(mesh) == 8
    for path in mesh:
        before = mpio.counters()
        done = mpio.execute("h1", python(KNOCK, path.host_address, path.array_address))
        assert done.returncode == 0, done.stderr
        after = mpio.counters()
        own = {f"h1.{path.host_interface}", f"a1.{path.array_interface}"}
        sent = _frames(mpio, before, after, "frames_sent")
        received = _frames(mpio, before, after, "frames_received")
        for link in own:
            assert sent[link] >= KNOCK_FRAMES, (path.name, sent)
            assert received[link] >= KNOCK_FRAMES, (path.name, received)
        assert {link for link, frames in sent.items() if frames > STRAY_FRAMES} == own, path.name


def _discovered(lab: Lab, address: str) -> bool:
    command = [sys.executable, "-m", "linerate.cli", "discover", f"iscsi://{address}:3260"]
    return lab.execute("h1", command).returncode == 0


@pytest.mark.long
def test_an_address_that_comes_is_served_at_once_and_one_that_goes_is_not(mpio: Lab) -> None:
    own = mpio.topology.node("a1").interfaces[0].address
    new = "10.231.1.150"
    assert not _discovered_soon(mpio, new)
    assert mpio.add_address("a1", "p0", new) == (own, new)
    assert _discovered(mpio, new)
    assert mpio.remove_address("a1", "p0", own) == (new,)
    assert _discovered(mpio, new)
    assert not _discovered_soon(mpio, own)
    assert set(mpio.add_address("a1", "p0", own)) == {own, new}
    assert _discovered(mpio, own)
    assert mpio.remove_address("a1", "p0", new) == (own,)
    test_each_path_leaves_and_returns_by_its_own_ports(mpio)


def _discovered_soon(lab: Lab, address: str) -> bool:
    """Without an answer a login would wait for long."""
    code = "import socket, sys; socket.create_connection((sys.argv[1], 3260), timeout=0.5)"
    return lab.execute("h1", python(code, address)).returncode == 0


@pytest.mark.long
def test_the_command_gives_and_takes_addresses(mpio: Lab) -> None:
    lab = ("--lab", mpio.name)
    added = run("address", "add", "h1", "p2", "10.231.1.77", *lab, rights="user")
    assert (added.returncode, added.stdout) == (0, "h1.p2  10.231.1.3, 10.231.1.77\n")
    assert mpio.execute("h1", python(KNOCK, "10.231.1.77", "10.231.1.102")).returncode == 0
    removed = run("address", "remove", "h1", "p2", "10.231.1.77", *lab, "--json", rights="user")
    assert '"addresses": ["10.231.1.3"]' in removed.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("a1", "p0", "10.231.1.1"), "10.231.1.1 is an address of h1.p0"),
        (("a1", "p0", "10.9.9.9"), "is no address of a1.p0's network -> it is 10.231.1.0/24"),
        (("a1", "p0", "10.231.1.255"), "is no address of a1.p0's network"),
        (("a1", "p0", "ten"), "give an address of 10.231.1.0/24"),
        (("a1", "p9", "10.231.1.9"), "there is no interface a1 p9 -> there are h1 p0"),
    ],
)
def test_addresses_that_cannot_be_are_refused(mpio: Lab, words: tuple[str, str, str], says: str) -> None:
    with pytest.raises(UserError) as caught:
        mpio.add_address(*words)
    assert says in message(caught.value)
    with pytest.raises(UserError, match=r"a1\.p0 has no address 10\.231\.1\.99"):
        mpio.remove_address("a1", "p0", "10.231.1.99")
