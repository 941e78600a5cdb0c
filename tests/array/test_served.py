"""Arrays that really serve, managed by the verbs: what is made stays, and what fails is borne."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from linerate.array.control import ControlClient, find
from linerate.array.control.report import ArrayReport

from tests.cli.conftest import COMMAND, TIMEOUT_S, environment, linerate
from tests.support.serving import fine, serving

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
TWO_POOLS = f"""\
name = "served"
portals = ["127.0.0.1:0"]
workers = 2
[[storage.disks]]
name = "d"
kind = "file"
path = "d.img"
size = "32m"
count = 4
[[storage.raid_sets]]
name = "r0"
level = "raid1"
disks = ["d0", "d1"]
[[storage.raid_sets]]
name = "r1"
level = "raid1"
disks = ["d2", "d3"]
[[storage.pools]]
name = "p0"
raid_sets = ["r0"]
[[storage.pools]]
name = "p1"
raid_sets = ["r1"]
[[targets]]
name = "{IQN}"
[[targets.volumes]]
lun = 0
name = "v0"
kind = "pool"
pool = "p0"
size = "8m"
[[targets.volumes]]
lun = 1
name = "v1"
kind = "pool"
pool = "p1"
size = "8m"
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


def _luns(portal: str) -> dict[int, int]:
    (target,) = json.loads(fine("discover", portal, "--json").stdout)["targets"]
    return {lun["lun"]: lun["capacity_bytes"] for lun in target["luns"]}


def _report() -> ArrayReport:
    return ControlClient.at(find(None)).report()


