"""Disks that are missing, or hold something else: the array creates nothing again unless it is told to."""

from __future__ import annotations

import json
import os
import shutil
import socket
from pathlib import Path

import pytest
from linerate.array import parse_array_text
from linerate.array.control import ControlClient, find
from linerate.array.record import ArrayRecord, RecordWriter, ServedDisk, load, places, save
from linerate.errors import UserError

from tests.array.disks.wire import BLOCK, logged_in
from tests.cli.conftest import Done, linerate
from tests.support.serving import fine, serving

IQN = "iqn.2026-11.lab.linerate:missing"
ARRAY = f"""\
name = "missing"
portals = ["127.0.0.1:0"]
[[storage.disks]]
name = "d"
kind = "file"
path = "disks/d.img"
size = "24m"
sparse = true
count = 4
[[storage.raid_sets]]
name = "r0"
level = "raid5"
disks = ["d0", "d1", "d2"]
spares = ["d3"]
initialise = "assume_clean"
[[storage.pools]]
name = "p0"
raid_sets = ["r0"]
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
name = "f0"
kind = "file"
path = "volumes/f0.img"
size = "1m"
"""
PATTERN = bytes(range(256)) * 256


@pytest.fixture
def served_once(tmp_path: Path) -> Path:
    """The folder of an array that has served, with something on its volumes."""
    for name in ("disks", "volumes"):
        (tmp_path / name).mkdir()
    with serving(tmp_path, ARRAY) as portal, logged_in(portal, IQN) as session:
        for lun in (0, 1):
            assert session.write(lun, 0, PATTERN).status == 0
    return tmp_path


def _refused(folder: Path, *more: str) -> Done:
    done = linerate("array", "serve", folder / "lab.toml", *more)
    assert done.returncode in (1, 2), done.stderr
    return done


def _serves_what_it_did(folder: Path) -> None:
    with serving(folder, ARRAY) as portal, logged_in(portal, IQN) as session:
        for lun in (0, 1):
            assert session.read(lun, 0, len(PATTERN)).data == PATTERN


@pytest.mark.long
def test_what_was_served_is_noted_beside_the_file(served_once: Path) -> None:
    beside, _ = places(served_once / "lab.toml")
    record = load(served_once / "lab.toml")
    assert beside.exists()
    assert record.pools == {"p0": ("r0",)}
    assert record.disks["d1"] == ServedDisk(path=str(served_once / "disks" / "d1.img"), raid_set="r0")
    assert record.volumes == {"f0": str(served_once / "volumes" / "f0.img")}
    assert len(record.raid_sets["r0"].id) == 16
    beside.unlink()
    _serves_what_it_did(served_once)
    assert beside.exists()


@pytest.mark.long
@pytest.mark.parametrize(
    ("aside", "message"),
    [("disks", "is empty: is its file system mounted?"), ("volumes", "volume f0 was served before")],
)
def test_a_file_system_that_is_not_mounted_is_seen(served_once: Path, aside: str, message: str) -> None:
    """An empty mount point looks like this."""
    folder, mounted = served_once / aside, served_once / "mounted"
    folder.rename(mounted)
    folder.mkdir()
    refused = _refused(served_once)
    assert message in refused.stderr
    assert not list(folder.iterdir()), "something was made in the mount point"
    checked = linerate("array", "check", served_once / "lab.toml")
    assert checked.returncode == 1
    assert not list(folder.iterdir())
    folder.rmdir()
    mounted.rename(folder)
    _serves_what_it_did(served_once)


@pytest.mark.long
def test_a_set_without_superblocks_is_created_only_by_its_name(served_once: Path) -> None:
    for disk in (served_once / "disks").iterdir():
        with disk.open("r+b") as file:
            file.write(bytes(128 << 10))
    refused = _refused(served_once)
    assert "was served before, and none of its disks holds it now" in refused.stderr
    assert "--create r0" in refused.stderr
    asked = _refused(served_once, "--create", "r0", "--create", "p0")
    assert "--yes" in asked.stderr
    more = ("--create", "r0", "--create", "p0", "--yes")
    with serving(served_once, ARRAY, more=more) as portal, logged_in(portal, IQN) as session:
        assert session.read(0, 0, BLOCK).data == bytes(BLOCK)
        assert session.read(1, 0, len(PATTERN)).data == PATTERN


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("nosuch", "has no RAID set, pool or volume in a file of this name", "it has: r0, p0, f0"),
        ("v0", "this volume is in pool p0", "`linerate array delete v0` deletes the volume alone"),
    ],
)
def test_what_cannot_be_created_again_is_said_before_it_is_asked(
    tmp_path: Path, name: str, message: str, hint: str
) -> None:
    file = tmp_path / "lab.toml"
    file.write_text(ARRAY, "ascii")
    done = linerate("array", "serve", file, "--create", name)
    assert done.returncode == 2
    assert message in done.stderr
    assert hint in done.stderr
    assert "--yes" not in done.stderr
    assert not (tmp_path / "disks").exists()


