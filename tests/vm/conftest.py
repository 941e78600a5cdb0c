"""One stranger's host for all tests of this folder; each test leaves it as it was."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.vm import image, network
from tests.vm.machine import Machine
from tests.vm.stranger import Keys, Stranger

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
