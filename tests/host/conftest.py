"""Real network namespaces for the tests of host settings: made by a child process, gone when it ends.

With rights that is a plain namespace; without, or when a test asks for it, one inside a user namespace of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from linerate.host import HostTarget

from tests.support import need

_BUILD = """
set -e
ip link set lo up
ip link add p0 type veth peer name x0
ip link add p1 type veth peer name x1
ip addr add 10.9.0.1/24 dev p0
ip addr add 10.9.0.2/24 dev p1
for link in p0 p1 x0 x1; do ip link set $link up; done
ip route add 10.20.0.0/16 via 10.9.0.7 dev p0 mtu 1400
ip route add default via 10.9.0.7 dev p1 table 100
echo built
exec cat
"""


@dataclass(frozen=True)
class Namespace:
    """A network namespace with two ports, p0 and p1, in one subnet."""

    pid: int
    rootless: bool

    @property
    def target(self) -> HostTarget:
        return HostTarget("h1", ("p0", "p1"), f"/proc/{self.pid}/ns/net")

    def run(self, *command: str) -> str:
        """What a command prints inside."""
        nsenter = [need.tool("nsenter"), "--target", str(self.pid), "--net"]
        enter = [*nsenter, "--user", "--preserve-credentials"] if self.rootless else nsenter
        return subprocess.run([*enter, *command], check=True, capture_output=True, text=True).stdout

    def python(self, program: Path, *arguments: str, before: str = ":") -> subprocess.Popen[str]:
        """A Python program that may enter the namespace; `before` runs first, in a mount namespace of its own."""
        nsenter = [need.tool("nsenter"), "--target", str(self.pid)]
        enter = [*nsenter, "--user", "--preserve-credentials"] if self.rootless else []
        mounts = [need.tool("unshare"), "--mount", "sh", "-ec", f'{before}; exec "$@"', "sh"]
        command = [*enter, *mounts, sys.executable, str(program), str(self.target.namespace), *arguments]
        return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def may_make_namespaces() -> bool:
    return os.geteuid() == 0


@pytest.fixture(autouse=True)
def _own_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def make_namespace() -> Iterator[Callable[[bool], Namespace]]:
    """Makes namespaces that end with the test; the argument asks for a user namespace around it."""
    children: list[subprocess.Popen[str]] = []

    def make(rootless: bool) -> Namespace:
        unshare = [need.tool("unshare"), "--net"]
        if rootless:
            unshare += ["--user", "--map-root-user"]
        shell = [shutil.which("sh") or "/bin/sh", "-c", _BUILD]
        need.tool("ip")
        child = subprocess.Popen(
            [*unshare, *shell],
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        children.append(child)
        assert child.stdout is not None
        assert child.stderr is not None
        if child.stdout.readline() != "built\n":
            need.missing(f"no network namespace: {child.stderr.read().strip()}")
        return Namespace(child.pid, rootless)

    yield make
    for child in children:
        child.communicate("", timeout=10)


@pytest.fixture
def namespace(make_namespace: Callable[[bool], Namespace]) -> Namespace:
    """A namespace that this process may enter. Needs root: a process with threads cannot join a user namespace."""
    if not may_make_namespaces():
        pytest.skip("needs root; test_rootless runs it inside a user namespace")
    return make_namespace(False)