@pytest.mark.long
def test_a_file_volume_is_created_only_by_its_name(served_once: Path) -> None:
    (served_once / "volumes" / "f0.img").unlink()
    (served_once / "volumes" / "other").touch()
    assert "--create f0" in _refused(served_once).stderr
    with (
        serving(served_once, ARRAY, more=("--create", "f0", "--yes")) as portal,
        logged_in(portal, IQN) as session,
    ):
        assert session.read(1, 0, BLOCK).data == bytes(BLOCK)
        assert session.read(0, 0, len(PATTERN)).data == PATTERN


@pytest.mark.long
def test_a_missing_member_is_reported_and_not_made(served_once: Path) -> None:
    lost = served_once / "disks" / "d1.img"
    lost.unlink()
    with serving(served_once, ARRAY) as portal, logged_in(portal, IQN) as session:
        assert session.read(0, 0, len(PATTERN)).data == PATTERN
        disks = {disk.name: disk.state for disk in ControlClient.at(find(None)).report().storage.disks}
        assert disks["d1"] == "missing"
        assert disks["d3"] in ("rebuilding", "online"), "the spare takes its place"
        assert not lost.exists()


@pytest.mark.long
def test_a_disk_that_failed_is_listed_as_failed(served_once: Path) -> None:
    with serving(served_once, ARRAY):
        fine("array", "fail-disk", "d1", "--yes", "--wait")
        disks = {disk.name: disk for disk in ControlClient.at(find(None)).report().storage.disks}
        assert (disks["d1"].state, disks["d1"].raid_set, disks["d3"].state) == ("failed", "r0", "online")
        assert "disks in no RAID set" not in fine("array", "show", "--seconds", "0.1").stdout
    with serving(served_once, ARRAY):
        disks = {disk.name: disk for disk in ControlClient.at(find(None)).report().storage.disks}
        assert (disks["d1"].state, disks["d1"].raid_set) == ("out", "r0")


@pytest.mark.long
def test_a_new_disk_that_holds_something_is_not_overwritten(served_once: Path) -> None:
    new = served_once / "new.img"
    new.write_bytes(b"precious" + bytes((24 << 20) - 8))
    words = ("array", "replace-disk", "d1", "n", "--path", str(new), "--size", "24m", "--sparse")
    with serving(served_once, ARRAY):
        refused = linerate(*words)
        assert refused.returncode == 2
        assert "it holds unknown data" in refused.stderr
        assert "--overwrite" in refused.stderr
        assert new.read_bytes().startswith(b"precious")
        assert "r0 is optimal" in fine(*words, "--overwrite").stdout


@pytest.mark.long
def test_a_missing_disk_comes_back_under_its_own_name(served_once: Path) -> None:
    """Its own file is put back, then it is lost for good, and a new one is made in its place."""
    file, aside = served_once / "disks" / "d1.img", served_once / "aside"
    text = ARRAY.replace('spares = ["d3"]\n', "").replace("count = 4", "count = 3")
    again = ("array", "replace-disk", "d1", "d1", "--path", str(file), "--size", "24m", "--sparse")
    for is_lost in (False, True):
        file.rename(aside)
        with serving(served_once, text):
            disks = {disk.name: disk for disk in ControlClient.at(find(None)).report().storage.disks}
            assert disks["d1"].state == "missing"
            if not is_lost:
                aside.rename(file)
            assert "r0 is optimal" in fine(*again).stdout
            taken = linerate(*again)
            assert (taken.returncode, "is the disk d1 of r0, in this array" in taken.stderr) == (2, True)
        with serving(served_once, text) as portal, logged_in(portal, IQN) as session:
            assert session.read(0, 0, len(PATTERN)).data == PATTERN
            disks = {disk.name: disk for disk in ControlClient.at(find(None)).report().storage.disks}
            assert disks["d1"].state == "online"


