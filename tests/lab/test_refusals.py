"""Bad orders leave nothing half done, and what a lab did not make it does not touch."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest
from linerate.errors import HostError, LinerateError, UserError
from linerate.lab import Lab, Running, protocol
from linerate.lab import lab as lab_module

from tests.lab.conftest import TIMEOUT_S, TOPOLOGY, as_user, message, run, unique
from tests.lab.trace import outer_interfaces
from tests.support import need


def _up(tmp_path: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    file = tmp_path / "bad.toml"
    file.write_text(text)
    return run("up", str(file), "--name", unique("bad"), *options, rights="user")


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "options", "says"),
    [
        (TOPOLOGY.replace('switch = "sw1"', 'switch = "sw7"', 1), (), "bad.toml:"),
        (TOPOLOGY.replace('rate = "1gbit"', 'rate = "fast"'), (), "bad.toml:3"),
        (TOPOLOGY, ("--fabric", "wire"), "there is no such fabric"),
        (
            TOPOLOGY.replace('rate = "1gbit"', 'rate = "1gbit"\ndelay = "1ms"'),
            ("--fabric", "kernel"),
            "the kernel fabric cannot carry bad: h1.p0: delay",
        ),
        (TOPOLOGY.replace('size = "16m"', 'size = "900000t"'), (), "the embedded array did not start"),
    ],
)
def test_a_bad_topology_is_explained_and_leaves_nothing(
    tmp_path: Path, text: str, options: tuple[str, ...], says: str
) -> None:
    before = outer_interfaces()
    refused = _up(tmp_path, text, *options)
    assert refused.returncode != 0
    assert says in refused.stderr
    assert "  -> " in refused.stderr
    assert "Traceback" not in refused.stderr
    assert unique("bad") not in protocol.names()
    assert outer_interfaces() == before


RAID_10 = """
storage = { disks = 4, disk_size = "1g", sets = 1, raid_level = "raid10" }
volume = [{ name = "v1", size = "64m" }]
"""
DISKS = re.sub(r"\nvolume = .*\n", RAID_10, TOPOLOGY)


def test_too_few_disks_are_refused_with_file_and_line(tmp_path: Path) -> None:
    refused = _up(tmp_path, DISKS.replace("disks = 4", "disks = 2"))
    line = 1 + DISKS.split("\n").index(RAID_10.split("\n")[1])
    assert refused.returncode == 2
    assert f"bad.toml:{line}: array[0].storage: RAID 10 needs at least 4 disks" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert unique("bad") not in protocol.names()


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"disks": 2}, UserError, "array with disks a1: RAID 10 needs at least 4 disks"),
        ({"disks": 0}, UserError, "array with disks a1: disks: must be more than 0"),
        ({"model": "no_such"}, UserError, "array a1: Input should be 'sata"),
        ({"disk_bytes": 1 << 60}, HostError, 'the embedded array did not start: .*disk "d0"'),
    ],
)
def test_after_a_refused_change_of_its_disks_an_array_serves_as_before(
    disks_lab: Lab, change: dict[str, Any], error: type[LinerateError], says: str
) -> None:
    before = disks_lab.now()
    with pytest.raises(error, match=says):
        disks_lab.change_storage("a1", **change)
    assert list(disks_lab.array_reports()) == ["a1"]
    assert disks_lab.now() == before
    (volume,) = disks_lab.volume_urls("h1")
    portal = "/".join(volume.url.split("/")[:3])
    command = [sys.executable, "-m", "linerate.cli", "discover", portal]
    assert disks_lab.execute("h1", command).returncode == 0


@pytest.fixture(scope="module")
def disks_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab whose array has disks."""
    file = tmp_path_factory.mktemp("disks") / "disks.toml"
    file.write_text(DISKS)
    name = unique("disks")
    up = run("up", str(file), "--name", name, rights="user")
    assert up.returncode == 0, up.stderr
    try:
        with Lab.look(name) as found:
            yield found
    finally:
        run("down", name, rights="user")


