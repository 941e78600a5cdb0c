"""Labs for tests: one that many look at, and commands that hold their own and are ended in every way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from linerate.errors import LinerateError
from linerate.lab import Lab, may_build
from linerate.lab.cpu.idle import kept_awake

from tests.support import need

ROOT = Path(__file__).resolve().parents[2]
COMMAND = (sys.executable, "-m", "linerate.cli", "lab")
TIMEOUT_S = 60.0

TOPOLOGY = """
[link]
rate = "1gbit"

[[switch]]
name = "sw1"

[[host]]
name = "h{n}"
count = 2
port = [{ name = "p0", switch = "sw1" }]

[[array]]
name = "a1"
port = [{ name = "p0", switch = "sw1" }]
volume = [{ name = "v{n}", count = 2, size = "16m" }]
"""


def streams(hosts: int, switch: str, *lan: str) -> str:
    """A topology whose hosts h1, h2, ... send to each other at 100 Mbit/s, and an unused array."""
    return f"""
[link]
rate = "100mbit"

[[switch]]
name = "sw1"
{switch}

[[host]]
name = "h{{n}}"
count = {hosts}
port = [{{ name = "p0", switch = "sw1" }}]

[[array]]
name = "a1"
port = [{{ name = "p0", switch = "sw1" }}]
volume = [{{ name = "v1", size = "1m" }}]
""" + "".join(f"\n[[lan]]\n{stream}\n" for stream in lan)


# The supervisor's command ends when its standard input does: so a test can hold a lab as long as it likes.
HOLD = """
import sys
from linerate.lab import enter
enter()
from linerate.lab import Lab
from linerate.san import load_topology
with Lab.up(load_topology(sys.argv[1]), name=sys.argv[2]) as lab:
    print(lab.name, flush=True)
    sys.stdin.read()
"""


def as_user(command: tuple[str, ...]) -> tuple[str, ...]:
    """The command without any right over the machine's network, as every user but root has it.

    The kernel lets user 0 map itself only with CAP_SETFCAP; other users need nothing.
    """
    if not may_build():
        return command
    setpriv = need.tool("setpriv")
    return (setpriv, "--no-new-privs", "--bounding-set=-all,+setfcap", *command)


@pytest.fixture(scope="module")
def awake() -> Iterator[None]:
    """For tests that measure rates: CPUs that sleep in between would spoil them."""
    with kept_awake():
        yield


@pytest.fixture(params=["root", "user"])
def rights(request: pytest.FixtureRequest) -> str:
    """As whom a command builds its lab."""
    if request.param == "root" and not may_build():
        need.missing("these tests also run as root, but this is not root")
    return str(request.param)


def with_rights(rights: str, command: tuple[str, ...]) -> tuple[str, ...]:
    """The command as root, or as somebody else."""
    return as_user(command) if rights == "user" else command


@pytest.fixture(scope="session", autouse=True)
def _namespaces() -> None:
    """Skips all tests if the kernel gives no user namespaces."""
    tried = subprocess.run(
        as_user((sys.executable, "-c", "from linerate.lab import enter; enter()")),
        capture_output=True,
        text=True,
    )
    if tried.returncode != 0:
        pytest.skip(tried.stderr.strip().splitlines()[-1])


@pytest.fixture(scope="session")
def topology_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two hosts and an array at one switch."""
    path = tmp_path_factory.mktemp("lab") / "small.toml"
    path.write_text(TOPOLOGY)
    return path


def unique(name: str) -> str:
    """A lab's name that no other test run uses."""
    return f"test-{name}-{os.getpid()}"


def run(*command: str, rights: str = "root") -> subprocess.CompletedProcess[str]:
    """Runs `linerate lab ...` to its end."""
    return subprocess.run(
        with_rights(rights, (*COMMAND, *command)),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def hold(topology: Path | str, name: str, rights: str) -> subprocess.Popen[str]:
    """Starts a command that holds a lab of that name, and waits until it is up."""
    holder = subprocess.Popen(
        with_rights(rights, (sys.executable, "-c", HOLD, str(topology), name)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline().strip() == name
    return holder


def end(holder: subprocess.Popen[str]) -> int:
    """Closes the holder's input, waits for its end, and gives its status."""
    with holder:
        assert holder.stdin is not None
        holder.stdin.close()
        return holder.wait(TIMEOUT_S)


@pytest.fixture(scope="module")
def lab(topology_file: Path) -> Iterator[Lab]:
    """A lab that is up, shared by the tests of a module; built without root."""
    name = unique("shared")
    up = run("up", str(topology_file), "--name", name, "--json", rights="user")
    assert up.returncode == 0, up.stderr
    assert json.loads(up.stdout)["name"] == name
    try:
        with Lab.look(name) as found:
            yield found
    finally:
        with Lab.look(name) as found:
            found.down()


def message(error: LinerateError) -> str:
    """All that a user would read."""
    return f"{error.message} -> {error.hint}"
