"""Two arrays that really serve: a copy over the SAN, a change of sides and back, a partner that is lost."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest
from linerate.array.control import ControlClient, find
from linerate.array.control.report import ReplicationReport

from tests.array.serving import fine, free_ports, serving
from tests.cli.conftest import linerate


def _file(name: str, ports: list[int], volumes: str) -> str:
    own, other = (ports[:2], ports[2:]) if name == "a" else (ports[2:], ports[:2])
    return f"""\
name = "{name}"
portals = ["127.0.0.1:{own[0]}"]
[control]
listen = "127.0.0.1:{own[1]}"
[[storage.disks]]
name = "d"
kind = "file"
path = "{name}.img"
size = "32m"
count = 4
[[storage.raid_sets]]
name = "r0"
level = "raid10"
disks = ["d"]
initialise = "assume_clean"
[[storage.pools]]
name = "p0"
raid_sets = ["r0"]
[[targets]]
name = "iqn.2026-11.lab.linerate:{name}"
{volumes}
[[partners]]
name = "pair"
secret = "a secret of two arrays"
control = "http://127.0.0.1:{other[1]}"
portal = "127.0.0.1:{other[0]}"
[[replications]]
name = "mail"
partner = "pair"
volumes = ["mail"]
pool = "p0"
"""


VOLUME = '[[targets.volumes]]\nlun = 0\nname = "mail"\nkind = "pool"\npool = "p0"\nsize = "16m"\n'


@pytest.fixture(autouse=True)
def own_state(state: Path) -> None:
    """Arrays of this test are found by its verbs only."""


def _mail(array: str) -> ReplicationReport:
    (one,) = ControlClient.at(find(array)).report().replications
    return one


def test_volumes_are_copied_and_sides_change(tmp_path: Path) -> None:
    ports = free_ports(4)
    with ExitStack() as stack:
        stack.enter_context(serving(tmp_path, _file("a", ports, VOLUME), "a"))
        other = stack.enter_context(ExitStack())
        other.enter_context(serving(tmp_path, _file("b", ports, ""), "b"))
        told = fine("array", "replicate", "mail", "--array", "a").stdout
        assert told.endswith("mail: the partner has it all\n")
        assert (_mail("a").role, _mail("b").role) == ("primary", "replica")
        assert (_mail("b").lag_s or 0) < 60
        fine("array", "promote", "mail", "--array", "b", "--yes")
        assert (_mail("a").role, _mail("b").role) == ("replica", "primary")
        refused = linerate("array", "replicate", "mail", "--array", "a")
        assert (refused.returncode, "mail is a copy on this array" in refused.stderr) == (2, True)
        fine("array", "replicate", "mail", "--array", "b")
        other.close()
        refused = linerate("array", "promote", "mail", "--array", "a", "--yes")
        assert (refused.returncode, "--force" in refused.stderr) == (1, True)
        fine("array", "promote", "mail", "--array", "a", "--force", "--yes")
        assert _mail("a").role == "primary"
