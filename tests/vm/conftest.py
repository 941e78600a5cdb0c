"""One stranger's host for all tests of this folder; each test leaves its settings as they were.

Two at once were tried: emulated on two cores, each was half as fast, and one of them stood still for 48 s.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.support import need
from tests.vm import image, installation, network
from tests.vm.machine import Machine
from tests.vm.stranger import NAME, USER, Keys, Stranger

IN_NAMESPACES = "LINERATE_TEST_VM"
"""Set by `python -m tests.vm`, which has made the image and entered namespaces of its own."""


@pytest.fixture(scope="session")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stranger]:
    """The host, booted. A user has nothing of ours there."""
    system = image.kept()
    if system is None or IN_NAMESPACES not in os.environ:
        pytest.skip("a virtual machine is set up by `make test-vm` only")
    network.connect()
    folder = tmp_path_factory.mktemp("vm")
    keys = Keys.make(folder)
    with Machine(system, installation.kept(), folder, keys.on_the_host()) as machine:
        host = Stranger(machine, keys, folder)
        yield host
        host.close()


ROOTS_PYTHON = f"{installation.FOLDER}/bin/python"
_SUDOERS = f"{USER} ALL=(root) NOPASSWD: {ROOTS_PYTHON} -P -m linerate.cli host hold\n"
"""docs/cluster.md, step 5."""


@pytest.fixture(scope="session")
def roots(stranger: Stranger) -> None:
    """Root has Linerate there."""
    if reason := installation.reason():
        need.missing(reason)
    stranger.root(f"systemctl start opt-linerate.mount && test -x {ROOTS_PYTHON}")


@pytest.fixture(scope="session")
def installed(roots: None, stranger: Stranger) -> str:
    """Linerate there, for the user too; gives what the installation has said."""
    done = stranger.linerate("hosts", "install", NAME)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def sudo(stranger: Stranger) -> Iterator[None]:
    """The user may change settings there, and nothing else."""
    file = "/etc/sudoers.d/linerate"
    stranger.write(file, _SUDOERS)
    stranger.root(f"visudo -c -f {file}")
    yield
    stranger.root(f"rm {file}")
