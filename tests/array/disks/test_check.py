"""`linerate array check`: says what a start would find, and changes not a byte."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from tests.cli.conftest import Done, linerate
from tests.support.serving import serving

ARRAY = """\
name = "checked"
portals = ["127.0.0.1:0"]
[[storage.disks]]
name = "d"
kind = "file"
path = "d.img"
size = "24m"
sparse = true
count = 4
[[storage.raid_sets]]
name = "r0"
level = "raid6"
disks = ["d"]
[[storage.pools]]
name = "p0"
raid_sets = ["r0"]
[[targets]]
name = "iqn.2026-11.lab.linerate:checked"
[[targets.volumes]]
lun = 0
name = "v0"
kind = "pool"
pool = "p0"
size = "8m"
"""


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """The file of an array that has served."""
    with serving(tmp_path, ARRAY):
        pass
    return tmp_path / "lab.toml"


def _check(file: Path, *more: str) -> Done:
    before = _contents(file.parent)
    done = linerate("array", "check", file, *more)
    assert _contents(file.parent) == before, "a check has changed something"
    return done


def _contents(folder: Path) -> dict[Path, tuple[str, int]]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path: (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns) for path in files}


@pytest.mark.long
def test_a_sound_array(lab: Path) -> None:
    done = _check(lab)
    assert done.returncode == 0, done.stdout
    assert "RAID set r0       optimal" in done.stdout
    assert "pool     p0       sound" in done.stdout
    assert done.stdout.endswith(f"{lab}: all is well\n")
    told = json.loads(_check(lab, "--json").stdout)
    assert (told["schema"], told["fine"], told["findings"]) == ("linerate.array-check/1", True, [])
    assert [disk["state"] for disk in told["storage"]["disks"]] == ["online"] * 4
    assert len(told["storage"]["raid_sets"][0]["id"]) == 16


def test_disks_of_an_array_that_serves_are_in_use_and_not_missing(tmp_path: Path) -> None:
    with serving(tmp_path, ARRAY):
        done = linerate("array", "check", tmp_path / "lab.toml")
    assert done.returncode == 0, done.stdout
    assert done.stdout.count(" in use ") == 4
    assert "missing" not in done.stdout
    assert done.stdout.endswith("the rest is well; `linerate array show` has what serves\n")


def test_portals_that_this_host_lacks_are_named_with_their_lines(tmp_path: Path) -> None:
    file = tmp_path / "lab.toml"
    lacking = '[\n"127.0.0.1:0",\n# "192.0.2.77:3260"\n"192.0.2.77:3260",\n\n{ interface = "nosuch0" },\n]'
    file.write_text(ARRAY.replace('["127.0.0.1:0"]', lacking), "ascii")
    done = _check(file)
    assert done.returncode == 1, done.stdout
    lines = [line for line in done.stdout.splitlines() if line.startswith("care")]
    assert lines[0].startswith(
        f"care     portal 192.0.2.77:3260: {file}:5: portals[1]: this host does not have the address; it has "
    )
    assert "127.0.0.1" in lines[0].rpartition("it has ")[2]
    assert lines[1].startswith(
        f"care     portal nosuch0:3260: {file}:7: portals[2]: this host has no such interface; it has "
    )
    assert len(lines) == 2
    assert "will be made" in done.stdout, "the disks are looked at all the same"


def test_an_array_that_never_served(tmp_path: Path) -> None:
    file = tmp_path / "lab.toml"
    file.write_text(ARRAY, "ascii")
    done = _check(file)
    assert done.returncode == 0, done.stdout
    assert "will be made, with new files for d0, d1, d2, d3" in done.stdout


@pytest.mark.long
def test_an_array_that_serves_is_left_alone(lab: Path) -> None:
    with serving(lab.parent, ARRAY):
        done = linerate("array", "check", lab)
        assert done.returncode == 0, done.stdout
        assert "is not looked at: an array that serves uses" in done.stdout


@pytest.mark.long
def test_a_damaged_disk_needs_care(lab: Path) -> None:
    with (lab.parent / "d2.img").open("r+b") as disk:
        for copy in (0, 64 << 10):
            disk.seek(copy + 40)
            disk.write(b"damage")
    done = _check(lab)
    assert done.returncode == 1
    assert "care     disk d2: is not used in RAID set r0: both of its superblocks are damaged" in done.stdout
    assert "care     RAID set r0: serves without d2" in done.stdout
    told = json.loads(_check(lab, "--json").stdout)
    assert {finding["severity"] for finding in told["findings"]} == {"care"}


@pytest.mark.long
def test_too_few_disks_are_refused(lab: Path) -> None:
    for number in range(3):
        (lab.parent / f"d{number}.img").unlink()
    done = _check(lab)
    assert done.returncode == 1
    assert "refused  RAID set r0" in done.stdout
    assert "has too few disks to serve" in done.stdout


@pytest.mark.long
def test_both_copies_of_a_pools_metadata_are_looked_at(tmp_path: Path) -> None:
    """RAID 0 notices nothing of it."""
    text = ARRAY.replace("raid6", "raid0")
    with serving(tmp_path, text):
        pass
    disks = [disk for disk in tmp_path.glob("d*.img") if b"LNRTMETA" in disk.read_bytes()]
    for copy in (disks[0], disks[-1]):
        whole = copy.read_bytes()
        copy.write_bytes(whole.replace(b"LNRTMETA", b"LNRTMETX"))
        done = _check(tmp_path / "lab.toml")
        assert done.returncode == 1
        assert "care     pool p0: a superblock or a copy of its metadata was damaged" in done.stdout
        copy.write_bytes(whole)


@pytest.mark.long
def test_mistakes_in_the_file_end_with_2(lab: Path) -> None:
    for old, new, message in (
        ('level = "raid6"', 'level = "raid7"', "lab.toml:12: storage.raid_sets[0].level"),
        ('disks = ["d"]', 'disks = ["d", "x"]', 'there is no disk "x"'),
        ("[[targets]]", '[targets.chap]\nuser = "u"\nsecret_file = "none"\n[[targets]]', "lab.toml"),
    ):
        lab.write_text(ARRAY.replace(old, new), "ascii")
        done = _check(lab)
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr


@pytest.mark.long
def test_files_that_are_no_disks(lab: Path) -> None:
    volume = '[[targets.volumes]]\nlun = 1\nname = "f0"\nkind = "file"\npath = "f0.img"\n'
    lab.write_text(ARRAY + volume, "ascii")
    done = _check(lab)
    assert done.returncode == 1
    assert "refused  volume f0: there is no file" in done.stdout
    lab.write_text(f'{ARRAY}{volume}size = "1m"\n', "ascii")
    assert _check(lab).returncode == 0
