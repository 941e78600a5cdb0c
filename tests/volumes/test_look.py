"""Volumes looked at on this machine: files, loop devices, mounts, swap, and LUNs of an array."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from linerate.array import ArrayConfig, EmbeddedArray, TargetConfig, VolumeConfig
from linerate.errors import UserError
from linerate.volumes import Look, VolumeLock, VolumeState, look_here
from linerate.workload import RunSpec, StreamSpec, VolumeSpec

from tests.support import need
from tests.support.loop import block_device

MIB = 1 << 20
TARGET = "iqn.2026-11.lab.linerate:look"


def look(*urls: object, **more: object) -> list[Look]:
    """What is found about volumes v1, v2, ... at these places."""
    places = [f"file:{url}" if isinstance(url, Path) else str(url) for url in urls]
    volumes = tuple(
        VolumeSpec.model_validate({"name": f"v{number}", "url": url, **more})
        for number, url in enumerate(places, 1)
    )
    names = tuple(volume.name for volume in volumes)
    stream = StreamSpec(name="s", volumes=names)
    return list(look_here(RunSpec(name="look", volumes=volumes, streams=(stream,)), names))


def make(path: Path, size_bytes: int = 64 * MIB) -> Path:
    """A file of zeros."""
    with path.open("wb") as file:
        file.truncate(size_bytes)
    return path


def make_ext4(path: Path) -> None:
    """A file system on a file or device."""
    subprocess.run([need.tool("mkfs.ext4"), "-q", "-F", path], check=True)


@contextmanager
def mounted(device: Path, place: Path) -> Iterator[Path]:
    """A file system that is mounted."""
    place.mkdir(exist_ok=True)
    done = subprocess.run([need.tool("mount"), device, place], capture_output=True, text=True, check=False)
    if done.returncode:
        need.missing(f"no file system can be mounted: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


def test_what_holds_nothing(tmp_path: Path) -> None:
    found = look("null:1048576", tmp_path / "new", create=True, size_bytes=MIB)
    assert [(one.state, one.size_bytes) for one in found] == [
        (VolumeState.MEMORY, MIB),
        (VolumeState.NEW, None),
    ]


def test_files_by_what_lies_on_them(tmp_path: Path) -> None:
    blank, data, signed = (make(tmp_path / name) for name in ("blank", "data", "signed"))
    with data.open("r+b") as file:
        file.seek(data.stat().st_size - 5)
        file.write(b"x")
    make_ext4(signed)
    found = look(blank, data, signed)
    assert [one.state for one in found] == [VolumeState.BLANK, VolumeState.DATA, VolumeState.SIGNED]
    assert [one.words for one in found] == ["blank", "data of unknown kind", "ext4 file system"]
    assert {one.size_bytes for one in found} == {64 * MIB}


def test_a_missing_file_and_a_folder_are_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"v1: .*missing does not exist") as caught:
        look(tmp_path / "missing")
    assert "--create" in caught.value.hint
    assert look(tmp_path)[0].state is VolumeState.UNREAD


def test_what_has_no_blocks_and_what_leads_nowhere_are_refused(tmp_path: Path) -> None:
    pipe, circle = tmp_path / "pipe", tmp_path / "circle"
    os.mkfifo(pipe)
    circle.symlink_to(circle)
    for path, said, hint in (
        (pipe, "pipe is neither a file nor a block device", "give one of these"),
        (Path("/dev/zero"), "/dev/zero is neither a file nor a block device", "give one of these"),
        (circle, "circle: Too many levels of symbolic links", "correct the path"),
    ):
        with pytest.raises(UserError, match=said) as caught:
            look(path)
        assert caught.value.hint == hint


def test_a_locked_file_is_in_use(tmp_path: Path) -> None:
    path = make(tmp_path / "locked")
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert look(path)[0].found == (f"locked by process {os.getpid()}",)
    assert look(path)[0].state is VolumeState.BLANK


def test_a_mounted_device_and_the_image_behind_it(tmp_path: Path) -> None:
    image = tmp_path / "image"
    with block_device(image, 64 * MIB) as device:
        assert look(device)[0].state is VolumeState.BLANK
        make_ext4(device)
        assert look(device)[0].words == "ext4 file system"
        with mounted(device, tmp_path / "place") as place:
            behind, at_it = look(image, device)
            assert at_it.state is behind.state is VolumeState.IN_USE
            assert at_it.found == (f"mounted on {place} (ext4)", "ext4 file system")
            assert behind.found[0] == f"attached as {device}, mounted on {place} (ext4)"
        assert look(device)[0].state is VolumeState.SIGNED
        assert look(image)[0].found[0] == f"attached as {device}"


def test_a_mount_in_another_namespace_is_seen(tmp_path: Path) -> None:
    unshare = need.tool("unshare")
    with block_device(tmp_path / "image", 64 * MIB) as device:
        make_ext4(device)
        place = tmp_path / "place"
        place.mkdir()
        script = 'mount "$0" "$1" && echo ready && read line'
        command = [unshare, "--mount", "sh", "-c", script, device, place]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            assert look(device)[0].found[0] == f"mounted on {place} (ext4)"
            process.communicate(b"\n")


def test_a_partition_counts_for_its_disk(tmp_path: Path) -> None:
    image = make(tmp_path / "image", 128 * MIB)
    script = b"label: gpt\nstart=2048, size=100M\n"
    subprocess.run([need.tool("sfdisk"), "-q", image], input=script, check=True, capture_output=True)
    with attached(image, "--partscan") as device:
        partition = Path(f"{device}p1")
        if not partition.exists():
            pytest.skip("this kernel makes no partitions on loop devices")
        assert look(device)[0].words == "GPT partition table (Linux)"
        make_ext4(partition)
        with mounted(partition, tmp_path / "place") as place:
            whole, part = look(device, partition)
            assert whole.found[0] == f"{partition} is mounted on {place} (ext4)"
            assert part.found[0] == f"mounted on {place} (ext4)"


@contextmanager
def attached(image: Path, *options: str) -> Iterator[Path]:
    """A loop device over a file that is there."""
    if os.geteuid() != 0 or not Path("/dev/loop-control").exists():
        pytest.skip("only root may attach a loop device, where the kernel has them")
    losetup = need.tool("losetup")
    command = [losetup, "--find", "--show", *options, str(image)]
    device = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    try:
        yield Path(device)
    finally:
        subprocess.run([losetup, "--detach", device], check=True)


def test_swap_is_in_use(tmp_path: Path) -> None:
    with block_device(tmp_path / "image", 64 * MIB) as device:
        subprocess.run([need.tool("mkswap"), device], check=True, capture_output=True)
        assert look(device)[0].words == "swap space"
        done = subprocess.run([need.tool("swapon"), device], capture_output=True, text=True, check=False)
        if done.returncode:
            need.missing(f"no swap can be added: {done.stderr.strip()}")
        try:
            assert look(device)[0].found == ("used as swap space", "swap space")
        finally:
            subprocess.run(["swapoff", device], check=True)


def test_a_physical_volume_of_lvm(tmp_path: Path) -> None:
    with block_device(tmp_path / "image", 64 * MIB) as device:
        pvcreate = need.tool("pvcreate")
        subprocess.run([pvcreate, "-q", device], check=True, capture_output=True)
        assert look(device)[0].words == "LVM physical volume"


def test_a_device_that_a_program_holds_is_in_use_and_a_held_one_cannot_be_mounted(tmp_path: Path) -> None:
    with block_device(tmp_path / "image", 64 * MIB) as device:
        make_ext4(device)
        with device.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            assert look(device)[0].found[0] == f"locked by process {os.getpid()}"
        descriptor = os.open(device, os.O_RDONLY | os.O_EXCL)
        assert look(device)[0].found[0] == "opened exclusively by a program or the kernel"
        with pytest.raises(UserError, match="was taken by a program or mounted just now"):
            VolumeLock([str(device)])
        os.close(descriptor)
        hold = VolumeLock([str(device), str(device)])
        mount = [need.tool("mount"), device, tmp_path]
        assert subprocess.run(mount, capture_output=True, check=False).returncode != 0
        hold.release()
        assert look(device)[0].state is VolumeState.SIGNED


def test_luns_by_what_lies_on_them(tmp_path: Path) -> None:
    image, size = tmp_path / "image", 64 * MIB
    make(image, size)
    make_ext4(image)
    volumes = (
        VolumeConfig(lun=0, name="memory", size_bytes=size),
        VolumeConfig(lun=1, name="file", kind="file", path=str(image), size_bytes=size),
        VolumeConfig(lun=2, name="blank", kind="file", path=str(tmp_path / "blank"), size_bytes=size),
    )
    config = ArrayConfig(portals=("127.0.0.1:0",), targets=(TargetConfig(name=TARGET, volumes=volumes),))
    with EmbeddedArray(config) as array:
        found = look(*(array.url(lun) for lun in range(3)))
    assert [(one.state, one.words) for one in found] == [
        (VolumeState.MEMORY, "in memory"),
        (VolumeState.SIGNED, "ext4 file system"),
        (VolumeState.BLANK, "blank"),
    ]
    assert {one.size_bytes for one in found} == {size}


@pytest.mark.parametrize("way", ["twice", "symbolic", "hard", "device"])
def test_one_volume_by_two_names_is_refused(tmp_path: Path, way: str) -> None:
    path = make(tmp_path / "one", MIB)
    other = tmp_path / "two"
    if way == "twice":
        other = path
    elif way == "symbolic":
        other.symlink_to(path)
    elif way == "hard":
        os.link(path, other)
    if way != "device":
        with pytest.raises(UserError, match=r"volumes v1 and v2 are the same: .*/one") as caught:
            look(path, other)
        assert "{n}" in caught.value.hint
        return
    with block_device(path, MIB) as device:
        other.symlink_to(device)
        with pytest.raises(UserError, match="volumes v1 and v2 are the same"):
            look(device, other)


def test_one_lun_by_the_same_url_is_refused_and_two_parts_are_not(tmp_path: Path) -> None:
    url = f"iscsi://127.0.0.1:3260/{TARGET}/0"
    with pytest.raises(UserError, match=r"volumes v1 and v2 are the same: iscsi://"):
        look(url, url)
    path = make(tmp_path / "one", 4 * MIB)
    volumes = tuple(
        VolumeSpec(name=f"v{number}", url=f"file:{path}", first_byte=number * MIB, size_bytes=MIB)
        for number in range(3)
    )
    stream = StreamSpec(name="s", volumes=("v0", "v1", "v2"))
    spec = RunSpec(name="parts", volumes=volumes, streams=(stream,))
    assert len(look_here(spec, stream.volumes)) == 3
    wide = spec.model_copy(
        update={"volumes": (*volumes[:2], volumes[2].model_copy(update={"first_byte": 2 * MIB - 1}))}
    )
    with pytest.raises(UserError, match="volumes v1 and v2 are the same"):
        look_here(wide, stream.volumes)
    shared = tuple(volume.model_copy(update={"shares_device": True}) for volume in wide.volumes)
    assert len(look_here(wide.model_copy(update={"volumes": shared}), stream.volumes)) == 3
