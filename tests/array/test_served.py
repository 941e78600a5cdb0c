"""Arrays that really serve, managed by the verbs: what is made stays, and what fails is borne."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from linerate.array.control import ControlClient, find
from linerate.array.control.report import ArrayReport

from tests.cli.conftest import COMMAND, TIMEOUT_S, Done, environment, linerate

IQN = "iqn.2026-11.lab.linerate:served"
ARRAY = f"""\
name = "served"
portals = ["127.0.0.1:0"]
[[storage.disks]]
name = "d"
kind = "file"
path = "d.img"
size = "32m"
count = 6
[[storage.raid_sets]]
name = "r0"
level = "raid6"
disks = ["d0", "d1", "d2", "d3", "d4"]
spares = ["d5"]
[[storage.pools]]
name = "p0"
raid_sets = ["r0"]
overcommit = 4.0
[[targets]]
name = "{IQN}"
[[targets.volumes]]
lun = 0
name = "v1"
kind = "pool"
pool = "p0"
size = "24m"
"""
LOAD = """\
name = "mixed"
warm_up = "0s"
elapsed = "4s"
interval = "1s"
[[volume]]
name = "v"
outstanding = 4
[[stream]]
name = "oltp"
size = "8k"
read = 50
[[run]]
name = "first"
streams = "oltp"
"""


@pytest.fixture(autouse=True)
def own_state(state: Path) -> None:
    """Arrays of this test are found by its verbs only."""


@contextmanager
def serving(folder: Path, text: str = ARRAY) -> Iterator[str]:
    """An array in a process of its own; gives its portal."""
    (folder / "lab.toml").write_text(text, "ascii")
    command = [*COMMAND, "array", "serve", str(folder / "lab.toml"), "--json"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, env=environment(), **pipes) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        line = process.stdout.readline()
        assert line, process.stderr.read()
        try:
            yield json.loads(line)["portals"][0]
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(TIMEOUT_S) == 0, process.stderr.read()


def _fine(*words: str | Path) -> Done:
    done = linerate(*words)
    assert done.returncode == 0, done.stderr
    return done


def _luns(portal: str) -> dict[int, int]:
    (target,) = json.loads(_fine("discover", portal, "--json").stdout)["targets"]
    return {lun["lun"]: lun["capacity_bytes"] for lun in target["luns"]}


def _report() -> ArrayReport:
    return ControlClient.at(find(None)).report()


def test_snapshots_stay(tmp_path: Path) -> None:
    with serving(tmp_path):
        _fine("array", "snapshot", "v1", "--name", "before")
        _fine("array", "snapshot", "v1", "--name", "after")
        _fine("array", "restore", "v1@before", "--yes")
        refused = linerate("array", "snapshot", "v1", "--name", "before")
        assert (refused.returncode, "before" in refused.stderr) == (2, True)
    with serving(tmp_path) as portal:
        assert _luns(portal) == {0: 24 << 20}
        _fine("array", "delete", "v1@after", "--yes")
        (volume,) = _report().storage.volumes
        assert [one.name for one in volume.snapshots] == ["before"]


def test_two_disks_of_raid_6_fail_under_load(tmp_path: Path) -> None:
    """No I/O error, no wrong block; the spare takes over, the other one is replaced, and everything agrees."""
    (tmp_path / "load.toml").write_text(LOAD, "ascii")
    with serving(tmp_path) as portal:
        words = ["run", tmp_path / "load.toml", "--target", f"iscsi://{portal}/{IQN}/0", "--verify"]
        load = [*COMMAND, *map(str, words), "--output", str(tmp_path / "run"), "--no-report"]
        with subprocess.Popen(
            load, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as process:
            assert process.stdout is not None
            _fine("array", "fail-disk", "d0", "--yes")
            _fine("array", "fail-disk", "d1", "--yes")
            said = process.stdout.read().decode()
            assert process.wait(TIMEOUT_S) == 0, said
        new = tmp_path / "new.img"
        waited = _fine("array", "replace-disk", "d1", "new", "--path", new, "--size", "32m")
        assert "r0 is optimal" in waited.stdout
        assert "everything agrees" in _fine("array", "scrub", "r0").stdout
        states = {disk.name: disk.state for disk in _report().storage.disks if disk.raid_set == "r0"}
        assert {name for name, state in states.items() if state == "online"} >= {
            "d2",
            "d3",
            "d4",
            "d5",
            "new",
        }