@pytest.mark.long
def test_a_missing_disk_stays_missing_if_nothing_takes_its_place(served_once: Path) -> None:
    file = served_once / "disks" / "d1.img"
    file.unlink()
    text = ARRAY.replace('spares = ["d3"]\n', "").replace("count = 4", "count = 3")
    with serving(served_once, text):
        again = ("array", "replace-disk", "d1", "d1", "--path", str(file), "--sparse")
        small = linerate(*again, "--size", "1m")
        assert small.returncode != 0
        assert not file.exists()
        disks = {disk.name: disk for disk in ControlClient.at(find(None)).report().storage.disks}
        assert (disks["d1"].state, disks["d1"].path) == ("missing", str(file))
        assert "r0 is optimal" in fine(*again, "--size", "24m").stdout


def test_a_start_that_fails_leaves_no_files(tmp_path: Path) -> None:
    (tmp_path / "disks").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        text = ARRAY[: ARRAY.index("[[targets.volumes]]\nlun = 1")]
        (tmp_path / "lab.toml").write_text(text.replace("127.0.0.1:0", f"127.0.0.1:{port}"), "ascii")
        refused = _refused(tmp_path)
    assert "Address already in use" in refused.stderr
    assert not list((tmp_path / "disks").iterdir())
    assert not places(tmp_path / "lab.toml")[0].exists()


@pytest.mark.long
def test_disks_older_than_the_record_are_refused(served_once: Path) -> None:
    """Served without a disk, then with that one alone: what was written since would be missing without a word."""
    text = (
        ARRAY.replace('"raid5"', '"raid1"')
        .replace('"d0", "d1", "d2"', '"d0", "d1"')
        .replace('spares = ["d3"]\n', "")
    )
    folder, aside = served_once / "disks", served_once / "aside"
    shutil.rmtree(folder)
    folder.mkdir()
    more = ("--create", "r0", "--create", "p0", "--yes")
    with serving(served_once, text, more=more):
        pass
    (folder / "d1.img").rename(aside)
    with serving(served_once, text) as portal, logged_in(portal, IQN) as session:
        assert session.write(0, 0, PATTERN).status == 0
    aside.rename(folder / "d1.img")
    (folder / "d0.img").rename(served_once / "newer")
    assert "older than what was served last" in _refused(served_once).stderr


@pytest.mark.parametrize("text", ["{", json.dumps({"format": "linerate.array-served/9"})])
def test_a_record_that_cannot_be_read_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "lab.toml"
    places(file)[0].write_text(text, "ascii")
    with pytest.raises(UserError, match="later version"):
        load(file)


def test_a_record_goes_to_the_state_folder_where_its_own_is_read_only(tmp_path: Path, state: Path) -> None:
    file = tmp_path / "lab.toml"
    beside, elsewhere = places(file)
    beside.with_name(f"{beside.name}.new").mkdir()  # so that nothing can be written there
    assert save(file, load(file)) == elsewhere
    assert str(elsewhere).startswith(str(state))
    assert load(file) == load(file)


def test_the_newer_of_two_records_counts(tmp_path: Path, state: Path) -> None:
    """Served by hand and later as a service, which may not write beside the file."""
    file = tmp_path / "lab.toml"
    beside, elsewhere = places(file)
    save(file, ArrayRecord(disks={"old": ServedDisk(path="/old")}))
    os.utime(beside, (1, 1))
    elsewhere.parent.mkdir(parents=True)
    elsewhere.write_text(ArrayRecord(disks={"new": ServedDisk(path="/new")}).model_dump_json(), "ascii")
    assert str(elsewhere).startswith(str(state))
    assert list(load(file).disks) == ["new"]


def test_a_record_that_cannot_be_written_is_reported_and_tried_again(tmp_path: Path, state: Path) -> None:
    file, reported = tmp_path / "lab.toml", []

    def report(level: str, event: str, message: str, peer: str | None = None, **fields: object) -> None:
        reported.append(event)

    text = (
        ARRAY[ARRAY.index("[[targets]]") :]
        .replace('pool = "p0"\n', "")
        .replace('kind = "pool"', 'kind = "memory"')
    )
    writer = RecordWriter(file, parse_array_text(text), dict, report)
    blocked = [place.with_name(f"{place.name}.new") for place in places(file)]
    for folder in blocked:
        folder.mkdir(parents=True)
    writer.look()
    writer.look()
    assert reported == ["record_not_kept"]
    assert load(file) == ArrayRecord()
    blocked[0].rmdir()
    writer.look()
    assert load(file).volumes.keys() == {"f0"}