def _started(folder: Path) -> tuple[list[str], str]:
    """What a start of the array prints, and its log."""
    (folder / "array.toml").write_text(ARRAY, "utf-8")
    process = subprocess.Popen(
        [*COMMAND, "array", "serve", "array.toml"],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    said = list(iter(process.stdout.readline, "serving until Ctrl-C\n"))
    process.terminate()
    return said, process.communicate(timeout=TIMEOUT_S)[1]


def test_snapshots_stay(tmp_path: Path) -> None:
    with serving(tmp_path, ARRAY):
        fine("array", "snapshot", "v1", "--name", "before")
        fine("array", "snapshot", "v1", "--name", "after")
        fine("array", "restore", "v1@before", "--yes")
        refused = linerate("array", "snapshot", "v1", "--name", "before")
        assert (refused.returncode, "before" in refused.stderr) == (2, True)
    with serving(tmp_path, ARRAY) as portal:
        assert _luns(portal) == {0: 24 << 20}
        fine("array", "delete", "v1@after", "--yes")
        (volume,) = _report().storage.volumes
        assert [one.name for one in volume.snapshots] == ["before"]


@pytest.mark.long
def test_what_the_verbs_make_stays(tmp_path: Path) -> None:
    with serving(tmp_path, ARRAY) as portal:
        fine("array", "create-volume", "v2", "64m", "--lun", "7")
        fine("array", "resize", "v1", "32m")
        fine("array", "snapshot", "v1", "v2", "--name", "before")
        fine("array", "clone", "v1@before", "v3")
        fine("array", "restore", "v2@before", "--yes")
        assert _luns(portal) == {0: 32 << 20, 1: 32 << 20, 7: 64 << 20}
    with serving(tmp_path, ARRAY) as portal:
        assert _luns(portal) == {0: 32 << 20, 1: 32 << 20, 7: 64 << 20}
        volumes = {volume.name: volume for volume in _report().storage.volumes}
        assert {name: [one.name for one in volume.snapshots] for name, volume in volumes.items()} == {
            "v1": ["before"],
            "v2": ["before"],
            "v3": [],
        }
        assert (volumes["v2"].target, volumes["v2"].lun) == (IQN, 7)
        refused = linerate("array", "delete", "v2", "--yes")
        assert (refused.returncode, "delete them first, or with it: --with-snapshots" in refused.stderr) == (
            2,
            True,
        )
        fine("array", "delete", "v2", "--with-snapshots", "--yes")
        fine("array", "delete", "v1@before", "--yes")
        assert _luns(portal) == {0: 32 << 20, 1: 32 << 20}


def test_a_start_does_not_list_a_volume_that_was_deleted(tmp_path: Path) -> None:
    with serving(tmp_path, ARRAY):
        fine("array", "delete", "v1", "--yes")
    said, _ = _started(tmp_path)
    assert [line for line in said if "LUN" in line] == [
        "  no LUN 0: v1 was deleted; `linerate array create-volume v1 SIZE --lun 0` makes an empty one\n"
    ]


@pytest.mark.long
def test_the_start_says_what_is_served_and_not_what_the_file_says(tmp_path: Path) -> None:
    with serving(tmp_path, ARRAY):
        fine("array", "create-volume", "v2", "64m", "--lun", "7")
        fine("array", "resize", "v1", "32m")
    said, log = _started(tmp_path)
    luns = [line.split(maxsplit=3)[1:] for line in said if line.startswith("  LUN")]
    assert luns == [["0", "v1", "32 MiB  p0\n"], ["7", "v2", "64 MiB  p0, not in the array file\n"]]
    assert "v1 has 32 MiB, not the 24 MiB of the array file" in log


@pytest.mark.long
def test_promises_beyond_the_limit_are_refused(tmp_path: Path) -> None:
    with serving(tmp_path, ARRAY):
        refused = linerate("array", "create-volume", "huge", "100g")
    assert refused.returncode == 2
    assert 'pool "p0": 100 GiB would be provisioned; the limit is ' in refused.stderr


@pytest.mark.long
def test_two_disks_of_raid_6_fail_under_load(tmp_path: Path) -> None:
    """No I/O error, no wrong block; the spare takes over, the other one is replaced, and everything agrees."""
    (tmp_path / "load.toml").write_text(LOAD, "ascii")
    with serving(tmp_path, ARRAY) as portal:
        words = [
            "run",
            tmp_path / "load.toml",
            "--target",
            f"iscsi://{portal}/{IQN}/0",
            "--verify",
            "--overwrite",
            "all",
        ]
        load = [*COMMAND, *map(str, words), "--output", str(tmp_path / "run"), "--no-report"]
        with subprocess.Popen(
            load, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as process:
            assert process.stdout is not None
            fine("array", "fail-disk", "d0", "--yes")
            fine("array", "fail-disk", "d1", "--yes")
            said = process.stdout.read().decode()
            assert process.wait(TIMEOUT_S) == 0, said
        new = tmp_path / "new.img"
        waited = fine("array", "replace-disk", "d1", "new", "--path", new, "--size", "32m")
        assert "r0 is optimal" in waited.stdout
        assert "everything agrees" in fine("array", "scrub", "r0").stdout
        states = {disk.name: disk.state for disk in _report().storage.disks if disk.raid_set == "r0"}
        assert {name for name, state in states.items() if state == "online"} >= {
            "d2",
            "d3",
            "d4",
            "d5",
            "new",
        }


@pytest.mark.long
def test_two_pools_have_engines_of_their_own_and_one_set_of_names(tmp_path: Path) -> None:
    load = LOAD.replace('"4s"', '"1s"').replace('name = "v"', 'name = "v"\ncount = 2')
    (tmp_path / "load.toml").write_text(load, "ascii")
    with serving(tmp_path, TWO_POOLS) as portal:
        url = f"iscsi://{portal}/{IQN}/"
        words = ["--verify", "--overwrite", "all", "--output", tmp_path / "run", "--no-report"]
        targets = ["--target", f"{url}0", "--target", f"{url}1"]
        fine("run", tmp_path / "load.toml", *targets, *words)
        threads = Path(f"/proc/{find(None).pid}/task").glob("*/comm")
        engines = {name for path in threads if (name := path.read_text()).startswith("array-engine")}
        assert engines == {"array-engine-0\n", "array-engine-1\n"}
        refused = linerate("array", "create-volume", "v2", "8m")
        assert (refused.returncode, "p0, p1" in refused.stderr) == (2, True), refused.stderr
        refused = linerate("array", "create-volume", "v0", "8m", "--pool", "p1")
        assert 'there is a volume "v0" already' in refused.stderr
        fine("array", "create-volume", "v2", "8m", "--pool", "p1")
        fine("array", "snapshot", "v1", "--name", "before")
        fine("array", "clone", "v1@before", "v3")
        fine("array", "fail-disk", "d3", "--yes")
    with serving(tmp_path, TWO_POOLS) as portal:
        assert _luns(portal) == dict.fromkeys(range(4), 8 << 20)
        storage = _report().storage
        assert [(volume.name, volume.pool) for volume in storage.volumes] == [
            ("v0", "p0"),
            ("v1", "p1"),
            ("v2", "p1"),
            ("v3", "p1"),
        ]
        assert [(one.name, one.state) for one in storage.raid_sets] == [("r0", "optimal"), ("r1", "degraded")]
        assert [disk.name for disk in storage.disks] == ["d0", "d1", "d2", "d3"]