@pytest.mark.long
def test_a_name_in_use_is_refused_and_its_lab_stays(lab: Lab, topology_file: Path) -> None:
    again = run("up", str(topology_file), "--name", lab.name, rights="user")
    assert (again.returncode, again.stdout) == (2, "")
    assert f"a lab named {lab.name} is up already" in again.stderr
    assert lab.execute("h1", ["true"]).returncode == 0


@pytest.mark.long
def test_down_ends_only_labs(lab: Lab) -> None:
    """A program of this user that merely sits on such a name is told nothing that it could obey, and lives on."""
    name = unique("squatter")
    with socket.socket(socket.AF_UNIX) as squatter:
        squatter.bind(protocol.address(name))
        squatter.listen()
        squatting = subprocess.Popen(
            [sys.executable, "-c", "import socket, sys; s = socket.socket(fileno=0); s.accept()[0].close()"],
            stdin=squatter.fileno(),
        )
        refused = run("down", name, rights="user")
        assert squatting.wait(TIMEOUT_S) == 0
    assert refused.returncode != 0
    assert "Traceback" not in refused.stderr


def test_commands_wait_for_a_lab_too_busy_to_take_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look for running labs queues at each of them, and one that is being built answers later."""
    name = unique("busy")
    monkeypatch.setattr(protocol, "_HOLDER_TIMEOUT_S", TIMEOUT_S)
    with socket.socket(socket.AF_UNIX) as lab, ThreadPoolExecutor(2) as pool:
        lab.bind(protocol.address(name))
        lab.listen(1)
        waiting = _filled(protocol.address(name))
        commands = [pool.submit(protocol.LabConnection, name), pool.submit(protocol.holder, name)]
        done, _ = wait(commands, timeout=0.1)
        assert not done
        taken = [lab.accept()[0] for _ in (*waiting, *commands)]
        commands[0].result(TIMEOUT_S).close()
        assert commands[1].result(TIMEOUT_S) == os.geteuid()
        for connection in (*waiting, *taken):
            connection.close()


def _filled(address: str) -> list[socket.socket]:
    """As many connections as a listener lets wait."""
    waiting = []
    while True:
        connection = socket.socket(socket.AF_UNIX)
        connection.setblocking(False)
        try:
            connection.connect(address)
        except BlockingIOError:
            connection.close()
            return waiting
        waiting.append(connection)


def test_a_lab_that_takes_nobody_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    name = unique("stuck")
    monkeypatch.setattr(protocol, "ANSWER_TIMEOUT_S", 0.1)
    with socket.socket(socket.AF_UNIX) as lab:
        lab.bind(protocol.address(name))
        lab.listen(1)
        waiting = _filled(protocol.address(name))
        with pytest.raises(HostError, match=f"the lab {name} has taken no command"):
            protocol.LabConnection(name)
        for connection in waiting:
            connection.close()


def test_a_lab_that_is_not_up_cannot_go_down() -> None:
    gone = run("down", unique("never"), rights="user")
    assert gone.returncode == 2
    assert f"no lab named {unique('never')} is up" in gone.stderr


def test_names_that_are_no_names_are_refused() -> None:
    with pytest.raises(UserError) as caught:
        Lab.look("../etc")
    assert "is not a valid lab name" in message(caught.value)


@pytest.mark.parametrize(
    ("text", "name"), [("my_san", "my-san"), ("base-san", "base-san"), ("_", "lab"), ("s" * 60, "s" * 39)]
)
def test_a_lab_can_be_named_after_any_file(text: str, name: str) -> None:
    assert protocol.name_after(text) == name
    assert protocol.checked_name(f"{name}-01234567")


STRANGE_NAMES = """
import socket
from linerate.lab import enter, protocol, system
enter()
system.unshare(system.CLONE_NEWNET)  # names that no other command of this machine shall meet
held = []
labs = [protocol.address(name).encode() for name in ("lab-1", "no lab", "bound-only")]
for name in (b"\\0two\\n\\nlines", b"\\0no\\xfftext", *labs):
    held.append(socket.socket(socket.AF_UNIX))
    held[-1].bind(name)
    if b"bound-only" not in name:
        held[-1].listen()
