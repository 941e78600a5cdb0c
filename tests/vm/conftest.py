"""One stranger's host for all tests of this folder; each test leaves its settings as they were."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest
from linerate import _core
from linerate.cluster.hosts import INSTALLATIONS

from tests.support import need
from tests.vm import image, network
from tests.vm.machine import Machine
from tests.vm.stranger import NAME, USER, Keys, Stranger

IN_NAMESPACES = "LINERATE_TEST_VM"
"""Set by `python -m tests.vm`, which has made the image and entered namespaces of its own."""


@pytest.fixture(scope="session")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stranger]:
    """The host, booted."""
    system = image.kept()
    if system is None or IN_NAMESPACES not in os.environ:
        pytest.skip("a virtual machine is set up by `make test-vm` only")
    network.connect()
    folder = tmp_path_factory.mktemp("vm")
    keys = Keys.make(folder)
    with Machine(system, folder, keys.on_the_host()) as machine:
        host = Stranger(machine, keys, folder)
        yield host
        host.close()


ROOTS_FOLDER = "/opt/linerate"
ROOTS_PYTHON = f"{ROOTS_FOLDER}/bin/python"
_SUDOERS = f"{USER} ALL=(root) NOPASSWD: {ROOTS_PYTHON} -P -m linerate.cli host hold\n"
"""docs/cluster.md, step 5."""


@pytest.fixture(scope="session")
def installed(stranger: Stranger) -> str:
    """Linerate there, for the user and for root; gives what the installation has said."""
    if sys.version_info[:2] != image.PYTHON:
        need.missing(f"Linerate is brought to Python {image.PYTHON} only, and this is {sys.version_info[:2]}")
    done = stranger.linerate("hosts", "install", NAME)
    assert done.returncode == 0, done.stdout + done.stderr
    # pip would need the internet there. The files are the same, and from here on root's: both folders have them.
    users = f"~{USER}/{INSTALLATIONS[2:]}/{_core.__version__}"
    stranger.root(f"cp -al {users} {ROOTS_FOLDER} && chown -R root:root {ROOTS_FOLDER}")
    return done.stdout


@pytest.fixture
def sudo(stranger: Stranger) -> Iterator[None]:
    """The user may change settings there, and nothing else."""
    file = "/etc/sudoers.d/linerate"
    stranger.write(file, _SUDOERS)
    stranger.root(f"visudo -c -f {file}")
    yield
    stranger.root(f"rm {file}")
