"""What a target may be, and when a file is made: nothing appears on a disk unasked."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest
from linerate.array import EmbeddedArray, load_array_file
from linerate.results import RunDirectory

from tests.cli.conftest import Done, linerate
from tests.volumes.test_look import make

EXAMPLES = Path(__file__).parents[2] / "python/linerate/array/examples"
MIB = 1 << 20
TOML = """\
warm_up = "0s"
elapsed = "0.2s"
interval = "0.1s"
volume = [{ name = "v{n}", count = 2, outstanding = 2 }]
stream = [{ name = "writes", size = "8k", read = 0 }]
"""
VDBENCH = "sd=sd1,lun={lun}{size}\nwd=wd1,sd=sd1,rdpct=0\nrd=rd1,wd=wd1,elapsed=2,interval=1\n"


def _run(folder: Path, *words: str | Path, text: str = TOML) -> Done:
    suffix = "toml" if text == TOML else "vdb"
    (folder / f"load.{suffix}").write_text(text, "ascii")
    return linerate("run", f"load.{suffix}", *words, "--output", "run", "--no-report", cwd=folder)


def _assert_nothing_made(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} <= {"load.toml", "load.vdb", "run", "made.img"}


@pytest.mark.parametrize(
    "target", ["127.0.0.1:3260", "10.0.0.5", "san.example.com", "[::1]:3260", "h/iqn.2026-11.lab:x"]
)
@pytest.mark.parametrize("way", ["target", "map", "lun"])
def test_a_host_is_refused_with_the_url_to_write(tmp_path: Path, target: str, way: str) -> None:
    options = ("--create", "--size", "1m")
    if way == "lun":
        done = _run(tmp_path, text=VDBENCH.format(lun=target, size=",size=1m"))
    elif way == "map":
        done = _run(tmp_path, "--map", f"v*={target}", *options)
    else:
        done = _run(tmp_path, "--target", target, *options)
    assert done.returncode == 2
    assert f"{target}: a host or an iSCSI name is no target by itself" in done.stderr
    assert "iscsi://" in done.stderr
    _assert_nothing_made(tmp_path)
    assert not (tmp_path / "run").exists()


def test_a_file_is_made_only_if_that_was_asked_for(tmp_path: Path) -> None:
    targets = ("--target", "one.img", "--target", "two.img")
    done = _run(tmp_path, *targets, "--size", "1m")
    assert done.returncode == 2
    assert "one.img does not exist" in done.stderr
    assert "--create" in done.stderr
    assert not list(tmp_path.glob("*.img"))
    assert not (tmp_path / "run").exists()
    done = _run(tmp_path, *targets, "--size", "1m", "--create")
    assert done.returncode == 0, done.stderr
    assert [path.stat().st_size for path in sorted(tmp_path.glob("*.img"))] == [MIB, MIB]


@pytest.mark.long
def test_a_vdbench_file_with_a_size_makes_its_file(tmp_path: Path) -> None:
    done = _run(tmp_path, text=VDBENCH.format(lun="made.img", size=""))
    assert done.returncode == 2
    assert "made.img does not exist" in done.stderr
    done = _run(tmp_path, "--size", "1m", text=VDBENCH.format(lun="made.img", size=""))
    assert done.returncode == 2
    _assert_nothing_made(tmp_path)
    done = _run(tmp_path, text=VDBENCH.format(lun="made.img", size=",size=1m"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "made.img").stat().st_size == MIB


@pytest.mark.parametrize("way", ["lun", "lun and --create", "target", "link", "linked folder"])
def test_nothing_is_made_in_dev(tmp_path: Path, way: str) -> None:
    missing = Path("/dev/linerate-no-such-device")
    if way.startswith("lun"):
        words = ("--create", "--size", "1m") if "create" in way else ()
        done = _run(tmp_path, *words, text=VDBENCH.format(lun=missing, size=",size=1m"))
    else:
        path = missing
        if way == "link":
            path = tmp_path / "made.img"
            path.symlink_to(missing)
        elif way == "linked folder":
            (tmp_path / "run-devices").symlink_to("/dev")
            path = tmp_path / "run-devices" / missing.name
        done = _run(tmp_path, "--target", path, "--target", "null:1g", "--create", "--size", "1m")
    assert done.returncode == 2
    assert "no such device" in done.stderr
    assert "no file is made in /dev" in done.stderr
    assert not missing.exists()


@pytest.mark.long
def test_one_file_for_several_volumes_is_refused(tmp_path: Path) -> None:
    make(tmp_path / "one.img", MIB)
    os.link(tmp_path / "one.img", tmp_path / "two.img")
    for words in (("--target", "one.img"), ("--target", "one.img", "--target", "two.img")):
        done = _run(tmp_path, *words, "--overwrite", "all")
        assert done.returncode == 2
        assert "volumes v1 and v2 are the same" in done.stderr
        assert "{n}" in done.stderr
        assert not any((tmp_path / "one.img").read_bytes())
        done = linerate("run", tmp_path / "load.toml", *words, "--dry-run", cwd=tmp_path)
        assert done.returncode == 2
    new = _run(tmp_path, "--target", "new.img", "--create", "--size", "1m")
    assert "volumes v1 and v2 are the same" in new.stderr
    assert not (tmp_path / "new.img").exists()
    done = _run(tmp_path, "--target", "new{n}.img", "--create", "--size", "1m")
    assert done.returncode == 0, done.stderr


@pytest.mark.long
def test_the_example_with_drives_says_how_to_load_them(tmp_path: Path) -> None:
    text = (EXAMPLES / "drives.toml").read_text("ascii")
    (command,) = [line.lstrip("# ") for line in text.splitlines() if "linerate run" in line]
    config = load_array_file(EXAMPLES / "drives.toml").model_copy(update={"portals": ("127.0.0.1:0",)})
    with EmbeddedArray(config) as array:
        host, port = array.portals[0]
        words = shlex.split(command.replace("iscsi://127.0.0.1/", f"iscsi://{host}:{port}/"))[1:]
        done = linerate(
            *words, "--elapsed", "0.2", "--warmup", "0", "--output", tmp_path / "run", "--no-report"
        )
    assert done.returncode == 0, done.stderr
    assert RunDirectory.open(tmp_path / "run").intervals["ios"].sum() > 0