print(protocol.names())
"""


def test_sockets_of_others_may_have_any_name() -> None:
    """Everybody may bind a socket with any bytes in its name, and the kernel lists it beside those of labs."""
    command = as_user((sys.executable, "-c", STRANGE_NAMES))
    listed = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert (listed.stdout, listed.stderr) == ("['lab-1']\n", "")


SQUATTER = """
import socket, sys
with socket.socket(socket.AF_UNIX) as squatter:
    squatter.bind("\\0" + sys.argv[1])
    if sys.argv[2] == "serving":
        squatter.listen()
    print("bound", flush=True)
    sys.stdin.read()
"""


def _as_nobody(code: str, *words: str) -> subprocess.Popen[str]:
    """A program of another user."""
    if os.geteuid() != 0:
        pytest.skip("only root can be somebody else")
    python = "/usr/bin/python3"
    if not os.access(python, os.X_OK):
        need.missing("no Python that every user may run (Debian: python3-minimal)")
    return subprocess.Popen(
        [python, "-I", "-c", code, *words],
        user=65534,
        group=65534,
        extra_groups=[],
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("how", "says"), [("serving", "a process of user 65534"), ("silent", "which does not answer")]
)
def test_a_name_that_another_user_holds_is_no_lab(topology_file: Path, how: str, says: str) -> None:
    name = unique(f"squatted-{how}")
    with _as_nobody(SQUATTER, protocol.address(name)[1:], how) as squatter:
        assert squatter.stdout is not None
        assert squatter.stdin is not None
        assert squatter.stdout.readline() == "bound\n"
        assert name not in protocol.names()
        refused = run("up", str(topology_file), "--name", name)
        squatter.stdin.close()
    assert refused.returncode == 2
    assert says in refused.stderr
    assert f"holds the lab name {name}\n  -> choose another name" in refused.stderr


STRANGER = """
import socket, sys
with socket.socket(socket.AF_UNIX) as stranger:
    stranger.connect("\\0" + sys.argv[1])
    print(stranger.makefile().readline())
    try:
        stranger.sendall(b'{"id": 1, "method": "down", "params": {}}\\n')
    except OSError:
        pass  # the lab has hung up already
"""


def test_another_user_is_refused(lab: Lab) -> None:
    with _as_nobody(STRANGER, protocol.address(lab.name)[1:]) as stranger:
        told, _ = stranger.communicate(timeout=TIMEOUT_S)
    assert "the lab belongs to another user" in told
    assert lab.execute("h1", ["true"]).returncode == 0


def test_what_the_kernel_refuses_changes_nothing(lab: Lab) -> None:
    before = lab.now()
    with pytest.raises(HostError, match="sw1: the kernel refused"):
        lab.change_switch("sw1", buffer_bytes=1 << 33)
    with pytest.raises(HostError, match=r"h1\.p0: the kernel refused"):
        lab.change_link("h1.p0", mtu=9000, rate_bits_per_s=1)
    assert lab.now() == before


@pytest.mark.parametrize(
    ("attached", "meant"),
    [
        ({"mine": False}, "mine"),
        ({"study": True}, "study"),
        ({"study": True, "mine": False}, "mine"),
        ({"study": True, "other": True}, None),
        ({"mine": False, "other": False}, None),
    ],
)
def test_the_lab_that_was_left_up_is_meant_where_none_is_named(
    monkeypatch: pytest.MonkeyPatch, attached: dict[str, bool], meant: str | None
) -> None:
    """Labs that end with a command, such as a study's, are not in the way."""
    up = [Running(name, "small", "kernel", 1, held) for name, held in attached.items()]
    monkeypatch.setattr(protocol, "names", lambda: sorted(attached))
    monkeypatch.setattr(lab_module, "running", lambda: up)
    if meant is not None:
        assert lab_module.only_lab() == meant
        return
    with pytest.raises(UserError, match="several labs are up"):
        lab_module.only_lab()
